package nbsf

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"sync"

	"bsfd/internal/tgpp"
	"bsfd/internal/tolerate"
	"bsfd/web/sbi"
)

// class is the presence class of an attribute: it chooses the cause when the
// value is wrong (TS 29.500 Table 5.2.7.2-1), and tells whether an empty value
// can stand for an absent one.
type class uint8

const (
	optional class = iota
	conditional
	mandatory
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
	// allowed are the tolerances that may be used, used those that were.
	allowed, used tolerate.Set
	// late holds what can be done only when all members have been read.
	late []func()
}

// step is one part of a JSON Pointer: a name or an index.
type step struct {
	name  string
	index int
}

// decoders recycles decoders with their buffers.
type decoders struct{ pool sync.Pool }

// newDecoders returns decoders that may use some of Tolerances.
func newDecoders(allowed tolerate.Set) *decoders {
	return &decoders{sync.Pool{New: func() any { return &decoder{allowed: allowed} }}}
}

func (p *decoders) get() *decoder { return p.pool.Get().(*decoder) }

func (p *decoders) put(d *decoder) {
	const keep = 64 << 10
	if d.in.Cap() > keep {
		return
	}
	d.in.Reset()
	d.scanner = scanner{names: d.names[:0]}
	d.path, d.bad, d.worst, d.used, d.late = d.path[:0], nil, optional, 0, nil
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
		for _, do := range d.late {
			do()
		}
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
	if d.worst != optional {
		condition = sbi.MandatoryIeIncorrect
	}
	return &sbi.Problem{Condition: condition, Detail: d.bad[0].Param + ": " + d.bad[0].Reason, InvalidParams: d.bad}
}

// tolerate notes the use of tolerances, and reports whether they are allowed.
func (d *decoder) tolerate(used tolerate.Set) bool {
	if !d.allowed.Has(used) {
		return false
	}
	d.used |= used
	return true
}

// list reads the elements of an array, or notes that the value is none or that
// it is empty. element reports whether there was one: a null is none.
func (d *decoder) list(name string, c class, element func() bool) {
	if !d.kind(name, c, '[', "must be an array") {
		return
	}
	d.path = append(d.path, step{name: name}, step{})
	i, kept := 0, 0
	d.array(func() {
		d.path[len(d.path)-1].index = i
		i++
		if element() {
			kept++
		}
	})
	d.path = d.path[:len(d.path)-2]
	switch {
	case d.err != nil:
	case i == 0 && (c == mandatory || !d.tolerate(tol(tolEmptyArray))),
		kept == 0 && c == mandatory && len(d.bad) == 0:
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
// skipped and, unless it is a null that stands for an absent value, rejected.
func (d *decoder) kind(name string, c class, first byte, reason string) bool {
	next := d.next()
	if next == first {
		return true
	}
	if next == 'n' && d.tolerate(tol(tolNull)) {
		d.literal("null")
		return false
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
	d.worst = max(d.worst, c)
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

// text reads a string into dst and reports whether there was one.
func text[T any](d *decoder, name string, c class, dst *T, f *form[T]) bool {
	s, ok := d.string(name, c)
	if !ok || d.absentText(s, c) {
		return false
	}
	v, err := f.exact(s)
	if err == nil {
		*dst = v
		return true
	}
	if f.lenient != nil {
		if v, used, ok := f.lenient(s); ok && d.tolerate(used) {
			*dst = v
			return true
		}
	}
	d.reject(name, c, reasonText(err))
	return false
}

// absentText reports whether an empty text stands for an absent member.
func (d *decoder) absentText(s string, c class) bool {
	return s == "" && c != mandatory && d.tolerate(tol(tolEmptyText))
}

// texts reads an array of strings into dst.
func texts[T any](d *decoder, name string, c class, dst *[]T, f *form[T]) {
	var list []T
	d.list(name, c, func() bool {
		var v T
		ok := text(d, "", c, &v, f)
		if ok {
			list = append(list, v)
		}
		return ok
	})
	*dst = list
}

// pcfName reads the name of a service of a PCF, which may come as a URI: then
// an address goes to the end points of the service, and so does a port.
func (d *decoder) pcfName(name string, dst *tgpp.Fqdn, points *[]tgpp.IpEndPoint) {
	s, ok := d.string(name, conditional)
	if !ok || d.absentText(s, conditional) {
		return
	}
	v, err := tgpp.ParseFqdn(s)
	if err == nil {
		*dst = v
		return
	}
	h, used, ok := takeApart(s)
	if !ok || !d.tolerate(used) {
		d.reject(name, conditional, reasonText(err))
		return
	}
	*dst = h.name
	if h.addr.IsValid() || h.port != nil {
		d.late = append(d.late, func() { *points = h.addTo(*points) })
	}
}

// addTo adds the address, or the port of a name, to the end points of a
// service. A name needs none where there are some.
func (h *host) addTo(points []tgpp.IpEndPoint) []tgpp.IpEndPoint {
	if !h.addr.IsValid() {
		if len(points) > 0 {
			return points
		}
		return []tgpp.IpEndPoint{{Transport: transportTCP, Port: h.port}}
	}
	added := tgpp.IpEndPoint{Transport: transportTCP, Port: h.port}
	if h.addr.Is4() {
		added.Ipv4Address = h.addr
	} else {
		added.Ipv6Address = h.addr
	}
	for _, p := range points {
		if p.Ipv4Address == added.Ipv4Address && p.Ipv6Address == added.Ipv6Address &&
			(p.Port == nil || added.Port == nil || *p.Port == *added.Port) {
			return points
		}
	}
	return append(points, added)
}

const transportTCP = "TCP"

func reasonText(err error) string {
	_, reason, ok := strings.Cut(err.Error(), ": ")
	if !ok {
		return err.Error()
	}
	return reason
}
