package oam

import (
	"encoding/json"
	"net/http"

	"github.com/go-chi/chi/v5"

	"bsfd/diameter"
)

// configurationRoot begins the paths of the configuration API.
const configurationRoot = "/oc-bsf-configuration/v1"

// repavingRoot begins the paths of repaving.
const repavingRoot = configurationRoot + "/diameterRepaving"

// ShowDiameter shows the gateway, with its settings, to the operator; nil says
// that there is none.
func (s *Server) ShowDiameter(g *diameter.Gateway) { s.diameter.Store(g) }

// diameterRoutes are the pages of the Rx gateway: its peers, and repaving.
func (s *Server) diameterRoutes(mux chi.Router) {
	read, write := s.access.require(Viewer), s.access.require(Operator)
	mux.With(read).Get("/diameter/peers", s.withDiameter(func(g *diameter.Gateway, w http.ResponseWriter, _ *http.Request) {
		writeJSON(w, http.StatusOK, g.Peers())
	}))
	mux.With(write).Post(repavingRoot+"/triggerDisconnection", s.withDiameter(func(g *diameter.Gateway, w http.ResponseWriter, r *http.Request) {
		t, err := g.TriggerRepaving(r.Context())
		if err != nil {
			writeProblem(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		writeJSON(w, http.StatusAccepted, t)
	}))
	mux.With(read).Get(repavingRoot+"/history", s.withDiameter(func(g *diameter.Gateway, w http.ResponseWriter, r *http.Request) {
		list, err := g.RepavingHistory(r.Context())
		if err != nil {
			writeProblem(w, http.StatusServiceUnavailable, err.Error())
			return
		}
		writeJSON(w, http.StatusOK, map[string]any{"isRepavingBusy": g.RepavingBusy(), "triggers": list})
	}))
}

// withDiameter answers 503 while there is no gateway.
func (s *Server) withDiameter(h func(*diameter.Gateway, http.ResponseWriter, *http.Request)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		g := s.diameter.Load()
		if g == nil {
			noGateway(w)
			return
		}
		h(g, w, r)
	}
}

func noGateway(w http.ResponseWriter) {
	writeProblem(w, http.StatusServiceUnavailable, "the Rx gateway does not run (diameter.enabled)")
}

// writeProblem answers with a problem (RFC 9457).
func writeProblem(w http.ResponseWriter, status int, detail string) {
	w.Header().Set("Content-Type", "application/problem+json")
	w.WriteHeader(status)
	// A client that went away needs no answer.
	_ = json.NewEncoder(w).Encode(map[string]any{"status": status, "title": http.StatusText(status), "detail": detail})
}
