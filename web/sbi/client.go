package sbi

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"bsfd/internal/admission"
	"bsfd/internal/tlsfiles"
)

// ClientConfig configures a Client.
type ClientConfig struct {
	// DialTimeout bounds the set-up of a connection.
	DialTimeout time.Duration `koanf:"dialTimeout" usage:"bound of the set-up of a connection"`
	// CAFile, when set, replaces the certificate authorities of the system.
	CAFile string `koanf:"caFile" usage:"authorities for receivers, PEM; the ones of the system otherwise"`
	// UserAgent is the User-Agent of every request, "BSF-<instance id> <fqdn>"
	// (TS 29.500 §5.2.2.2).
	UserAgent string `koanf:"-"`
}

// Pacer holds requests back: from servers that are overloaded, and all of them
// while this node is to send nothing.
type Pacer interface {
	// MaySend reports whether a request may be sent to the URI now.
	MaySend(uri string) bool
	// Answered notes the status and the header of an answer (3gpp-Sbi-Oci and
	// Retry-After, TS 29.500 §6.4).
	Answered(uri string, status int, header http.Header)
	// SendPriority is the 3gpp-Sbi-Message-Priority of requests, or
	// admission.Absent.
	SendPriority() int
}

// ErrHeld says that a request was not sent because the Pacer holds it back.
var ErrHeld = errors.New("held back for now")

// Client sends requests of the BSF to other network functions: HTTP/2 with
// prior knowledge for http, HTTP/2 by ALPN for https.
type Client struct {
	cfg   ClientConfig
	http  *http.Client
	pacer Pacer
}

// NewClient reads the certificate authorities and returns a Client that asks
// the pacer before each request.
func NewClient(cfg ClientConfig, pacer Pacer) (*Client, error) {
	t := &http.Transport{
		DialContext:           (&net.Dialer{Timeout: cfg.DialTimeout}).DialContext,
		TLSHandshakeTimeout:   cfg.DialTimeout,
		TLSClientConfig:       &tls.Config{MinVersion: tls.VersionTLS12},
		MaxIdleConnsPerHost:   4,
		IdleConnTimeout:       90 * time.Second,
		ResponseHeaderTimeout: time.Minute,
		Protocols:             new(http.Protocols),
	}
	t.Protocols.SetHTTP2(true)
	t.Protocols.SetUnencryptedHTTP2(true)
	if cfg.CAFile != "" {
		b, _, err := tlsfiles.Files{CAFile: cfg.CAFile}.Load(time.Now())
		if err != nil {
			return nil, err
		}
		t.TLSClientConfig.RootCAs = b.CAs
	}
	return &Client{cfg: cfg, pacer: pacer, http: &http.Client{
		Transport:     t,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// Close drops idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// Errors of redirects.
var (
	errRedirectLoop      = errors.New("redirect loop")
	errTooManyRedirects  = errors.New("too many redirects")
	errRedirectDowngrade = errors.New("redirect from https to http")
)

// maxRedirects bounds the redirects of one request.
const maxRedirects = 5

// Response is the answer to a Post.
type Response struct {
	Status int
	// Moved is the URI that a permanent redirect (308) named, if every
	// redirect on the way was one; empty otherwise.
	Moved string
}

// Post sends a JSON body with the given header fields and follows redirects
// (TS 29.500 §6.10.9): method and body stay, at most five hops, no loops, and
// never from https to http. ErrHeld says that nothing was sent.
func (c *Client) Post(ctx context.Context, uri string, header http.Header, body []byte) (Response, error) {
	seen := map[string]bool{}
	permanent := true
	for hop := 0; ; hop++ {
		if seen[uri] {
			return Response{}, errRedirectLoop
		}
		seen[uri] = true
		status, location, err := c.post(ctx, uri, header, body)
		if err != nil {
			return Response{}, err
		}
		if status != http.StatusTemporaryRedirect && status != http.StatusPermanentRedirect {
			r := Response{Status: status}
			if hop > 0 && permanent {
				r.Moved = uri
			}
			return r, nil
		}
		if hop == maxRedirects {
			return Response{}, errTooManyRedirects
		}
		permanent = permanent && status == http.StatusPermanentRedirect
		if uri, err = redirect(uri, location); err != nil {
			return Response{}, err
		}
	}
}

func (c *Client) post(ctx context.Context, uri string, header http.Header, body []byte) (status int, location string, err error) {
	if !c.pacer.MaySend(uri) {
		return 0, "", ErrHeld
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, uri, bytes.NewReader(body))
	if err != nil {
		return 0, "", err
	}
	for field, values := range header {
		req.Header[field] = values
	}
	if p := c.pacer.SendPriority(); p != admission.Absent {
		req.Header[HeaderMessagePriority] = []string{strconv.Itoa(p)}
	}
	req.Header.Set("User-Agent", c.cfg.UserAgent)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, application/problem+json")
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	c.pacer.Answered(uri, resp.StatusCode, resp.Header)
	// The connection is used again only when the body was read.
	const enough = 64 << 10
	if _, err := io.CopyN(io.Discard, resp.Body, enough); err != nil && !errors.Is(err, io.EOF) {
		return 0, "", err
	}
	return resp.StatusCode, resp.Header.Get("Location"), nil
}

func redirect(from, location string) (string, error) {
	base, err := url.Parse(from)
	if err != nil {
		return "", err
	}
	to, err := base.Parse(location)
	if err != nil || location == "" || to.Host == "" {
		return "", fmt.Errorf("redirect to %q", location)
	}
	if base.Scheme == "https" && to.Scheme != "https" {
		return "", errRedirectDowngrade
	}
	return to.String(), nil
}
