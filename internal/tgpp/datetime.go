package tgpp

import (
	"fmt"
	"strings"
	"time"
)

// DateTime is a date-time of RFC 3339, kept as it was sent (TS 29.571 §5.2.2).
type DateTime string

// ParseDateTime checks an RFC 3339 date-time with any offset.
func ParseDateTime(s string) (DateTime, error) {
	if _, err := time.Parse(time.RFC3339Nano, s); err != nil || len(s) > 64 {
		return "", fmt.Errorf("%w: must be an RFC 3339 date-time", ErrFormat)
	}
	return DateTime(s), nil
}

// Time is the instant; the zero time when absent.
func (d DateTime) Time() time.Time {
	t, err := time.Parse(time.RFC3339Nano, string(d))
	if err != nil {
		return time.Time{}
	}
	return t
}

// timestampLayout is the form of 3gpp-Sbi-Sender-Timestamp (TS 29.500
// §5.2.3.2.9) without its zone name.
const timestampLayout = "Mon, 02 Jan 2006 15:04:05.000"

// timestampZones maps the zone names that are understood to their offset from
// UTC in seconds. Only GMT is in the grammar; the others are seen in the field.
var timestampZones = [...]struct {
	name   string
	offset int
}{{" GMT", 0}, {" UTC", 0}, {" IST", 5*3600 + 1800}, {" PST", -8 * 3600}}

// ParseTimestamp reads the value of a 3gpp-Sbi-Sender-Timestamp or
// 3gpp-Sbi-Origination-Timestamp header: an RFC 9110 date with milliseconds,
// "Sun, 04 Aug 2019 08:49:37.845 GMT". GMT is the standard zone; UTC, IST and
// PST are read too.
func ParseTimestamp(s string) (time.Time, error) {
	s = strings.Trim(s, " \t")
	for _, z := range timestampZones {
		body, ok := strings.CutSuffix(s, z.name)
		if !ok {
			continue
		}
		t, err := time.Parse(timestampLayout, body)
		if err != nil || t.Format(timestampLayout) != body {
			break
		}
		return t.Add(-time.Duration(z.offset) * time.Second), nil
	}
	return time.Time{}, fmt.Errorf("%w: must be like %q", ErrFormat, timestampLayout+" GMT")
}

// FormatTimestamp is the text that ParseTimestamp reads, in GMT.
func FormatTimestamp(t time.Time) string {
	return t.UTC().Format(timestampLayout) + " GMT"
}
