package nbsf

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"sync"

	"bsfd/web/sbi"
)

// class is the presence class of an attribute: it chooses the cause when the
// value is wrong (TS 29.500 Table 5.2.7.2-1).
type class bool

const (
	mandatory class = true // mandatory and conditional attributes
	optional  class = false
)

// maxInvalidParams bounds how many wrong attributes one answer lists.
const maxInvalidParams = 16

// decoder reads the members of a resource from one JSON text and collects what
// is wrong with them. Strings it returns are parts of the text.
type decoder struct {
	scanner
	in    bytes.Buffer
	path  []step
	bad   []sbi.InvalidParam
	worst class
}

// step is one part of a JSON Pointer: a name or an index.
type step struct {
	name  string
	index int
}

// decoders recycles decoders with their buffers.
type decoders struct{ pool sync.Pool }

func newDecoders() *decoders {
	return &decoders{sync.Pool{New: func() any { return new(decoder) }}}
}

func (p *decoders) get() *decoder { return p.pool.Get().(*decoder) }

func (p *decoders) put(d *decoder) {
	const keep = 64 << 10
	if d.in.Cap() > keep {
		return
	}
	d.in.Reset()
	d.scanner = scanner{names: d.names[:0]}
	d.path, d.bad, d.worst = d.path[:0], nil, optional
	p.pool.Put(d)
}

// decode reads the object in d.in, member by member, and returns what is wrong
// with it.
func (d *decoder) decode(member func(name string)) *sbi.Problem {
	d.text = d.in.String()
	switch d.next() {
	case 0:
		d.err = errEmpty
	case '{':
		d.object(member)
		d.end()
	default:
		if d.skip(); d.err == nil {
			d.err = errors.New("the body must be a JSON object")
		}
	}
	if d.err != nil {
		return sbi.Fail(sbi.InvalidMsgFormat, d.err.Error())
	}
	if len(d.bad) == 0 {
		return nil
	}
	condition := sbi.OptionalIeIncorrect
	if d.worst == mandatory {
		condition = sbi.MandatoryIeIncorrect
	}
	return &sbi.Problem{Condition: condition, Detail: d.bad[0].Param + ": " + d.bad[0].Reason, InvalidParams: d.bad}
}

// list reads the elements of an array, or notes that the value is none or that
// it is empty.
func (d *decoder) list(name string, c class, element func()) {
	if !d.kind(name, c, '[', "must be an array") {
		return
	}
	d.path = append(d.path, step{name: name}, step{})
	i := 0
	d.array(func() {
		d.path[len(d.path)-1].index = i
		i++
		element()
	})
	d.path = d.path[:len(d.path)-2]
	if i == 0 && d.err == nil {
		d.reject(name, c, "must not be empty")
	}
}

// nested reads an object that is a member or, with an empty name, an element.
func (d *decoder) nested(name string, c class, member func(name string)) bool {
	if !d.kind(name, c, '{', "must be an object") {
		return false
	}
	if name == "" {
		d.object(member)
		return d.err == nil
	}
	d.path = append(d.path, step{name: name})
	d.object(member)
	d.path = d.path[:len(d.path)-1]
	return d.err == nil
}

// kind reports whether a value that begins with first is next; another is
// skipped and rejected.
func (d *decoder) kind(name string, c class, first byte, reason string) bool {
	if d.next() == first {
		return true
	}
	if d.skip(); d.err == nil {
		d.reject(name, c, reason)
	}
	return false
}

// null reads a null if that is next.
func (d *decoder) null() bool {
	if d.next() != 'n' {
		return false
	}
	d.literal("null")
	return d.err == nil
}

// string reads a string member.
func (d *decoder) string(name string, c class) (string, bool) {
	if !d.kind(name, c, '"', "must be a string") {
		return "", false
	}
	s := d.str()
	return s, d.err == nil
}

// integer reads a whole number of 0 to limit.
func (d *decoder) integer(name string, c class, limit uint64) (uint64, bool) {
	if first := d.next(); first != '-' && (first < '0' || first > '9') {
		d.kind(name, c, 'd', wholeNumber(limit))
		return 0, false
	}
	raw := d.number()
	if d.err != nil {
		return 0, false
	}
	v, err := strconv.ParseUint(raw, 10, 64)
	if err != nil || v > limit {
		d.reject(name, c, wholeNumber(limit))
		return 0, false
	}
	return v, true
}

func wholeNumber(limit uint64) string {
	return "must be a whole number of 0 to " + strconv.FormatUint(limit, 10)
}

// reject notes a wrong member of the value at the current path.
func (d *decoder) reject(name string, c class, reason string) {
	if c == mandatory {
		d.worst = mandatory
	}
	if len(d.bad) < maxInvalidParams {
		d.bad = append(d.bad, sbi.InvalidParam{Param: d.pointer(name), Reason: reason})
	}
}

// pointer is the JSON Pointer of a member of the value at the current path.
// Names are those of the API and need no escaping.
func (d *decoder) pointer(name string) string {
	var b strings.Builder
	for _, s := range d.path {
		b.WriteByte('/')
		if s.name != "" {
			b.WriteString(s.name)
		} else {
			b.WriteString(strconv.Itoa(s.index))
		}
	}
	if name != "" {
		b.WriteString("/" + name)
	}
	return b.String()
}

// text reads a string by a parser into dst.
func text[T any](d *decoder, name string, c class, dst *T, parse func(string) (T, error)) {
	s, ok := d.string(name, c)
	if !ok {
		return
	}
	v, err := parse(s)
	if err != nil {
		d.reject(name, c, reasonText(err))
		return
	}
	*dst = v
}

// texts reads an array of strings by a parser into dst.
func texts[T any](d *decoder, name string, c class, dst *[]T, parse func(string) (T, error)) {
	var list []T
	d.list(name, c, func() {
		var v T
		text(d, "", c, &v, parse)
		list = append(list, v)
	})
	*dst = list
}

func reasonText(err error) string {
	_, reason, ok := strings.Cut(err.Error(), ": ")
	if !ok {
		return err.Error()
	}
	return reason
}
