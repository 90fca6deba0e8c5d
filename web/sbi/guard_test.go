package sbi

import (
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"bsfd/internal/admission"
)

// endless is a connection on which there is always something to read.
type endless struct {
	net.Conn
	brings int // octets at a time
}

func (c *endless) Read(b []byte) (int, error) { return min(c.brings, len(b)), nil }

// TestConnectionsAreReadSlowerUnderPressure proves what refusals cost those who
// are refused, up to a bound, that small reads gather for as long as there is
// pressure, and that refusals for other reasons slow nobody down.
func TestConnectionsAreReadSlowerUnderPressure(t *testing.T) {
	for name, x := range map[string]struct {
		refusals  int
		pressed   bool
		elsewhere bool // on another connection
		brings    int
		later     time.Duration
		want      time.Duration
	}{
		"nothing refused":                  {0, true, false, 100, 0, 0},
		"one":                              {1, true, false, readAhead, 0, refusalPrice},
		"three":                            {3, true, false, readAhead, 0, 3 * refusalPrice},
		"a thousand":                       {1000, true, false, readAhead, 0, highestPrice},
		"not for pressure":                 {1000, false, false, 100, 0, 0},
		"another connection, little comes": {1, true, true, 100, 0, gathering},
		"another connection, much comes":   {1, true, true, readAhead, 0, 0},
		"the pressure is over":             {1, true, true, 100, pressing + time.Millisecond, 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				g := newGuard(nil, 10, time.Minute)
				c := &guardedConn{Conn: &endless{brings: x.brings}, guard: g}
				refused := c
				if x.elsewhere {
					refused = &guardedConn{Conn: &endless{}, guard: g}
				}
				read := func() (took time.Duration) {
					began := time.Now()
					for b := make([]byte, 9); ; {
						if _, err := c.Read(b); err != nil {
							t.Fatal(err)
						}
						if len(c.ahead) == 0 {
							return time.Since(began)
						}
					}
				}
				if took := read(); took != 0 {
					t.Fatalf("a first read took %s", took)
				}
				e := NewErrors(ErrorConfig{}, nowhere{}, prometheus.NewRegistry())
				for range x.refusals {
					r := httptest.NewRequest(http.MethodGet, "/", nil)
					e.Refuse(httptest.NewRecorder(), r.WithContext(withConn(r.Context(), refused)), &admission.Refusal{Status: 503}, x.pressed)
				}
				<-time.After(x.later)
				if took := read(); took != x.want {
					t.Errorf("the next read took %s, not %s", took, x.want)
				}
			})
		})
	}
}
