package oam

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/go-chi/chi/v5"

	"bsfd/internal/settings"
)

// Settings are runtime settings that the operator changes. *settings.Store is
// one.
type Settings interface {
	// Resources lists what there is.
	Resources() []settings.Resource
	// Get is the value of a resource as JSON.
	Get(path string) (json.RawMessage, error)
	// Change changes a resource and returns its new value.
	Change(ctx context.Context, who settings.Who, path string, change settings.Change) (json.RawMessage, error)
	// Trail is the audit trail, oldest first.
	Trail(ctx context.Context) ([]settings.Entry, error)
}

// roots are the beginnings of paths by the prefix that resources have.
var roots = map[string]string{
	"oc":  configurationRoot,
	"igw": "/BSF/nf-common-component/v1/igw",
}

// ResourcePath is the path of a resource in the configuration API.
func ResourcePath(resource string) string {
	root, rest, _ := strings.Cut(resource, ":")
	return roots[root] + "/" + rest
}

// ShowSettings opens settings to the operator.
func (s *Server) ShowSettings(list Settings) { s.settings.Store(&list) }

// stores are the settings of the modules that run.
func (s *Server) stores() (list []Settings) {
	if p := s.settings.Load(); p != nil {
		list = append(list, *p)
	}
	if g := s.diameter.Load(); g != nil {
		list = append(list, g.Settings())
	}
	return list
}

// settingsAPI are the resources of the settings. They are routed by a table of
// their own, since which there are is known after the listener is open.
func (s *Server) settingsAPI(w http.ResponseWriter, r *http.Request) {
	stores := s.stores()
	for _, list := range stores {
		for _, res := range list.Resources() {
			if rest, ok := strings.CutPrefix(r.URL.Path, ResourcePath(res.Path)); ok && (rest == "" || rest[0] == '/') {
				h := &resourceHandler{settings: list, resource: res}
				h.serve(w, r, strings.TrimPrefix(rest, "/"))
				return
			}
		}
	}
	switch {
	case len(stores) == 0:
		writeProblem(w, http.StatusServiceUnavailable, "the settings are not loaded yet")
	case s.diameter.Load() == nil && strings.HasPrefix(r.URL.Path, repavingRoot+"/"):
		noGateway(w)
	default:
		writeProblem(w, http.StatusNotFound, "no such resource")
	}
}

// auditTrail lists the changes of settings, oldest first.
func (s *Server) auditTrail(w http.ResponseWriter, r *http.Request) {
	stores := s.stores()
	if len(stores) == 0 {
		writeProblem(w, http.StatusServiceUnavailable, "the settings are not loaded yet")
		return
	}
	entries := []settings.Entry{}
	for _, list := range stores {
		trail, err := list.Trail(r.Context())
		if err != nil {
			writeProblem(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		entries = append(entries, trail...)
	}
	slices.SortStableFunc(entries, func(a, b settings.Entry) int { return a.Time.Compare(b.Time) })
	writeJSON(w, http.StatusOK, entries)
}

// settingsRoutes are the pages of the settings: reading for viewers, changing
// for operators.
func (s *Server) settingsRoutes(mux chi.Router) {
	read, write := s.access.require(Viewer), s.access.require(Operator)
	handler := http.HandlerFunc(s.settingsAPI)
	both := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodGet || r.Method == http.MethodHead {
			read(handler).ServeHTTP(w, r)
			return
		}
		write(handler).ServeHTTP(w, r)
	})
	mux.With(read).Get(configurationRoot+"/auditTrail", s.auditTrail)
	for _, root := range roots {
		mux.Handle(root+"/*", both)
	}
}

// resourceHandler serves one resource.
type resourceHandler struct {
	settings Settings
	resource settings.Resource
}

// serve handles the rest of the path: nothing, export, import, or the name of
// an element.
func (h *resourceHandler) serve(w http.ResponseWriter, r *http.Request, rest string) {
	switch {
	case rest == "":
		h.whole(w, r)
	case rest == "export" && r.Method == http.MethodGet:
		w.Header().Set("Content-Disposition", `attachment; filename="export.json"`)
		h.get(w)
	case rest == "import" && (r.Method == http.MethodPost || r.Method == http.MethodPut):
		h.change(w, r, http.StatusOK, settings.Replace)
	case rest == "export" || rest == "import":
		notAllowed(w, map[string]string{"export": "GET", "import": "POST, PUT"}[rest])
	case h.resource.Key == "" || strings.Contains(rest, "/"):
		writeProblem(w, http.StatusNotFound, "no such resource")
	default:
		h.element(w, r, rest)
	}
}

func (h *resourceHandler) whole(w http.ResponseWriter, r *http.Request) {
	list := h.resource.Key != ""
	switch {
	case r.Method == http.MethodGet:
		h.get(w)
	case r.Method == http.MethodPut:
		h.change(w, r, http.StatusOK, settings.Replace)
	case r.Method == http.MethodPatch && !list:
		h.change(w, r, http.StatusOK, settings.Merge)
	case r.Method == http.MethodPost && list:
		h.change(w, r, http.StatusCreated, func(body json.RawMessage) settings.Change { return settings.Add(h.resource.Key, body) })
	case list:
		notAllowed(w, "GET, POST, PUT")
	default:
		notAllowed(w, "GET, PUT, PATCH")
	}
}

func (h *resourceHandler) element(w http.ResponseWriter, r *http.Request, name string) {
	key := h.resource.Key
	switch r.Method {
	case http.MethodGet:
		list, err := h.settings.Get(h.resource.Path)
		if err == nil {
			list, err = settings.Element(list, key, name)
		}
		h.answer(w, http.StatusOK, list, err)
	case http.MethodPut:
		h.changeElement(w, r, name, settings.Replace)
	case http.MethodPatch:
		h.changeElement(w, r, name, settings.Merge)
	case http.MethodDelete:
		if _, err := h.settings.Change(r.Context(), who(r), h.resource.Path, settings.Remove(key, name)); err != nil {
			h.answer(w, 0, nil, err)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	default:
		notAllowed(w, "GET, PUT, PATCH, DELETE")
	}
}

func (h *resourceHandler) changeElement(w http.ResponseWriter, r *http.Request, name string, with func(json.RawMessage) settings.Change) {
	key := h.resource.Key
	body, ok := readBody(w, r)
	if !ok {
		return
	}
	list, err := h.settings.Change(r.Context(), who(r), h.resource.Path, settings.Put(key, name, with(body)))
	if err == nil {
		list, err = settings.Element(list, key, name)
	}
	h.answer(w, http.StatusOK, list, err)
}

func (h *resourceHandler) get(w http.ResponseWriter) {
	v, err := h.settings.Get(h.resource.Path)
	h.answer(w, http.StatusOK, v, err)
}

func (h *resourceHandler) change(w http.ResponseWriter, r *http.Request, status int, with func(json.RawMessage) settings.Change) {
	body, ok := readBody(w, r)
	if !ok {
		return
	}
	v, err := h.settings.Change(r.Context(), who(r), h.resource.Path, with(body))
	if err == nil && status == http.StatusCreated {
		v = body
	}
	h.answer(w, status, v, err)
}

// maxSettingsBytes bounds the body of a change.
const maxSettingsBytes = 1 << 20

// readBody reads the body of a change; false means that it has been answered.
func readBody(w http.ResponseWriter, r *http.Request) (json.RawMessage, bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxSettingsBytes))
	if err != nil {
		writeProblem(w, http.StatusRequestEntityTooLarge, err.Error())
		return nil, false
	}
	if !json.Valid(body) {
		writeInvalid(w, &settings.Invalid{Param: "body", Reason: "must be JSON"})
		return nil, false
	}
	return body, true
}

// answer writes a value, or the problem that an error is.
func (h *resourceHandler) answer(w http.ResponseWriter, status int, v json.RawMessage, err error) {
	var invalid *settings.Invalid
	switch {
	case err == nil:
		writeJSON(w, status, v)
	case errors.As(err, &invalid):
		writeInvalid(w, invalid)
	case errors.Is(err, settings.ErrNotFound):
		writeProblem(w, http.StatusNotFound, err.Error())
	case errors.Is(err, settings.ErrExists), errors.Is(err, settings.ErrConflict):
		writeProblem(w, http.StatusConflict, err.Error())
	default:
		writeProblem(w, http.StatusServiceUnavailable, err.Error())
	}
}

func notAllowed(w http.ResponseWriter, allow string) {
	w.Header().Set("Allow", allow)
	writeProblem(w, http.StatusMethodNotAllowed, "allowed: "+allow)
}

// writeInvalid answers with the parameter that is wrong.
func writeInvalid(w http.ResponseWriter, e *settings.Invalid) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(http.StatusBadRequest)
	// A client that went away needs no answer.
	_ = json.NewEncoder(w).Encode(map[string]any{
		"status": http.StatusBadRequest, "title": "Invalid setting", "detail": e.Error(),
		"invalidParams": []map[string]string{{"param": e.Param, "reason": e.Reason}},
	})
}
