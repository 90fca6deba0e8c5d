package overload

import "fmt"

// Level is a congestion state. The text is its name.
type Level int

// The congestion states, each worse than the one before.
const (
	Normal Level = iota
	Danger
	CongestionL1
	CongestionL2
	Congested
	levels = iota
)

var levelNames = [levels]string{"NORMAL", "DANGER_OF_CONGESTION", "CONGESTION_L1", "CONGESTION_L2", "CONGESTED"}

// String is the name.
func (l Level) String() string {
	if l < 0 || int(l) >= levels {
		return fmt.Sprintf("Level(%d)", int(l))
	}
	return levelNames[l]
}

// MarshalText implements encoding.TextMarshaler.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler. DOC is short for
// DANGER_OF_CONGESTION.
func (l *Level) UnmarshalText(b []byte) error {
	if string(b) == "DOC" {
		*l = Danger
		return nil
	}
	for i, name := range levelNames {
		if name == string(b) {
			*l = Level(i)
			return nil
		}
	}
	return fmt.Errorf("%q is no congestion state", b)
}

// machine is a level that changes only after so many samples in a row that are
// all above it, or all below it. It then goes to the one of them that is
// nearest, so that a load that swings between two levels neither keeps it back
// nor makes it flap.
type machine struct {
	level   Level
	count   int   // samples in a row on the same side
	nearest Level // of those samples
}

// note takes a sample and reports whether the level changed.
func (m *machine) note(sample Level, needed int) bool {
	up := sample > m.level
	switch {
	case sample == m.level:
		m.count = 0
		return false
	case m.count == 0 || up != (m.nearest > m.level):
		m.count, m.nearest = 1, sample
	default:
		m.count++
		if up {
			m.nearest = min(m.nearest, sample)
		} else {
			m.nearest = max(m.nearest, sample)
		}
	}
	if m.count < needed {
		return false
	}
	m.level, m.count = m.nearest, 0
	return true
}

// above is the highest level one of whose thresholds the use of a resource is
// above; limits are by level, 0 for none.
func above(use float64, limits *[levels]int) Level {
	for l := Congested; l > Normal; l-- {
		if limits[l] > 0 && use > float64(limits[l]) {
			return l
		}
	}
	return Normal
}

// stepped is a level with an onset and an abatement for each value: it rises
// as soon as an onset is reached, and falls when the use is below the
// abatement of the level that it has, or below its onset when it has no
// abatement.
type stepped struct{ level int }

// note takes the use of a resource. onset and abatement are by level, from 1
// on; an onset of 0 does not count.
func (s *stepped) note(use float64, onset, abatement []int) int {
	for s.level < len(onset)-1 && reaches(use, onset[s.level+1:]) {
		s.level++
	}
	for s.level > 0 {
		end := abatement[s.level]
		if end == 0 {
			end = onset[s.level]
		}
		if onset[s.level] > 0 && use >= float64(end) {
			break
		}
		s.level--
	}
	return s.level
}

// reaches reports whether the use is at one of the onsets or above.
func reaches(use float64, onsets []int) bool {
	for _, o := range onsets {
		if o > 0 && use >= float64(o) {
			return true
		}
	}
	return false
}
