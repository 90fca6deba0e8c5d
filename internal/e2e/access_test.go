package e2e

import (
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestAccessToTheConfigurationAPI proves who may do what: on the loopback
// interface everybody, beyond it only who is named, by token or by certificate,
// with the role that was given; and nobody without TLS.
func TestAccessToTheConfigurationAPI(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	certFile, keyFile := ca.issueAs("server", "server", time.Now().Add(time.Hour))
	digest := func(token string) string { sum := sha256.Sum256([]byte(token)); return hex.EncodeToString(sum[:]) }
	section := fmt.Sprintf(`oam:
  tls: {certFile: %s, keyFile: %s, clientCaFile: %s}
  tokens:
    - {name: alice, role: operator, sha256: %s}
    - {name: bob, role: viewer, sha256: %s}
  subjects: [{commonName: carol, role: operator}]
`, certFile, keyFile, ca.file, digest("secret-a"), digest("secret-b"))
	file := filepath.Join(t.TempDir(), "bsfd.yaml")
	if err := os.WriteFile(file, []byte(section), 0o600); err != nil {
		t.Fatal(err)
	}
	p := launch(t, "--config", file, "--storage.engine", "memory", "--oam.listen", "0.0.0.0:0")
	_, port, err := net.SplitHostPort(strings.TrimPrefix(p.oam, "https://"))
	if err != nil {
		t.Fatal(err)
	}
	url := "https://127.0.0.1:" + port
	client := func(name string) *http.Client {
		conf := &tls.Config{RootCAs: ca.pool()}
		if name != "" {
			cert, key := ca.issueAs(name, name, time.Now().Add(time.Hour))
			pair, err := tls.LoadX509KeyPair(cert, key)
			if err != nil {
				t.Fatal(err)
			}
			conf.Certificates = []tls.Certificate{pair}
		}
		return &http.Client{Transport: &http.Transport{TLSClientConfig: conf}}
	}
	for _, x := range []struct {
		certificate, token string
		read, write        int
		name               string
	}{
		{"", "", 401, 401, ""},
		{"", "secret-c", 401, 401, ""},
		{"", "secret-a", 200, 200, "alice"},
		{"", "secret-b", 200, 403, ""},
		{"carol", "", 200, 200, "certificate carol"},
		{"dave", "", 200, 403, ""},
		{"dave", "secret-a", 200, 200, "alice"},
	} {
		c := client(x.certificate)
		headers := []string{}
		if x.token != "" {
			headers = []string{"Authorization", "Bearer " + x.token}
		}
		const resource = ocRoot + "controlledShutdown"
		for _, path := range []string{resource, ocRoot + "auditTrail", "/diameter/peers", ocRoot + "diameterRepaving/config"} {
			if a := do(t, c, "GET", url+path, "", headers...); a.status != x.read {
				t.Errorf("%+v: GET %s %d", x, path, a.status)
			}
		}
		if a := do(t, c, "PATCH", url+resource, `{"operationalState":"NORMAL"}`, append(headers, "Content-Type", "application/json")...); a.status != x.write {
			t.Errorf("%+v: PATCH %d %s", x, a.status, a.body)
		}
		if a := do(t, c, "PUT", url+ocRoot+"diameterRepaving/config", `{}`, headers...); a.status != x.write {
			t.Errorf("%+v: PUT of repaving %d", x, a.status)
		}
		if a := do(t, c, "GET", url+"/livez", "", headers...); a.status != 200 {
			t.Errorf("%+v: health %d", x, a.status)
		}
		if x.name != "" {
			trail := do(t, c, "GET", url+ocRoot+"auditTrail", "", headers...)
			if i := strings.LastIndex(string(trail.body), `"who"`); !strings.Contains(string(trail.body[max(i, 0):]), `"name":"`+x.name+`"`) {
				t.Errorf("%+v: the audit trail says %s", x, trail.body)
			}
		}
	}
	for name, args := range map[string][]string{
		"no TLS": {"--oam.listen", "0.0.0.0:0"},
		"nobody": {"--oam.listen", "0.0.0.0:0", "--oam.tls.certFile", certFile, "--oam.tls.keyFile", keyFile},
	} {
		p := launch(t, append(args, "--storage.engine", "memory")...)
		c, url := http.DefaultClient, strings.Replace(p.oam, "[::]", "127.0.0.1", 1)
		if strings.HasPrefix(url, "https") {
			c, url = client(""), "https://127.0.0.1:"+url[strings.LastIndex(url, ":")+1:]
		}
		if a := do(t, c, "GET", url+ocRoot+"controlledShutdown", ""); a.status != 403 {
			t.Errorf("%s: %d", name, a.status)
		}
		if a := do(t, c, "GET", url+"/readyz", ""); a.status != 200 {
			t.Errorf("%s: health %d", name, a.status)
		}
		if !strings.Contains(p.logs(), "the configuration API is closed") {
			t.Errorf("%s: nothing in the log", name)
		}
	}
}
