package main

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// house is what is counted of the sources.
type house struct {
	files, functions, interfaces []int // lines, lines, methods
	code, tests                  int   // lines of code, without blanks and comments
	documented, packages         int
}

// TestFiguresOfTheHouse counts what docs/architecture.md has in a table:
//
//	go test -run TestFiguresOfTheHouse -v .
//
// It fails where a bound of the house is broken.
func TestFiguresOfTheHouse(t *testing.T) {
	h := count(t)
	slices.Sort(h.files)
	slices.Sort(h.functions)
	slices.Sort(h.interfaces)
	methods := 0
	for _, n := range h.interfaces {
		methods += n
	}
	mean := float64(methods) / float64(len(h.interfaces))
	t.Logf("files: %d, lines median %d, p90 %d, max %d", len(h.files), at(h.files, 50), at(h.files, 90), at(h.files, 100))
	t.Logf("functions: %d, lines median %d, p90 %d, max %d", len(h.functions), at(h.functions, 50), at(h.functions, 90), at(h.functions, 100))
	t.Logf("interfaces: %d, methods mean %.2f, max %d", len(h.interfaces), mean, at(h.interfaces, 100))
	t.Logf("import depth: %d", depth("."))
	t.Logf("test lines a code line: %.2f (%d and %d)", float64(h.tests)/float64(h.code), h.tests, h.code)
	t.Logf("packages with a package comment: %d of %d", h.documented, h.packages)
	if at(h.files, 100) > 600 {
		t.Error("a file has more than 600 lines")
	}
	if at(h.interfaces, 100) > 5 {
		t.Error("an interface has more than 5 methods")
	}
	if mean > 2.5 {
		t.Error("interfaces have more than 2.5 methods in the mean")
	}
	if h.documented < h.packages {
		t.Error("a package has no comment")
	}
	if lines := lineCount(t, "main.go"); lines > 150 {
		t.Errorf("main.go has %d lines", lines)
	}
}

// at is the value at a percentile of a sorted list.
func at(sorted []int, percent int) int { return sorted[(len(sorted)-1)*percent/100] }

// depth is the longest chain of imports that doors allows below a package.
func depth(from string) int {
	deepest := 0
	for _, to := range doors[from] {
		deepest = max(deepest, depth(to))
	}
	return deepest + 1
}

func lineCount(t *testing.T, file string) int {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Count(string(b), "\n")
}

func count(t *testing.T) *house {
	t.Helper()
	h := new(house)
	documented := make(map[string]bool)
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (strings.HasPrefix(d.Name(), ".") && file != "." || d.Name() == "testdata" || d.Name() == "data"):
			return fs.SkipDir
		case !strings.HasSuffix(file, ".go"):
			return nil
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, parser.ParseComments)
		if err != nil {
			return err
		}
		lines := codeLines(t, file)
		if strings.HasSuffix(file, "_test.go") || strings.HasPrefix(file, "storage/storagetest/") {
			h.tests += lines
			return nil
		}
		h.code += lines
		h.files = append(h.files, lineCount(t, file))
		dir := filepath.Dir(file)
		documented[dir] = documented[dir] || parsed.Doc != nil
		h.look(set, parsed)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, is := range documented {
		h.packages++
		if is {
			h.documented++
		}
	}
	return h
}

// look counts the functions and the interfaces of a file. An embedded interface
// counts as one method.
func (h *house) look(set *token.FileSet, file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			h.functions = append(h.functions, set.Position(n.End()).Line-set.Position(n.Pos()).Line+1)
		case *ast.InterfaceType:
			if len(n.Methods.List) > 0 {
				h.interfaces = append(h.interfaces, len(n.Methods.List))
			}
		}
		return true
	})
}

// codeLines are the lines of a file that are neither blank nor a comment alone.
func codeLines(t *testing.T, file string) (n int) {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.SplitSeq(string(b), "\n") {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "//") {
			n++
		}
	}
	return n
}
