package main

import (
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// doors is who may import whom: imports go one way, modules never import each
// other, and only the wiring knows everyone.
var doors = map[string][]string{
	".":                   {"config", "storage", "web/oam", "internal/app", "internal/lab"},
	"internal/app":        {"bsf", "bsf/nbsf", "config", "diameter", "internal/heap", "internal/process", "internal/refusal", "internal/settings", "overload", "storage", "web/oam", "web/sbi"},
	"config":              {"bsf", "bsf/nbsf", "diameter", "internal/refusal", "internal/tgpp", "internal/tolerate", "overload", "storage", "storage/embedded", "storage/postgres", "web/oam", "web/sbi", "internal/tlsfiles", "internal/nearest"},
	"bsf":                 {"internal/tgpp"},
	"bsf/nbsf":            {"bsf", "internal/admission", "internal/tgpp", "internal/tolerate", "web/sbi"},
	"diameter":            {"bsf", "diameter/rx", "internal/admission", "internal/refusal", "internal/settings", "internal/tgpp", "internal/tolerate", "internal/tlsfiles"},
	"diameter/rx":         {},
	"storage":             {"bsf", "storage/embedded", "storage/memory", "storage/postgres"},
	"storage/memory":      {"bsf", "internal/tgpp"},
	"storage/embedded":    {"bsf", "storage/memory"},
	"storage/postgres":    {"bsf"},
	"storage/storagetest": {"bsf", "internal/tgpp", "storage"},
	"web/sbi":             {"internal/admission", "internal/refusal", "internal/tgpp", "internal/tlsfiles"},
	"web/oam":             {"diameter", "internal/refusal", "internal/settings", "internal/tlsfiles"},
	"overload":            {"internal/admission", "internal/settings"},
	"internal/admission":  {},
	"internal/settings":   {"bsf", "internal/nearest"},
	"internal/tgpp":       {},
	"internal/tolerate":   {},
	"internal/nearest":    {},
	"internal/tlsfiles":   {},
	"internal/refusal":    {},
	"internal/spectest":   {},
	"internal/heap":       {},
	"internal/pgtest":     {},
	"internal/process":    {},
	"internal/peertest":   {},
	"internal/rxnode":     {"diameter/rx"},
	"internal/lab":        {"bsf", "bsf/nbsf", "diameter", "diameter/rx", "internal/heap", "internal/rxnode", "internal/tgpp", "storage", "storage/embedded", "storage/postgres"},
}

// TestImportsGoOneWay checks every import of every package against doors.
func TestImportsGoOneWay(t *testing.T) {
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && file != "." || d.Name() == "testdata" || d.Name() == "data") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		from := filepath.ToSlash(filepath.Dir(file))
		allowed, known := doors[from]
		if !known {
			t.Errorf("%s: the package is not in the table", from)
		}
		for _, i := range f.Imports {
			path, err := strconv.Unquote(i.Path.Value)
			if err != nil {
				return err
			}
			if to, ours := strings.CutPrefix(path, "bsfd/"); ours && !slices.Contains(allowed, to) {
				t.Errorf("%s imports %s", file, to)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
