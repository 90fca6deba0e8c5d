// Package settings keeps the settings that operators change while the process
// runs: a struct whose fields are the resources of the configuration API. The
// struct's tags say where a resource is and which values it takes; this
// package checks values against them, describes them, and keeps changes in
// storage, where every instance that shares it takes them up.
//
// The tags: "path" is the place of a resource, "key" the member that names an
// element of a list, "range" the values that are allowed (low..high, a list
// with |, or "name"), "default" what a number of a new element is when it is
// not given, "usage" the meaning, "seed" the part of the feature
// description that a setting follows.
package settings

import (
	"encoding"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Invalid is a value that is not allowed.
type Invalid struct {
	// Param is where it stands: the member, with those around it.
	Param  string
	Reason string
}

// Error implements error.
func (e *Invalid) Error() string { return e.Param + ": " + e.Reason }

// Fail returns an *Invalid.
func Fail(param, format string, args ...any) error {
	return &Invalid{param, fmt.Sprintf(format, args...)}
}

// name is what profiles and rules may be called.
var name = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,64}$`)

// Check checks every member of a struct against its tags; the error is a
// *Invalid. Within a list with a key, no two elements may have the same.
func Check(v any) error { return check("", reflect.Indirect(reflect.ValueOf(v))) }

func check(at string, v reflect.Value) error {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		member := join(at, jsonName(f))
		if err := checkField(member, f, v.Field(i)); err != nil {
			return err
		}
	}
	return nil
}

func join(at, member string) string {
	if at == "" {
		return member
	}
	return at + "." + member
}

func checkField(member string, f reflect.StructField, v reflect.Value) error {
	switch {
	case v.Kind() == reflect.Struct:
		return check(member, v)
	case v.Kind() != reflect.Slice:
		return inRange(member, f.Tag.Get("range"), v)
	}
	seen := make(map[string]bool)
	for i := range v.Len() {
		at, e := fmt.Sprintf("%s[%d]", member, i), v.Index(i)
		if e.Kind() != reflect.Struct {
			if err := inRange(at, f.Tag.Get("range"), e); err != nil {
				return err
			}
			continue
		}
		if err := check(at, e); err != nil {
			return err
		}
		if key := f.Tag.Get("key"); key != "" {
			id := keyOf(e, key)
			if seen[id] {
				return Fail(join(at, key), "%q is there twice", id)
			}
			seen[id] = true
		}
	}
	return nil
}

// keyOf is the member that names an element.
func keyOf(e reflect.Value, key string) string {
	for i := range e.NumField() {
		if jsonName(e.Type().Field(i)) == key {
			return fmt.Sprint(e.Field(i).Interface())
		}
	}
	return ""
}

func jsonName(f reflect.StructField) string {
	n, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return n
}

// inRange checks one value against a range.
func inRange(member, allowed string, v reflect.Value) error {
	if low, high, ok := bounds(allowed); ok {
		if n := v.Int(); n < low || n > high {
			return Fail(member, "must be %d to %d", low, high)
		}
		return nil
	}
	text := valueText(v)
	switch {
	case allowed == "":
	case allowed == "name":
		if !name.MatchString(text) {
			return Fail(member, "must be 1 to 64 letters, digits, _, . or -")
		}
	default:
		if list := strings.Split(allowed, "|"); !slices.Contains(list, text) {
			return Fail(member, "must be %s", oneOf(list))
		}
	}
	return nil
}

func oneOf(list []string) string {
	var quoted []string
	for _, s := range list {
		if s == "" {
			s = "empty"
		}
		quoted = append(quoted, s)
	}
	if len(quoted) == 1 {
		return quoted[0]
	}
	return strings.Join(quoted[:len(quoted)-1], ", ") + " or " + quoted[len(quoted)-1]
}

// bounds reads a range of numbers.
func bounds(allowed string) (low, high int64, ok bool) {
	a, b, ok := strings.Cut(allowed, "..")
	if !ok {
		return 0, 0, false
	}
	low, err := strconv.ParseInt(a, 10, 64)
	high, err2 := strconv.ParseInt(b, 10, 64)
	return low, high, err == nil && err2 == nil
}

// valueText is a value as users see it.
func valueText(v reflect.Value) string {
	if m, ok := v.Interface().(encoding.TextMarshaler); ok {
		b, err := m.MarshalText()
		if err != nil {
			return err.Error()
		}
		return string(b)
	}
	return fmt.Sprint(v.Interface())
}

// preset sets the numbers of a struct that have a default of their own.
func preset(v reflect.Value) {
	for i := range v.NumField() {
		if n, err := strconv.ParseInt(v.Type().Field(i).Tag.Get("default"), 10, 64); err == nil {
			v.Field(i).SetInt(n)
		}
	}
}

// Row describes one setting.
type Row struct {
	Path    string // of its resource
	Section string // the name of the resource in a configuration file
	Member  string // within the resource; [] stands for the elements of a list
	Default string
	Range   string // of the elements, when List is set
	List    bool
	Seed    string
	Usage   string
}

// Describe lists the settings of a struct with its values as defaults.
func Describe(v any) (rows []Row) {
	value := reflect.Indirect(reflect.ValueOf(v))
	t := value.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		r := Row{Path: f.Tag.Get("path"), Section: jsonName(f), Seed: f.Tag.Get("seed")}
		if f.Type.Kind() == reflect.Slice {
			r.Member, r.Usage = "[]", f.Tag.Get("usage")
			r.Default = strings.Join(keys(value.Field(i), f.Tag.Get("key")), ", ")
			rows = append(rows, r)
			rows = describe(rows, Row{Path: r.Path, Section: r.Section, Seed: r.Seed, Member: "[]"}, reflect.Zero(f.Type.Elem()), false)
			continue
		}
		rows = describe(rows, r, value.Field(i), true)
	}
	return rows
}

// keys are the names of the elements of a list.
func keys(list reflect.Value, key string) (names []string) {
	for i := range list.Len() {
		names = append(names, keyOf(list.Index(i), key))
	}
	return names
}

func describe(rows []Row, at Row, v reflect.Value, defaults bool) []Row {
	t := v.Type()
	for i := range t.NumField() {
		f := t.Field(i)
		r := at
		r.Member = join(at.Member, jsonName(f))
		r.List = f.Type.Kind() == reflect.Slice
		r.Usage, r.Range, r.Default = f.Tag.Get("usage"), f.Tag.Get("range"), f.Tag.Get("default")
		switch {
		case f.Type.Kind() == reflect.Struct:
			rows = describe(rows, Row{Path: at.Path, Section: at.Section, Seed: at.Seed, Member: r.Member}, v.Field(i), defaults)
			continue
		case f.Type.Kind() == reflect.Slice && f.Type.Elem().Kind() == reflect.Struct:
			rows = append(rows, r)
			rows = describe(rows, Row{Path: at.Path, Section: at.Section, Seed: at.Seed, Member: r.Member + "[]"}, reflect.Zero(f.Type.Elem()), false)
			continue
		case defaults && f.Type.Kind() != reflect.Slice:
			r.Default = valueText(v.Field(i))
		}
		if f.Type.Kind() == reflect.Bool {
			r.Range = "true|false"
		}
		rows = append(rows, r)
	}
	return rows
}
