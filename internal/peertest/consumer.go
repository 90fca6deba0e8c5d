// Package peertest holds the network functions that tests need on the other
// side: real servers on the loopback address with answers under control.
package peertest

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"
)

// Notification is what a Consumer received.
type Notification struct {
	Path   string
	Header http.Header
	Proto  string
	Body   map[string]any
}

// Consumer is an NF service consumer that receives notifications over HTTP/2
// in clear text.
type Consumer struct {
	// URL begins its callback URIs.
	URL string

	mu       sync.Mutex
	received []Notification
	answer   func(r *http.Request) (status int, location string)
}

// NewConsumer starts a consumer that answers 204. It ends with the test.
func NewConsumer(t testing.TB) *Consumer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &Consumer{URL: "http://" + l.Addr().String()}
	s := &http.Server{Handler: c, Protocols: new(http.Protocols)} //nolint:gosec // a peer of tests needs no timeouts
	s.Protocols.SetUnencryptedHTTP2(true)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = s.Serve(l)
	}()
	t.Cleanup(func() {
		_ = s.Close()
		<-done
	})
	return c
}

// Answer sets how notifications are answered from now on.
func (c *Consumer) Answer(f func(r *http.Request) (status int, location string)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.answer = f
}

// Received returns the notifications that were answered with success.
func (c *Consumer) Received() []Notification {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Notification(nil), c.received...)
}

// ServeHTTP implements http.Handler.
func (c *Consumer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	c.mu.Lock()
	answer := c.answer
	c.mu.Unlock()
	status, location := http.StatusNoContent, ""
	if answer != nil {
		status, location = answer(r)
	}
	if status/100 == 2 {
		n := Notification{Path: r.URL.Path, Header: r.Header, Proto: r.Proto}
		if err := json.Unmarshal(body, &n.Body); err == nil {
			c.mu.Lock()
			c.received = append(c.received, n)
			c.mu.Unlock()
		}
	}
	if location != "" {
		w.Header().Set("Location", location)
	}
	w.WriteHeader(status)
}
