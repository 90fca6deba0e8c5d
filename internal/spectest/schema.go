// Package spectest holds answers against the OpenAPI files of 3GPP, where those
// lie beside the sources.
package spectest

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// Schema validates answers against the OpenAPI file of Nbsf_Management.
type Schema struct{ doc *openapi3.T }

// Shared is a folder or file of reference material that may lie beside the
// sources; the test is skipped where it does not. root is the path from the
// package to the top of the sources.
func Shared(t testing.TB, root string, path ...string) string {
	t.Helper()
	dir, err := filepath.Abs(filepath.Join(append([]string{root, "..", "shared"}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skipf("%s is not here: skipping", filepath.Join(path...))
	}
	return dir
}

// Load reads the OpenAPI file; the test is skipped where it is absent. root is
// the path from the package to the top of the sources.
func Load(t testing.TB, root string) *Schema {
	t.Helper()
	loader := openapi3.NewLoader()
	loader.IsExternalRefsAllowed = true
	file := Shared(t, root, "spec", "openapi", "TS29521_Nbsf_Management.yaml")
	loader.ReadFromURIFunc = func(l *openapi3.Loader, u *url.URL) ([]byte, error) {
		switch name := path.Base(u.Path); name {
		case "TS29521_Nbsf_Management.yaml", "TS29571_CommonData.yaml", "TS29510_Nnrf_NFManagement.yaml":
			return openapi3.DefaultReadFromURI(l, u)
		default:
			return placeholder(filepath.Dir(file), name)
		}
	}
	doc, err := loader.LoadFromFile(file)
	if err != nil {
		t.Fatalf("OpenAPI file: %v", err)
	}
	return &Schema{doc}
}

// placeholder stands in for a file of other APIs, whose types no answer of
// Nbsf_Management has: each type that is referred to accepts anything.
func placeholder(dir, name string) ([]byte, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.yaml"))
	if err != nil {
		return nil, err
	}
	reference := regexp.MustCompile(regexp.QuoteMeta(name) + `#/components/schemas/([\w-]+)`)
	schemas := make(map[string]any)
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			return nil, err
		}
		for _, m := range reference.FindAllSubmatch(b, -1) {
			schemas[string(m[1])] = map[string]any{}
		}
	}
	return json.Marshal(map[string]any{
		"openapi": "3.0.0", "info": map[string]any{"title": name, "version": "0"}, "paths": map[string]any{},
		"components": map[string]any{"schemas": schemas},
	})
}

// Resource is the schema of a type.
func (s *Schema) Resource(name string) *openapi3.Schema { return s.doc.Components.Schemas[name].Value }

// Answer is what Check validates.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
}

// Check validates one answer: its status must be declared and its body must
// fit the schema for it. base is the path of the API.
func (s *Schema) Check(t testing.TB, method, base, rawURL string, a Answer) {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	item := s.doc.Paths.Find(template(strings.TrimPrefix(u.Path, base)))
	if item == nil || item.GetOperation(method) == nil {
		if a.Status/100 == 2 {
			t.Errorf("%s %s is not in the OpenAPI file and answers %d", method, u.Path, a.Status)
		}
		return
	}
	responses := item.GetOperation(method).Responses
	r := responses.Status(a.Status)
	if r == nil {
		if r = responses.Default(); r == nil || a.Status < 400 {
			t.Errorf("%s %s: status %d is not declared", method, u.Path, a.Status)
			return
		}
	}
	for name, h := range r.Value.Headers {
		if h.Value.Required && a.Header.Get(name) == "" {
			t.Errorf("%s %s: %d without %s", method, u.Path, a.Status, name)
		}
	}
	mediaType := a.Header.Get("Content-Type")
	media := r.Value.Content[mediaType]
	if media == nil && a.Status >= 400 && mediaType == "application/problem+json" {
		media = &openapi3.MediaType{Schema: s.problem(t)}
	}
	if len(a.Body) == 0 {
		return
	}
	if media == nil {
		t.Errorf("%s %s: %d with a body of %q", method, u.Path, a.Status, mediaType)
		return
	}
	d := json.NewDecoder(bytes.NewReader(a.Body))
	var v any
	if err := d.Decode(&v); err != nil {
		t.Errorf("body: %v", err)
		return
	}
	if err := media.Schema.Value.VisitJSON(v); err != nil {
		t.Errorf("%s %s: %d does not fit the schema: %v\n%s", method, u.Path, a.Status, err, a.Body)
	}
}

// problem is the schema of ProblemDetails, found where 403 of a registration
// refers to it.
func (s *Schema) problem(t testing.TB) *openapi3.SchemaRef {
	t.Helper()
	r := s.doc.Paths.Find("/pcfBindings").Post.Responses.Status(http.StatusBadRequest)
	return r.Value.Content["application/problem+json"].Schema
}

func template(path string) string {
	collection, rest, ok := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch {
	case !ok || rest == "":
		return "/" + collection
	case collection == "subscriptions":
		return "/subscriptions/{subId}"
	default:
		return "/" + collection + "/{bindingId}"
	}
}
