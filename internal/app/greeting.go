package app

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/mattn/go-isatty"
)

// Greeting is a guest that tells somebody who has started bsfd on a terminal
// what to try first, and stays. On anything but a terminal there is none.
func Greeting(w io.Writer) Guest {
	f, ok := w.(*os.File)
	if !ok || !isatty.IsTerminal(f.Fd()) {
		return nil
	}
	return func(ctx context.Context, at Addresses) error {
		greet(w, at)
		<-ctx.Done()
		return nil
	}
}

// greet prints what to try.
func greet(w io.Writer, at Addresses) {
	rx := "off (diameter.enabled)"
	if at.Rx != "" {
		rx = strings.TrimPrefix(at.Rx, "tcp://")
	}
	fmt.Fprintf(w, `
  Service-based interface  %[1]s/nbsf-management/v1
  Rx (Diameter)            %[2]s
  Operator                 %[3]s

  Register a binding, and find it:
    curl -i --http2-prior-knowledge %[1]s/nbsf-management/v1/pcfBindings -H 'content-type: application/json' \
      -d '{"ipv4Addr": "10.45.0.2", "dnn": "internet", "snssai": {"sst": 1}, "pcfFqdn": "pcf.example.com"}'
    curl --http2-prior-knowledge '%[1]s/nbsf-management/v1/pcfBindings?ipv4Addr=10.45.0.2'

  Who was refused, and why:
    curl %[3]s/oc-bsf-configuration/v1/refusals

`, at.SBI, rx, at.OAM)
}
