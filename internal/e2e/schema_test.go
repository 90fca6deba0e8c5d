package e2e

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

// schema validates answers against the OpenAPI file of the API.
type schema struct{ doc *openapi3.T }

func loadSchema(t testing.TB) *schema {
	t.Helper()
	loader := openapi3.NewLoader()
	loader.IsExternalRefsAllowed = true
	file := shared(t, "spec", "openapi", "TS29521_Nbsf_Management.yaml")
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
	return &schema{doc}
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

// check validates one answer: its status must be declared and its body must
// fit the schema for it.
func (s *schema) check(t testing.TB, method, rawURL string, a answer) {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	item := s.doc.Paths.Find(template(strings.TrimPrefix(u.Path, base)))
	if item == nil || item.GetOperation(method) == nil {
		if a.status/100 == 2 {
			t.Errorf("%s %s is not in the OpenAPI file and answers %d", method, u.Path, a.status)
		}
		return
	}
	responses := item.GetOperation(method).Responses
	r := responses.Status(a.status)
	if r == nil {
		if r = responses.Default(); r == nil || a.status < 400 {
			t.Errorf("%s %s: status %d is not declared", method, u.Path, a.status)
			return
		}
	}
	for name, h := range r.Value.Headers {
		if h.Value.Required && a.header.Get(name) == "" {
			t.Errorf("%s %s: %d without %s", method, u.Path, a.status, name)
		}
	}
	mediaType := a.header.Get("Content-Type")
	media := r.Value.Content[mediaType]
	if media == nil && a.status >= 400 && mediaType == "application/problem+json" {
		media = &openapi3.MediaType{Schema: s.problem(t)}
	}
	if len(a.body) == 0 {
		return
	}
	if media == nil {
		t.Errorf("%s %s: %d with a body of %q", method, u.Path, a.status, mediaType)
		return
	}
	d := json.NewDecoder(bytes.NewReader(a.body))
	var v any
	if err := d.Decode(&v); err != nil {
		t.Errorf("body: %v", err)
		return
	}
	if err := media.Schema.Value.VisitJSON(v); err != nil {
		t.Errorf("%s %s: %d does not fit the schema: %v\n%s", method, u.Path, a.status, err, a.body)
	}
}

// problem is the schema of ProblemDetails, found where 403 of a registration
// refers to it.
func (s *schema) problem(t testing.TB) *openapi3.SchemaRef {
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
