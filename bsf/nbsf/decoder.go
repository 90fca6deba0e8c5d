package nbsf

import (
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/go-json-experiment/json/jsontext"

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

// decoder reads one JSON text and collects what is wrong with it. Strings it
// returns are parts of one copy of the text.
type decoder struct {
	json  *jsontext.Decoder
	in    bytes.Buffer
	text  string
	path  []step
	bad   []sbi.InvalidParam
	worst class
	err   error // the text is not JSON, or not of the right shape
}

// step is one part of a JSON Pointer: a name or an index.
type step struct {
	name  string
	index int
}

// decoders recycles decoders with their buffers.
type decoders struct{ pool sync.Pool }

func newDecoders() *decoders {
	return &decoders{sync.Pool{New: func() any {
		return &decoder{json: jsontext.NewDecoder(&bytes.Buffer{})}
	}}}
}

func (p *decoders) get() *decoder { return p.pool.Get().(*decoder) }

func (p *decoders) put(d *decoder) {
	const keep = 64 << 10
	if d.in.Cap() > keep {
		return
	}
	d.in.Reset()
	d.text, d.path, d.bad, d.err, d.worst = "", d.path[:0], nil, nil, optional
	p.pool.Put(d)
}

// decode reads the object in d.in, member by member, and returns what is wrong
// with it.
func (d *decoder) decode(member func(name []byte)) *sbi.Problem {
	d.text = d.in.String()
	d.json.Reset(&d.in)
	if d.json.PeekKind() != '{' {
		if _, err := d.json.ReadValue(); err != nil {
			return sbi.Fail(sbi.InvalidMsgFormat, syntaxText(err))
		}
		return sbi.Fail(sbi.InvalidMsgFormat, "the body must be a JSON object")
	}
	d.object(member)
	if d.err == nil {
		if _, err := d.json.ReadToken(); !errors.Is(err, io.EOF) {
			d.err = errors.New("data after the JSON object")
		}
	}
	if d.err != nil {
		return sbi.Fail(sbi.InvalidMsgFormat, syntaxText(d.err))
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

func syntaxText(err error) string {
	if errors.Is(err, io.EOF) {
		return "the body is empty"
	}
	return strings.TrimPrefix(err.Error(), "jsontext: ")
}

// object reads an object whose opening brace is next.
func (d *decoder) object(member func(name []byte)) {
	if !d.token() {
		return
	}
	for d.err == nil && d.json.PeekKind() != '}' {
		name, ok := d.value()
		if !ok {
			return
		}
		name = name[1 : len(name)-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			s, _ := jsontext.AppendUnquote(nil, append(append([]byte{'"'}, name...), '"'))
			name = s
		}
		member(name)
	}
	d.token()
}

// array reads the elements of an array, or notes that the value is none or
// that it is empty.
func (d *decoder) array(name string, c class, element func()) {
	if !d.kind(name, c, '[', "must be an array") {
		return
	}
	d.token()
	d.path = append(d.path, step{name: name})
	i := 0
	for ; d.err == nil && d.json.PeekKind() != ']'; i++ {
		d.path = append(d.path, step{index: i})
		element()
		d.path = d.path[:len(d.path)-1]
	}
	d.path = d.path[:len(d.path)-1]
	d.token()
	if i == 0 && d.err == nil {
		d.reject(name, c, "must not be empty")
	}
}

// nested reads an object that is a member or, with an empty name, an element.
func (d *decoder) nested(name string, c class, member func(name []byte)) bool {
	if !d.kind(name, c, '{', "must be an object") {
		return false
	}
	if name != "" {
		d.path = append(d.path, step{name: name})
		defer func() { d.path = d.path[:len(d.path)-1] }()
	}
	d.object(member)
	return d.err == nil
}

// kind reports whether a value of the kind is next; another is skipped and
// rejected.
func (d *decoder) kind(name string, c class, k jsontext.Kind, reason string) bool {
	got := d.json.PeekKind()
	if got == k {
		return true
	}
	d.skip()
	if d.err == nil {
		d.reject(name, c, reason)
	}
	return false
}

// null reads a null if that is next.
func (d *decoder) null() bool {
	if d.json.PeekKind() != 'n' {
		return false
	}
	return d.token()
}

func (d *decoder) token() bool {
	if d.err == nil {
		_, d.err = d.json.ReadToken()
	}
	return d.err == nil
}

func (d *decoder) value() ([]byte, bool) {
	if d.err != nil {
		return nil, false
	}
	v, err := d.json.ReadValue()
	d.err = err
	return v, err == nil
}

func (d *decoder) skip() {
	if d.err == nil {
		d.err = d.json.SkipValue()
	}
}

// str reads a string.
func (d *decoder) str(name string, c class) (string, bool) {
	if !d.kind(name, c, '"', "must be a string") {
		return "", false
	}
	raw, ok := d.value()
	if !ok {
		return "", false
	}
	if bytes.IndexByte(raw, '\\') >= 0 {
		s, err := jsontext.AppendUnquote(nil, raw)
		if err != nil {
			d.reject(name, c, "must be a string")
			return "", false
		}
		return string(s), true
	}
	end := int(d.json.InputOffset())
	return d.text[end-len(raw)+1 : end-1], true
}

// integer reads a whole number of 0 to limit.
func (d *decoder) integer(name string, c class, limit uint64) (uint64, bool) {
	reason := "must be a whole number of 0 to " + strconv.FormatUint(limit, 10)
	if !d.kind(name, c, '0', reason) {
		return 0, false
	}
	raw, ok := d.value()
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseUint(string(raw), 10, 64)
	if err != nil || v > limit {
		d.reject(name, c, reason)
		return 0, false
	}
	return v, true
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
	s, ok := d.str(name, c)
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
	d.array(name, c, func() {
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
