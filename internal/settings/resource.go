package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"

	"bsfd/internal/nearest"
)

// Resource is one resource of the configuration API.
type Resource struct {
	Path string
	// Key is the member that names an element of a list; empty for a resource
	// that is one object.
	Key string
}

// Errors of changes.
var (
	// ErrNotFound says that there is no element of the name.
	ErrNotFound = errors.New("no such element")
	// ErrExists says that there is an element of the name already.
	ErrExists = errors.New("an element of this name is there already")
	// ErrConflict says that others changed the settings again and again
	// meanwhile.
	ErrConflict = errors.New("the settings are being changed by others")
)

// resources lists the resources of a struct.
func resources(t reflect.Type) (list []Resource) {
	for i := range t.NumField() {
		f := t.Field(i)
		list = append(list, Resource{f.Tag.Get("path"), f.Tag.Get("key")})
	}
	return list
}

// field is the field of a resource.
func field(v reflect.Value, path string) (reflect.Value, bool) {
	t := v.Type()
	for i := range t.NumField() {
		if t.Field(i).Tag.Get("path") == path {
			return v.Field(i), true
		}
	}
	return reflect.Value{}, false
}

// decode reads a value strictly: what is unknown, or follows, is an error. The
// error is a *Invalid.
func decode(raw json.RawMessage, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, err := d.Token(); !errors.Is(err, io.EOF) {
			return Fail("body", "something follows the value")
		}
		return nil
	}
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) && mismatch.Field != "" {
		return Fail(mismatch.Field, "must be %s", kindText(mismatch.Type))
	}
	// The error has no type of its own.
	if member, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); unknown {
		name := strings.Trim(member, `"`)
		return Fail(name, "there is no such setting%s", nearest.Meant(name, members(reflect.TypeOf(into), nil)))
	}
	return Fail("body", "%s", err)
}

// members lists the names of the members of a type, those inside it included.
func members(t reflect.Type, names []string) []string {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		return members(t.Elem(), names)
	case reflect.Struct:
		for i := range t.NumField() {
			name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
			if name != "" && name != "-" {
				names = append(names, name)
			}
			names = members(t.Field(i).Type, names)
		}
	}
	return names
}

// kindText is what a value of a type is called.
func kindText(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a number"
	case reflect.Slice:
		return "a list"
	case reflect.Struct:
		return "an object"
	}
	return "a text"
}

// Element finds an element of a list by name.
func Element(list json.RawMessage, key, id string) (json.RawMessage, error) {
	elements, i, err := locate(list, key, id)
	if err != nil {
		return nil, err
	}
	if i < 0 {
		return nil, ErrNotFound
	}
	return elements[i], nil
}

// locate finds the place of an element, -1 for none.
func locate(list json.RawMessage, key, id string) (elements []json.RawMessage, at int, err error) {
	if err := json.Unmarshal(list, &elements); err != nil {
		return nil, -1, Fail("body", "must be a list")
	}
	return elements, slices.IndexFunc(elements, func(e json.RawMessage) bool { return memberText(e, key) == id }), nil
}

// memberText is the text of a member of an object.
func memberText(e json.RawMessage, key string) string {
	var m map[string]json.RawMessage
	var s string
	if json.Unmarshal(e, &m) != nil || json.Unmarshal(m[key], &s) != nil {
		return ""
	}
	return s
}

// Add returns a change that adds an element to a list.
func Add(key string, element json.RawMessage) Change {
	return func(old json.RawMessage) (json.RawMessage, error) {
		elements, i, err := locate(old, key, memberText(element, key))
		if err != nil {
			return nil, err
		}
		if i >= 0 {
			return nil, ErrExists
		}
		return json.Marshal(append(elements, element))
	}
}

// within returns a change to the element of a list that has the name.
func within(key, id string, change func(elements []json.RawMessage, at int) ([]json.RawMessage, error)) Change {
	return func(old json.RawMessage) (json.RawMessage, error) {
		elements, i, err := locate(old, key, id)
		if err != nil {
			return nil, err
		}
		if i < 0 {
			return nil, ErrNotFound
		}
		if elements, err = change(elements, i); err != nil {
			return nil, err
		}
		return json.Marshal(elements)
	}
}

// Put returns a change that replaces an element of a list with what change
// makes of it.
func Put(key, id string, change Change) Change {
	return within(key, id, func(elements []json.RawMessage, i int) (_ []json.RawMessage, err error) {
		if elements[i], err = change(elements[i]); err != nil {
			return nil, err
		}
		if got := memberText(elements[i], key); got != id {
			return nil, Fail(key, "must be %q, the name in the path", id)
		}
		return elements, nil
	})
}

// Remove returns a change that removes an element from a list.
func Remove(key, id string) Change {
	return within(key, id, func(elements []json.RawMessage, i int) ([]json.RawMessage, error) {
		return slices.Delete(elements, i, i+1), nil
	})
}

// Replace returns a change to the value.
func Replace(value json.RawMessage) Change {
	return func(json.RawMessage) (json.RawMessage, error) { return value, nil }
}

// Merge returns a change by a JSON merge patch (RFC 7396).
func Merge(patch json.RawMessage) Change {
	return func(old json.RawMessage) (json.RawMessage, error) {
		var to, by any
		if err := json.Unmarshal(old, &to); err != nil {
			return nil, err
		}
		if err := json.Unmarshal(patch, &by); err != nil {
			return nil, Fail("body", "%s", err)
		}
		if _, ok := by.(map[string]any); !ok {
			return nil, Fail("body", "must be an object")
		}
		return json.Marshal(merge(to, by))
	}
}

func merge(to, by any) any {
	patch, ok := by.(map[string]any)
	if !ok {
		return by
	}
	object, ok := to.(map[string]any)
	if !ok {
		object = make(map[string]any)
	}
	for k, v := range patch {
		if v == nil {
			delete(object, k)
			continue
		}
		object[k] = merge(object[k], v)
	}
	return object
}

// unknownResource says that there is no resource at the path.
func unknownResource(path string) error { return fmt.Errorf("%w: %s", ErrNotFound, path) }
