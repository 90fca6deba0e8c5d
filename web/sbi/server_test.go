package sbi

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"

	"bsfd/internal/refusal"
)

// TestNothingIsDoneForNobody proves that a request whose consumer gave up
// before it was begun reaches no handler.
func TestNothingIsDoneForNobody(t *testing.T) {
	reg := prometheus.NewRegistry()
	cfg := ServerConfig{
		Listen: []string{"127.0.0.1:0"}, TLS: TLSConfig{MinVersion: "1.2"}, MaxConnections: 1, MaxConcurrentStreams: 100, MaxHeaderBytes: 4 << 10,
		MaxURIBytes: 256, MaxBodyBytes: 1 << 10, HeaderTimeout: time.Second, IdleTimeout: time.Second, PingInterval: time.Second, StallTimeout: time.Second,
	}
	served := 0
	handler := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { served++ })
	errs := NewErrors(ErrorConfig{}, nowhere{}, reg)
	s, err := NewServer(cfg, handler, errs, zerolog.Nop(), reg)
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, ctx := range []context.Context{gone, t.Context()} {
		s.outer(handler).ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/", nil))
	}
	if n := testutil.ToFloat64(s.abandoned); served != 1 || n != 1 {
		t.Errorf("%d served, %v abandoned", served, n)
	}
}

// nowhere is a journal that keeps nothing.
type nowhere struct{}

func (nowhere) Count(refusal.Key) bool                      { return false }
func (nowhere) Note(*refusal.Refusal, func(*zerolog.Event)) {}
