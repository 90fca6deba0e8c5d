// Package tolerate is how an interface lives with peers that do not speak to
// the letter: a table of what is served all the same, which of it is allowed,
// and a count and a bounded log of who makes use of it.
package tolerate

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// Kind is one row of a table: something that real peers send against the
// letter of the specification and that can be understood without a guess.
type Kind struct {
	// Name is what the configuration, the counter and the log call it.
	Name string
	// Accepts tells what is served.
	Accepts string
	// Keeps tells what is stored and answered in its place.
	Keeps string
	// Seen tells who sends it.
	Seen string
}

// Table holds the tolerances of one interface, at most 64. A Set refers to its
// rows by their index.
type Table []Kind

// Set is a set of rows of a Table: bit i stands for row i.
type Set uint64

// Of is the set of some rows.
func Of(rows ...int) (s Set) {
	for _, i := range rows {
		s |= 1 << i
	}
	return s
}

// Has reports whether all of o is in s.
func (s Set) Has(o Set) bool { return s&o == o }

// All is the name that stands for every row.
const All = "all"

// Parse reads a list of names; All stands for every row, and no name for none.
// The error names one that the table has not.
func (t Table) Parse(names []string) (Set, error) {
	var s Set
	for _, name := range names {
		found := false
		for i := range t {
			if name == All || name == t[i].Name {
				s |= 1 << i
				found = true
			}
		}
		if !found {
			return 0, fmt.Errorf("%q is none of %s", name, strings.Join(t.names(), ", "))
		}
	}
	return s, nil
}

func (t Table) names() []string {
	list := []string{All}
	for i := range t {
		list = append(list, t[i].Name)
	}
	return list
}

// Markdown is the table for the documentation.
func (t Table) Markdown() string {
	var b strings.Builder
	b.WriteString("|name|accepted|stored and answered|seen from|\n|-|-|-|-|\n")
	for _, k := range t {
		fmt.Fprintf(&b, "|`%s`|%s|%s|%s|\n", k.Name, k.Accepts, k.Keeps, k.Seen)
	}
	return b.String()
}

const (
	// maxPeers bounds how many pairs of peer and kind the log remembers.
	maxPeers = 4096
	// repeatAfter is how long a peer is silent in the log after a line of a
	// kind.
	repeatAfter = time.Hour
)

// Ledger counts what was tolerated, and logs the first of a kind from each
// peer and then at most one an hour. It is safe for concurrent use.
type Ledger struct {
	table    Table
	counters []prometheus.Counter
	log      zerolog.Logger

	mu    sync.Mutex
	lines map[entry]time.Time
	swept time.Time // when old lines were last looked for
}

// entry is what has at most one line an hour.
type entry struct {
	peer string
	kind int
}

// NewLedger returns the Ledger of a table. metric is the name of its counter,
// which has the label "what".
func NewLedger(table Table, metric string, log zerolog.Logger, reg prometheus.Registerer) *Ledger {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: metric, Help: "What was served although it is against the letter, by tolerance.",
	}, []string{"what"})
	reg.MustRegister(vec)
	l := &Ledger{table: table, log: log, lines: make(map[entry]time.Time)}
	for i := range table {
		l.counters = append(l.counters, vec.WithLabelValues(table[i].Name))
	}
	return l
}

// Counter is the counter of a row.
func (l *Ledger) Counter(row int) prometheus.Counter { return l.counters[row] }

// Note counts what was used in one message of a peer, which is named by what
// it calls itself or by its address.
func (l *Ledger) Note(peer string, used Set) {
	for i := range l.table {
		if !used.Has(1 << i) {
			continue
		}
		l.counters[i].Inc()
		if l.first(entry{peer, i}, time.Now()) {
			k := &l.table[i]
			l.log.Info().Str("peer", peer).Str("what", k.Name).Str("accepted", k.Accepts).Str("kept", k.Keeps).
				Msg("tolerated; more of this from the same peer is only counted for an hour")
		}
	}
}

// first reports whether a line is due, and remembers it. A full table forgets
// what is older than an hour; one that is still full is silent.
func (l *Ledger) first(e entry, now time.Time) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if last, ok := l.lines[e]; ok && now.Sub(last) < repeatAfter {
		return false
	}
	if l.full(now) {
		return false
	}
	l.lines[e] = now
	return true
}

// full reports whether no further line can be remembered. What is old is looked
// for once a minute only, so that peers with ever new names cost nothing.
func (l *Ledger) full(now time.Time) bool {
	if len(l.lines) < maxPeers {
		return false
	}
	if now.Sub(l.swept) >= time.Minute {
		l.swept = now
		for old, at := range l.lines {
			if now.Sub(at) >= repeatAfter {
				delete(l.lines, old)
			}
		}
	}
	return len(l.lines) >= maxPeers
}
