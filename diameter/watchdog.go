package diameter

import (
	"math/rand/v2"
	"time"
)

// watchdogState is the state of a connection in the algorithm of RFC 3539
// §3.4.1. INITIAL and DOWN are states without a connection.
type watchdogState uint8

const (
	watchdogOkay    watchdogState = iota
	watchdogSuspect               // a DWR was not answered: requests go elsewhere
	watchdogReopen                // connected again after DOWN: must first prove itself
)

// String is the name in RFC 3539.
func (s watchdogState) String() string { return [...]string{"OKAY", "SUSPECT", "REOPEN"}[s] }

// watchdogAction is what the connection does next.
type watchdogAction uint8

const (
	watchdogNothing  watchdogAction = iota
	watchdogSend                    // a DWR
	watchdogFailover                // pending requests go elsewhere
	watchdogFailback                // requests may come again
	watchdogClose                   // the connection is down
)

// watchdog watches one connection. It has no clock of its own.
type watchdog struct {
	tw      time.Duration
	state   watchdogState
	due     time.Time
	armed   time.Time // when due was set
	pending bool
	// answered counts the DWAs in REOPEN; -1 after one came late.
	answered int
}

// reopenAnswers is how many DWAs in time end REOPEN.
const reopenAnswers = 3

// start begins with a connection that is open. After a connection that the
// watchdog has declared down it must prove itself.
func (w *watchdog) start(now time.Time, afterDown bool) watchdogAction {
	*w = watchdog{tw: w.tw}
	w.set(now)
	if afterDown {
		w.state, w.pending = watchdogReopen, true
		return watchdogSend
	}
	return watchdogNothing
}

// set starts the timer: Tw with a jitter of two seconds to either side.
func (w *watchdog) set(now time.Time) {
	const jitter = 2 * time.Second
	w.armed = now
	w.due = now.Add(w.tw - jitter + rand.N(2*jitter))
}

// received notes a message, dwa when it is a DWA.
func (w *watchdog) received(now time.Time, dwa bool) watchdogAction {
	switch w.state {
	case watchdogSuspect:
		w.state, w.pending = watchdogOkay, false
		w.set(now)
		return watchdogFailback
	case watchdogReopen:
		if !dwa {
			return watchdogNothing
		}
		w.pending = false
		if w.answered++; w.answered < reopenAnswers {
			return watchdogNothing
		}
		w.state = watchdogOkay
		w.set(now)
		return watchdogFailback
	default:
		if dwa {
			w.pending = false
		}
		w.set(now)
		return watchdogNothing
	}
}

// probe asks at once whether the connection is dead, and waits for the answer
// no longer than patience.
func (w *watchdog) probe(now time.Time, patience time.Duration) watchdogAction {
	if w.pending || w.state != watchdogOkay {
		return watchdogNothing
	}
	w.pending, w.armed, w.due = true, now, now.Add(min(patience, w.tw))
	return watchdogSend
}

// expired is called when the time is over.
func (w *watchdog) expired(now time.Time) watchdogAction {
	defer w.set(now)
	switch {
	case w.state == watchdogSuspect:
		return watchdogClose
	case !w.pending:
		w.pending = true
		return watchdogSend
	case w.state == watchdogOkay:
		w.state = watchdogSuspect
		return watchdogFailover
	case w.answered < 0:
		return watchdogClose
	default:
		w.answered = -1
		return watchdogNothing
	}
}
