package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"bsfd/config"
)

// TestProcess proves that the whole process comes up through this package, that
// it is ready when its guest comes, and that it ends when the guest leaves.
func TestProcess(t *testing.T) {
	for _, rx := range []bool{true, false} {
		cfg, err := config.FromArgs("serve", []string{
			"--storage.engine", "memory", "--sbi.listen", "127.0.0.1:0", "--oam.listen", "127.0.0.1:0", "--diameter.listen", "127.0.0.1:0",
			"--sbi.drainDelay", "0s", fmt.Sprintf("--diameter.enabled=%t", rx),
		}, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		var log, greeting bytes.Buffer
		visited := false
		err = New(cfg, "test", &log).Run(t.Context(), func(ctx context.Context, at Addresses) error {
			visited = true
			greet(&greeting, at)
			for _, url := range []string{at.OAM + "/readyz", at.SBI + "/nbsf-management/v1/pcfBindings?ipv4Addr=10.0.0.1"} {
				req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
				if err != nil {
					return err
				}
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					return err
				}
				_, err = io.Copy(io.Discard, resp.Body)
				if resp.Body.Close(); err != nil || resp.StatusCode >= 300 {
					t.Errorf("%s: %d %v", url, resp.StatusCode, err)
				}
			}
			http.DefaultClient.CloseIdleConnections()
			if strings.HasPrefix(at.Rx, "tcp://127.0.0.1:") != rx {
				t.Errorf("Rx is at %q", at.Rx)
			}
			for _, want := range []string{at.SBI + "/nbsf-management/v1", at.OAM + "/oc-bsf-configuration/v1/refusals"} {
				if !strings.HasPrefix(want, "http://127.0.0.1:") || !strings.Contains(greeting.String(), want) {
					t.Errorf("%s is not in the greeting:\n%s", want, greeting.String())
				}
			}
			return nil
		})
		if err != nil || !visited {
			t.Errorf("visited %t: %v\n%s", visited, err, log.String())
		}
	}
}

// TestNoGreeting proves that nobody is greeted who is no terminal.
func TestNoGreeting(t *testing.T) {
	if Greeting(new(bytes.Buffer)) != nil {
		t.Error("a file is greeted")
	}
}
