// Package refusal remembers what was refused, so that whoever connects
// something sees at once why it does not work: a bounded number of log lines,
// and the last kinds of refusals with their count and one example.
package refusal

import (
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
	"golang.org/x/time/rate"
)

// Param is one wrong part of a message.
type Param struct {
	Param  string `json:"param"`
	Reason string `json:"reason"`
}

// Refusal is something that was refused.
type Refusal struct {
	// Interface is where: "sbi", "diameter" or "tls".
	Interface string `json:"interface"`
	// What is what was asked, without identifiers of a UE: a method and a path,
	// or the name of a command.
	What string `json:"what"`
	// Result is the HTTP status or the Result-Code.
	Result string `json:"result"`
	// Cause is that of the ProblemDetails; empty where there is none.
	Cause string `json:"cause,omitempty"`
	// Params are the wrong parts, Detail is the reason in words.
	Params []Param `json:"invalidParams,omitempty"`
	Detail string  `json:"detail,omitempty"`
	// Peer is the address or the identity of who asked, UserAgent what it calls
	// itself.
	Peer      string `json:"peer"`
	UserAgent string `json:"userAgent,omitempty"`
	// Hint says what to change; empty where the reason says it.
	Hint string `json:"hint,omitempty"`
	// Example is one such message, with identifiers of the UE masked.
	Example string `json:"example,omitempty"`
	// Failure is set when it is not the peer's mistake: the line is a warning.
	Failure bool `json:"-"`
}

// Kind is a kind of refusals: all that differ in nothing but who asked and the
// example. The Refusal is the last of them.
type Kind struct {
	Refusal
	Count     int       `json:"count"`
	FirstSeen time.Time `json:"firstSeen"`
	LastSeen  time.Time `json:"lastSeen"`
}

// Key tells kinds apart. Its parts are those of a Refusal; Param is the first
// wrong part.
type Key struct{ Interface, What, Result, Cause, Param string }

// Key is the key of its kind.
func (r *Refusal) Key() Key {
	k := Key{Interface: r.Interface, What: r.What, Result: r.Result, Cause: r.Cause}
	if len(r.Params) > 0 {
		k.Param = r.Params[0].Param
	}
	return k
}

// maxKinds bounds how many kinds are remembered. The one that was not seen for
// the longest time makes room.
const maxKinds = 200

// Config configures a Journal.
type Config struct {
	Enabled bool `koanf:"enabled" usage:"log a line for what is refused on any interface"`
	// Rate and MaxBurst bound the lines: Rate a second on average, MaxBurst at
	// once. Lines beyond are counted, and the next line says how many.
	Rate     float64 `koanf:"rate" usage:"log lines for errors a second"`
	MaxBurst int     `koanf:"maxBurst" usage:"log lines for errors at once"`
}

// Journal is safe for concurrent use.
type Journal struct {
	enabled bool
	log     zerolog.Logger
	limit   *rate.Limiter
	dropped prometheus.Counter

	leftOut atomic.Int64 // lines since the last one

	mu    sync.Mutex
	kinds map[Key]*Kind
}

// NewJournal returns an empty Journal.
func NewJournal(cfg Config, log zerolog.Logger, reg prometheus.Registerer) *Journal {
	j := &Journal{
		enabled: cfg.Enabled, log: log, limit: rate.NewLimiter(rate.Limit(cfg.Rate), cfg.MaxBurst),
		kinds: make(map[Key]*Kind),
		dropped: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "ocbsf_error_log_dropped_total", Help: "Error log lines dropped by the burst limit.",
		}),
	}
	reg.MustRegister(j.dropped)
	return j
}

// Count counts a refusal. It reports whether Note is to follow, because the kind
// is new or a line can be written: most of many refusals need not be put
// together.
func (j *Journal) Count(k Key) (wanted bool) {
	now := time.Now()
	due := j.enabled && j.limit.TokensAt(now) >= 1
	j.mu.Lock()
	known := j.kinds[k]
	if known == nil {
		if len(j.kinds) >= maxKinds {
			j.forgetOldest()
		}
		known = &Kind{FirstSeen: now}
		j.kinds[k] = known
		wanted = true
	}
	known.LastSeen = now
	known.Count++
	j.mu.Unlock()
	if !due && !wanted {
		j.leaveOut()
	}
	return due || wanted
}

// leaveOut counts a line that is not written.
func (j *Journal) leaveOut() {
	if j.enabled {
		j.leftOut.Add(1)
		j.dropped.Inc()
	}
}

// Note keeps a refusal that was counted as the example of its kind and logs it,
// unless there were too many lines. more adds fields to the line; it may be nil.
func (j *Journal) Note(r *Refusal, more func(*zerolog.Event)) {
	j.mu.Lock()
	if known := j.kinds[r.Key()]; known != nil {
		known.Refusal = *r
	}
	j.mu.Unlock()
	if j.enabled && j.limit.Allow() {
		j.line(r, int(j.leftOut.Swap(0)), more)
		return
	}
	j.leaveOut()
}

// Report counts a refusal and notes it.
func (j *Journal) Report(r *Refusal) {
	if j.Count(r.Key()) {
		j.Note(r, nil)
	}
}

func (j *Journal) forgetOldest() {
	var oldest Key
	var at time.Time
	for k, v := range j.kinds {
		if at.IsZero() || v.LastSeen.Before(at) {
			oldest, at = k, v.LastSeen
		}
	}
	delete(j.kinds, oldest)
}

// line writes the log line of a refusal.
func (j *Journal) line(r *Refusal, leftOut int, more func(*zerolog.Event)) {
	e := j.log.Info()
	if r.Failure {
		e = j.log.Warn()
	}
	if e == nil {
		return
	}
	e.Str("component", r.Interface).Str("what", r.What).Str("result", r.Result)
	if r.Cause != "" {
		e.Str("cause", r.Cause)
	}
	if len(r.Params) > 0 {
		list := zerolog.Arr()
		for _, p := range r.Params {
			list.Str(p.Param + ": " + p.Reason)
		}
		e.Array("invalidParams", list)
	}
	if r.Detail != "" {
		e.Str("detail", r.Detail)
	}
	e.Str("peer", r.Peer)
	if r.UserAgent != "" {
		e.Str("userAgent", r.UserAgent)
	}
	if r.Hint != "" {
		e.Str("hint", r.Hint)
	}
	if leftOut > 0 {
		e.Int("leftOut", leftOut)
	}
	if more != nil {
		more(e)
	}
	e.Msg("error response")
}

// Kinds lists what is remembered, the last seen first.
func (j *Journal) Kinds() []Kind {
	j.mu.Lock()
	list := make([]Kind, 0, len(j.kinds))
	for _, k := range j.kinds {
		list = append(list, *k)
	}
	j.mu.Unlock()
	slices.SortFunc(list, func(a, b Kind) int { return b.LastSeen.Compare(a.LastSeen) })
	return list
}

// Mask is a text without what may identify a UE: runs of five and more digits
// or hexadecimal digits become "*". It has at most limit bytes.
func Mask(s string, limit int) string {
	const shortest = 5
	var b strings.Builder
	for i := 0; i < len(s) && b.Len() < limit; {
		end := i
		for end < len(s) && isHex(s[end]) {
			end++
		}
		switch {
		case end-i >= shortest && strings.ContainsAny(s[i:end], "0123456789"):
			b.WriteByte('*')
			i = end
		case end > i:
			b.WriteString(s[i:end])
			i = end
		default:
			b.WriteByte(s[i])
			i++
		}
	}
	return strings.ToValidUTF8(b.String()[:min(b.Len(), limit)], "")
}

func isHex(c byte) bool {
	return c >= '0' && c <= '9' || c|0x20 >= 'a' && c|0x20 <= 'f'
}
