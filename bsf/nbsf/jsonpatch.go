package nbsf

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	jsonpatch "github.com/evanphx/json-patch/v5"

	"bsfd/internal/tolerate"
	"bsfd/web/sbi"
)

// testFailed is the condition of a JSON Patch whose "test" does not hold (RFC
// 5789 §2.2).
var testFailed = &sbi.Condition{Name: "patchTestFailed", Status: 409, Title: "Test of the patch failed", ErrorID: 4}

// maxPatchGrowth bounds in bytes what the "copy" operations of one JSON Patch
// may add.
const maxPatchGrowth = 64 << 10

// readJSONPatch reads a JSON Patch (RFC 6902).
func readJSONPatch[T any](a *API, c *call, t *patcher[T]) (change[T], error) {
	ops, problem := c.d.jsonPatch(func(name string) bool {
		return slices.ContainsFunc(t.members, func(m patchMember[T]) bool { return m.name == name })
	})
	if problem != nil {
		return nil, problem
	}
	return func(b *T) (tolerate.Set, error) {
		doc, problem := applyJSONPatch(ops, t.encode(b, nil))
		if problem != nil {
			return 0, problem
		}
		d := a.decoders.get()
		defer a.decoders.put(d)
		d.in.Write(doc)
		p := patch[T]{members: t.members, set: 1<<len(t.members) - 1, values: t.fresh()}
		if problem := d.decode(t.read(d, &p.values)); problem != nil {
			return 0, problem
		}
		p.apply(b)
		return d.used, nil
	}, nil
}

// jsonPatch reads the operations in d.in, which may change the members that
// are allowed and no others.
func (d *decoder) jsonPatch(allowed func(name string) bool) (jsonpatch.Patch, *sbi.Problem) {
	// The library takes names that occur twice; the scanner does not.
	d.text = d.in.String()
	if d.skip(); d.err == nil {
		d.end()
	}
	if d.err != nil {
		return nil, sbi.Fail(sbi.InvalidMsgFormat, d.err.Error())
	}
	ops, err := jsonpatch.DecodePatch([]byte(d.text))
	if err != nil {
		return nil, sbi.Fail(sbi.InvalidMsgFormat, "the body is no JSON Patch: "+err.Error())
	}
	for i, op := range ops {
		if problem := checkOperation(i, op, allowed); problem != nil {
			return nil, problem
		}
	}
	return ops, nil
}

// checkOperation checks one operation, whose members the library has checked,
// before any is applied.
func checkOperation(i int, op jsonpatch.Operation, allowed func(name string) bool) *sbi.Problem {
	path, err := op.Path()
	if err != nil || path != "" && path[0] != '/' {
		return sbi.FailParam(sbi.MandatoryIeIncorrect, fmt.Sprintf("/%d/path", i), "must be a JSON Pointer")
	}
	changed := []string{path}
	switch op.Kind() {
	case "test":
		if _, ok := op["value"]; !ok {
			return sbi.FailParam(sbi.MandatoryIeMissing, fmt.Sprintf("/%d/value", i), "required")
		}
		changed = nil
	case "move":
		from, err := op.From()
		if err != nil {
			return sbi.FailParam(sbi.MandatoryIeMissing, fmt.Sprintf("/%d/from", i), "required")
		}
		changed = append(changed, from)
	}
	for _, pointer := range changed {
		if member := firstStep(pointer); !allowed(member) {
			return sbi.FailParam(sbi.ModificationNotAllowed, "/"+member, "a PATCH cannot change this member")
		}
	}
	return nil
}

// firstStep is the name of the member that a JSON Pointer leads to or into.
func firstStep(pointer string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
}

// applyJSONPatch changes a resource in its text form.
func applyJSONPatch(ops jsonpatch.Patch, doc []byte) ([]byte, *sbi.Problem) {
	options := jsonpatch.NewApplyOptions()
	options.SupportNegativeIndices = false
	options.AccumulatedCopySizeLimit = maxPatchGrowth
	for i, op := range ops {
		out, err := jsonpatch.Patch{op}.ApplyWithOptions(doc, options)
		path, _ := op.Path()
		switch {
		case errors.Is(err, jsonpatch.ErrTestFailed):
			return nil, sbi.FailParam(testFailed, path, fmt.Sprintf("operation %d: the value is another one", i))
		case err != nil:
			return nil, sbi.FailParam(sbi.OptionalIeIncorrect, path, fmt.Sprintf("operation %d cannot be applied", i))
		}
		doc = out
	}
	return doc, nil
}
