package tgpp

import (
	"fmt"
	"strconv"
)

// Features is a SupportedFeatures bit mask (TS 29.571 §5.2.2, TS 29.500 §6.6):
// bit n-1 stands for feature n of the API. Features above 64 are dropped,
// because no API here defines them.
type Features uint64

// ParseFeatures reads hexadecimal digits, the last digit being features 1 to
// 4. An empty text means no features.
func ParseFeatures(s string) (Features, error) {
	if !isHex(s) || len(s) > 256 {
		return 0, fmt.Errorf("%w: must be hexadecimal digits", ErrFormat)
	}
	if len(s) > 16 {
		s = s[len(s)-16:]
	}
	if s == "" {
		return 0, nil
	}
	v, err := strconv.ParseUint(s, 16, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: must be hexadecimal digits", ErrFormat)
	}
	return Features(v), nil
}

// Has reports whether all features of f are in s.
func (s Features) Has(f Features) bool { return s&f == f }

// String is the hexadecimal text, "0" for no features.
func (s Features) String() string { return strconv.FormatUint(uint64(s), 16) }

// MarshalText implements encoding.TextMarshaler with String.
func (s Features) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler with ParseFeatures.
func (s *Features) UnmarshalText(b []byte) error {
	v, err := ParseFeatures(string(b))
	*s = v
	return err
}
