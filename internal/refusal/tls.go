package refusal

import "strings"

// Handshake is the refusal of a TLS handshake that failed. section is the part
// of the configuration that has the certificates of the listener.
func Handshake(section, peer, reason string) *Refusal {
	return &Refusal{
		Interface: "tls", What: "handshake on " + section, Result: "failed", Detail: reason, Peer: peer,
		Hint: handshakeHint(section, reason),
	}
}

// handshakeHint says what to change, from what crypto/tls says.
func handshakeHint(section, reason string) string {
	for _, h := range [...]struct{ part, hint string }{
		{"client didn't provide a certificate", "the client needs a certificate of an authority in " + section},
		{"failed to verify certificate", "the client's certificate is not of an authority in " + section + ", or has expired"},
		{"unknown certificate authority", "the client must trust the authority of the certificate in " + section},
		{"bad certificate", "the client refuses the certificate in " + section + ": trust its authority, and use a name that it has"},
		{"first record does not look like a TLS handshake", "the client speaks clear text; here is TLS"},
		{"protocol version", "the client offers no TLS version that " + section + " allows"},
		{"no cipher suite", "the client offers no cipher suite in common"},
		{"no application protocol", "the client offers neither h2 nor http/1.1 by ALPN"},
	} {
		if strings.Contains(reason, h.part) {
			return h.hint
		}
	}
	return ""
}
