package e2e

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/conformance.md")

var statement = regexp.MustCompile(`\b(NBSF|SBI|RX)-\d{3}\b`)

// TestConformance keeps docs/conformance.md true: it lists for each statement
// the tests that name it. With -update it is written.
func TestConformance(t *testing.T) {
	tests := make(map[string][]string)
	root := filepath.Join("..", "..")
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(file, "_test.go") && !strings.Contains(file, "storagetest") ||
			!strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "conformance_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		src, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		for _, decl := range f.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok {
				continue
			}
			from := fn.Pos()
			if fn.Doc != nil {
				from = fn.Doc.Pos()
			}
			for _, id := range statement.FindAllString(string(src[from-f.FileStart:fn.End()-f.FileStart]), -1) {
				name := filepath.ToSlash(rel) + " " + fn.Name.Name
				if !slices.Contains(tests[id], name) {
					tests[id] = append(tests[id], name)
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for id := range tests {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	var table strings.Builder
	table.WriteString("|statement|tests that name it|\n|-|-|\n")
	for _, id := range ids {
		fmt.Fprintf(&table, "|%s|%s|\n", id, strings.Join(tests[id], "<br>"))
	}
	page := filepath.Join(root, "docs", "conformance.md")
	old, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	const mark = "<!-- generated from here -->\n"
	head, rest, ok := strings.Cut(string(old), mark)
	switch {
	case !ok:
		t.Errorf("%s has no mark", page)
	case rest != table.String() && *update:
		if err := os.WriteFile(page, []byte(head+mark+table.String()), 0o644); err != nil { //nolint:gosec // a document
			t.Error(err)
		}
	case rest != table.String():
		t.Errorf("%s is out of date: go test ./internal/e2e -run Conformance -update", page)
	}
	everyStatement(t, head, tests)
}

// everyStatement checks that each statement of the digests is named by a test
// or listed on the page with the reason why not.
func everyStatement(t *testing.T, page string, tests map[string][]string) {
	for file, ids := range map[string]string{"nbsf-management.md": `(?m)^- (NBSF-\d{3})`, "rx-gateway.md": `(?m)^- (RX-\d{3})`} {
		digest, err := os.ReadFile(filepath.Join(shared(t, "spec"), file))
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range regexp.MustCompile(ids).FindAllStringSubmatch(string(digest), -1) {
			if len(tests[id[1]]) == 0 && !strings.Contains(page, id[1]) {
				t.Errorf("%s is named by no test", id[1])
			}
		}
	}
}
