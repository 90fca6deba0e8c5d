package oam

import (
	"net/http"

	"github.com/go-chi/chi/v5"

	"bsfd/internal/refusal"
)

// refusalsPath is where the operator reads what was refused.
const refusalsPath = configurationRoot + "/refusals"

// Refusals lists what was refused; refusal.Journal is one.
type Refusals interface {
	Kinds() []refusal.Kind
}

// refusalRoutes is the page of what was refused, by kind, the last seen first.
func (s *Server) refusalRoutes(mux chi.Router, list Refusals) {
	mux.With(s.access.require(Viewer)).Get(refusalsPath, func(w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, map[string]any{"refusals": list.Kinds()})
	})
}
