package bsf

import (
	"fmt"
	"strings"
	"time"
)

// SameAddress says what a registration for an address that another binding of
// the same ipDomain, DNN and S-NSSAI holds does to that binding.
type SameAddress string

// The policies for a UE address that is registered twice.
const (
	// Supersede removes the older binding in the step that stores the newer:
	// a UE address belongs to one PDU session at a time.
	Supersede SameAddress = "supersede"
	// Keep stores both; discovery then answers MULTIPLE_BINDING_INFO_FOUND
	// until one of them is removed.
	Keep SameAddress = "keep"
)

// Check reports an unknown policy.
func (s SameAddress) Check() error {
	if s != Supersede && s != Keep {
		return fmt.Errorf("must be %q or %q", Supersede, Keep)
	}
	return nil
}

// CollisionRules configures how two registrations of different PCFs for one
// subscriber, DNN, S-NSSAI and address are told apart by timestamp headers.
type CollisionRules struct {
	// Enabled switches the detection on.
	Enabled bool `koanf:"enabled" usage:"detect colliding registrations by their timestamps"`
	// TimerHeaders selects the headers: when true, Origination decides and
	// CustomSender breaks a tie; when false, Sender alone decides.
	TimerHeaders bool `koanf:"timerHeaders" usage:"compare Origination, then Custom-Sbi-Sender timestamps; otherwise Sender"`
	// Origination, CustomSender and Sender tell which of the headers are
	// supported at all.
	Origination  bool `koanf:"origination" usage:"use 3gpp-Sbi-Origination-Timestamp"`
	CustomSender bool `koanf:"customSender" usage:"use Custom-Sbi-Sender-Timestamp"`
	Sender       bool `koanf:"sender" usage:"use 3gpp-Sbi-Sender-Timestamp"`
}

// older reports whether r lost against the stored binding old: its decisive
// timestamp is earlier. Where no header decides, the later request wins.
func (c CollisionRules) older(r, old *Record) bool {
	if c.TimerHeaders {
		if c.Origination {
			if d, ok := compareTimes(r.Origination, old.Origination); ok && d != 0 {
				return d < 0
			}
		}
		if c.CustomSender {
			if d, ok := compareTimes(r.CustomSender, old.CustomSender); ok {
				return d < 0
			}
		}
		return false
	}
	if c.Sender {
		if d, ok := compareTimes(r.Sender, old.Sender); ok {
			return d < 0
		}
	}
	return false
}

// compareTimes compares two header values; ok is false unless both are known.
func compareTimes(a, b time.Time) (order int, ok bool) {
	if a.IsZero() || b.IsZero() {
		return 0, false
	}
	return a.Compare(b), true
}

// Rules are the conditions under which a binding may be created. A store
// applies them inside the atomic step that stores the record: it collects the
// rivals that Keys names and obeys Decide.
type Rules struct {
	SameAddress SameAddress
	Collision   CollisionRules
	// Revalidate is set for a registration that asks whether its binding is
	// still there.
	Revalidate bool
}

// Simple reports whether nothing but the SameAddress policy can stop or change
// the creation of r, so that a store may use a set-based statement.
func (u Rules) Simple(r *Record) bool {
	return !u.Revalidate && !u.Collision.Enabled && !r.Binding.checksSamePcf()
}

// Keys lists the keys under which bindings must be looked up for Decide.
func (u Rules) Keys(r *Record, dst []Key) []Key {
	if u.SameAddress == Supersede || u.Revalidate || u.Collision.Enabled {
		dst = r.Binding.AddressKeys(dst)
	}
	if supi := u.samePcfSupi(r); supi != (Key{}) {
		dst = append(dst, supi)
	}
	return dst
}

// samePcfSupi is the key of the sessions that the SamePcf check compares: all
// of the subscriber in paraCom or, where paraCom leaves it out, in the binding.
func (u Rules) samePcfSupi(r *Record) Key {
	b := &r.Binding
	if !b.checksSamePcf() {
		return Key{}
	}
	switch {
	case b.ParaCom.Supi != "":
		return SupiKey(b.ParaCom.Supi)
	case b.Supi != "":
		return SupiKey(b.Supi)
	}
	return Key{}
}

// Reason tells why a binding was removed, as it appears in logs and metrics.
type Reason string

// The reasons for which a binding goes.
const (
	ReasonDeregistered Reason = "deregistered" // the PCF asked for it
	ReasonSuperseded   Reason = "superseded"   // its address was registered for another session
	ReasonCollision    Reason = "collision"    // a registration with a newer timestamp won
	ReasonRevalidated  Reason = "revalidated"  // its PCF registered it again with other contents
	ReasonStale        Reason = "stale"        // its PCF answered that it has no such session
)

// Removal is a binding that a step of the registry removed.
type Removal struct {
	Record *Record
	Reason Reason
}

// Verdict is the answer of Decide. At most one of Duplicate and Conflict is
// set; when neither is, the record is to be stored and Remove to be removed
// in the same step.
type Verdict struct {
	Duplicate *Record
	Conflict  *Conflict
	Remove    []Removal
}

// Decide applies the rules to a new record and its rivals: revalidation
// first, then collision detection, SamePcf (TS 29.521 §4.2.2.2), and last the
// SameAddress policy. Rivals may hold bindings that have nothing in common
// with r; they are ignored.
func (u Rules) Decide(r *Record, rivals []*Record) Verdict {
	var v Verdict
	decided := func(old *Record) bool {
		for _, x := range v.Remove {
			if x.Record.ID == old.ID {
				return true
			}
		}
		return old.ID == r.ID
	}
	if u.Revalidate {
		for _, old := range rivals {
			if !r.Binding.SharesAddress(&old.Binding) || !r.Binding.SameSlice(&old.Binding) ||
				!r.Binding.SamePcf(&old.Binding) || decided(old) {
				continue
			}
			if r.sameSession(old) {
				return Verdict{Duplicate: old}
			}
			v.Remove = append(v.Remove, Removal{old, ReasonRevalidated})
		}
	}
	if u.Collision.Enabled {
		for _, old := range rivals {
			if decided(old) || !r.collides(old) {
				continue
			}
			if u.Collision.older(r, old) {
				return Verdict{Conflict: &Conflict{Holder: &old.Binding, Older: true}}
			}
			v.Remove = append(v.Remove, Removal{old, ReasonCollision})
		}
	}
	if r.Binding.checksSamePcf() {
		for _, old := range rivals {
			if !decided(old) && r.Binding.paraComMatches(&old.Binding) && !r.Binding.SamePcf(&old.Binding) {
				return Verdict{Conflict: &Conflict{Holder: &old.Binding}}
			}
		}
	}
	if u.SameAddress == Supersede {
		for _, old := range rivals {
			if !decided(old) && r.Binding.SharesAddress(&old.Binding) && r.Binding.SameSlice(&old.Binding) {
				v.Remove = append(v.Remove, Removal{old, ReasonSuperseded})
			}
		}
	}
	return v
}

// sameSession reports whether a revalidation finds its binding unchanged in
// old.
func (r *Record) sameSession(old *Record) bool {
	a, b := &r.Binding, &old.Binding
	return a.Supi == b.Supi && a.Gpsi == b.Gpsi &&
		a.Ipv4Addr == b.Ipv4Addr && a.IpDomain == b.IpDomain &&
		a.Ipv6Prefix.Masked() == b.Ipv6Prefix.Masked() &&
		strings.EqualFold(string(a.MacAddr48), string(b.MacAddr48)) &&
		strings.EqualFold(string(a.PcfDiamHost), string(b.PcfDiamHost)) &&
		strings.EqualFold(string(a.PcfFqdn), string(b.PcfFqdn)) &&
		a.SamePcf(b)
}

// collides reports whether r and old are registrations of different PCFs for
// one subscriber, DNN, S-NSSAI and address.
func (r *Record) collides(old *Record) bool {
	return r.Binding.Supi == old.Binding.Supi && r.Binding.SameSlice(&old.Binding) &&
		r.Binding.SharesAddress(&old.Binding) && !r.Binding.SamePcf(&old.Binding)
}

// paraComMatches reports whether o has the members of b's paraCom.
func (b *PcfBinding) paraComMatches(o *PcfBinding) bool {
	p := b.ParaCom
	supi := p.Supi
	if supi == "" {
		supi = b.Supi
	}
	return supi != "" && supi == o.Supi &&
		(p.Dnn == "" || p.Dnn.Match(o.Dnn)) &&
		(p.Snssai == nil || p.Snssai.Equal(o.Snssai))
}
