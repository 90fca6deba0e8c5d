package nbsf

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// scanner reads one JSON text (RFC 8259) from the front, value by value. It is
// stricter than encoding/json where that guards the reader: invalid UTF-8 and
// names that occur twice in one object are errors. The first error stays.
type scanner struct {
	text  string
	at    int
	names []string // of the objects that are open, innermost last
	err   error
}

const (
	// maxDepth bounds the nesting of values that are skipped.
	maxDepth = 64
	// maxMembers bounds the members of one object.
	maxMembers = 256
)

func (s *scanner) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format+" at byte %d", append(args, s.at)...)
	}
}

var errEmpty = errors.New("the body is empty")

// next is the first byte of the next token, or 0 at the end of the text or
// after an error.
func (s *scanner) next() byte {
	if s.err != nil {
		return 0
	}
	for s.at < len(s.text) {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\r', '\n':
			s.at++
		case 0:
			// Not to be taken for the end of the text.
			s.unexpected()
			return 0
		default:
			return c
		}
	}
	return 0
}

// take reads the byte c, which must be next.
func (s *scanner) take(c byte) bool {
	if s.next() != c {
		s.unexpected()
		return false
	}
	s.at++
	return true
}

func (s *scanner) unexpected() {
	if s.at >= len(s.text) {
		s.fail("unexpected end")
	} else {
		s.fail("unexpected %q", s.text[s.at])
	}
}

// object reads an object and calls member for each name; member reads the
// value.
func (s *scanner) object(member func(name string)) {
	if !s.take('{') {
		return
	}
	base := len(s.names)
	for s.next() != '}' {
		if len(s.names) > base && !s.take(',') {
			return
		}
		name := s.str()
		if !s.take(':') {
			return
		}
		s.note(base, name)
		if s.next() == 0 {
			s.unexpected()
			return
		}
		member(name)
		if s.err != nil {
			return
		}
	}
	s.at++
	s.names = s.names[:base]
}

// note rejects a name that the object has already had.
func (s *scanner) note(base int, name string) {
	for _, n := range s.names[base:] {
		if n == name {
			s.fail("duplicate name %q", name)
			return
		}
	}
	if len(s.names)-base == maxMembers {
		s.fail("an object with more than %d members", maxMembers)
		return
	}
	s.names = append(s.names, name)
}

// array reads an array and calls element for each value; element reads it.
func (s *scanner) array(element func()) (n int) {
	if !s.take('[') {
		return 0
	}
	for ; s.next() != ']'; n++ {
		if n > 0 && !s.take(',') {
			return n
		}
		if s.next() == 0 {
			s.unexpected()
			return n
		}
		element()
		if s.err != nil {
			return n
		}
	}
	s.at++
	return n
}

// str reads a string. Without escapes it is a part of the text.
func (s *scanner) str() string {
	if !s.take('"') {
		return ""
	}
	start, plain := s.at, true
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '"':
			raw := s.text[start:s.at]
			s.at++
			if !plain && !utf8.ValidString(raw) {
				s.fail("invalid UTF-8")
			}
			return raw
		case c == '\\':
			return s.escaped(start)
		case c < 0x20:
			s.fail("control character in a string")
			return ""
		case c >= utf8.RuneSelf:
			plain = false
		}
		s.at++
	}
	s.fail("unexpected end")
	return ""
}

// escaped reads the rest of a string that began at start and has its first
// escape here.
func (s *scanner) escaped(start int) string {
	out := []byte(s.text[start:s.at])
	for s.at < len(s.text) {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			if !utf8.Valid(out) {
				s.fail("invalid UTF-8")
			}
			return string(out)
		case c == '\\':
			out = s.escape(out)
			if s.err != nil {
				return ""
			}
		case c < 0x20:
			s.fail("control character in a string")
			return ""
		default:
			out = append(out, c)
			s.at++
		}
	}
	s.fail("unexpected end")
	return ""
}

// escape reads one escape, a pair of them for a surrogate pair.
func (s *scanner) escape(out []byte) []byte {
	s.at++
	if s.at == len(s.text) {
		s.fail("unexpected end")
		return out
	}
	c := s.text[s.at]
	s.at++
	if i := strings.IndexByte(`"\/bfnrt`, c); i >= 0 {
		return append(out, "\"\\/\b\f\n\r\t"[i])
	}
	if c != 'u' {
		s.fail("invalid escape")
		return out
	}
	r := s.hex4()
	if utf16.IsSurrogate(r) {
		if !strings.HasPrefix(s.text[s.at:], `\u`) {
			s.fail("lone surrogate")
			return out
		}
		s.at += 2
		if r = utf16.DecodeRune(r, s.hex4()); r == utf8.RuneError {
			s.fail("lone surrogate")
			return out
		}
	}
	return utf8.AppendRune(out, r)
}

func (s *scanner) hex4() rune {
	if len(s.text)-s.at < 4 {
		s.fail("invalid escape")
		return 0
	}
	v, err := strconv.ParseUint(s.text[s.at:s.at+4], 16, 16)
	if err != nil {
		s.fail("invalid escape")
	}
	s.at += 4
	return rune(v)
}

// number reads a number and returns its text.
func (s *scanner) number() string {
	s.next()
	start := s.at
	digits := func() bool {
		from := s.at
		for s.at < len(s.text) && s.text[s.at] >= '0' && s.text[s.at] <= '9' {
			s.at++
		}
		if s.at == from {
			s.unexpected()
		}
		return s.at > from
	}
	accept := func(set string) bool {
		if s.at < len(s.text) && strings.IndexByte(set, s.text[s.at]) >= 0 {
			s.at++
			return true
		}
		return false
	}
	accept("-")
	if !accept("0") && !digits() {
		return ""
	}
	if accept(".") && !digits() {
		return ""
	}
	if accept("eE") {
		accept("+-")
		if !digits() {
			return ""
		}
	}
	return s.text[start:s.at]
}

// literal reads true, false or null.
func (s *scanner) literal(word string) {
	if !strings.HasPrefix(s.text[s.at:], word) {
		s.fail("unexpected %q", s.text[s.at])
		return
	}
	s.at += len(word)
}

// skip reads a value of any kind.
func (s *scanner) skip() { s.skipNested(0) }

func (s *scanner) skipNested(depth int) {
	if depth > maxDepth {
		s.fail("nested too deeply")
		return
	}
	switch c := s.next(); c {
	case '{':
		s.object(func(string) { s.skipNested(depth + 1) })
	case '[':
		s.array(func() { s.skipNested(depth + 1) })
	case '"':
		s.str()
	case 't':
		s.literal("true")
	case 'f':
		s.literal("false")
	case 'n':
		s.literal("null")
	case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
		s.number()
	default:
		s.unexpected()
	}
}

// end fails unless nothing but white space is left.
func (s *scanner) end() {
	if s.next() != 0 {
		s.fail("data after the value")
	}
}
