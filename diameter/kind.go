package diameter

import "bsfd/diameter/rx"

// kind is the kind of a request, by which timers, rules and metrics differ.
type kind uint8

const (
	kindAAR kind = iota
	kindSTR
	kindRAR
	kindASR
	kindOther // of another application that a route names
	kinds     = iota
)

// String is the abbreviation of the request.
func (k kind) String() string { return [kinds]string{"AAR", "STR", "RAR", "ASR", "other"}[k] }

// kindOf is the kind of a request of Rx; ok is false for a command that Rx
// does not have.
func kindOf(c rx.Command) (k kind, ok bool) {
	switch c {
	case rx.AA:
		return kindAAR, true
	case rx.SessionTermination:
		return kindSTR, true
	case rx.ReAuth:
		return kindRAR, true
	case rx.AbortSession:
		return kindASR, true
	}
	return kindOther, false
}
