package diameter

import (
	"errors"
	"fmt"
	"net"
	"strings"
)

// Peer is a node that is known.
type Peer struct {
	Host  string `koanf:"host" usage:"its DiameterIdentity"`
	Realm string `koanf:"realm" usage:"its realm; any when empty"`
	// Address is where it is dialled.
	Address   string    `koanf:"address" usage:"host:port to dial; the host's name and the standard port when empty"`
	Connect   bool      `koanf:"connect" usage:"dial it; otherwise it dials"`
	Transport Transport `koanf:"transport" usage:"tcp, tls or sctp; tcp when empty"`
	// MinTLS and MaxTLS narrow the versions of TLS for this peer.
	MinTLS string `koanf:"minTlsVersion" usage:"lowest TLS version with it"`
	MaxTLS string `koanf:"maxTlsVersion" usage:"highest TLS version with it"`
	// Instance marks another bsfd that serves the same bindings.
	Instance bool `koanf:"instance" usage:"it is another bsfd of the same cluster: requests that cannot be delivered directly go through it"`
	// OwnOrigin presents this node as the origin of RAR and ASR.
	OwnOrigin bool `koanf:"ownOrigin" usage:"RAR and ASR to it carry the Origin-Host and Origin-Realm of this node (Kamailio)"`
	// PcfSetID names the set of a PCF.
	PcfSetID string `koanf:"pcfSetId" usage:"set of the PCF: it may stand in for others of the set when bindings allow it"`
}

func (c *Config) checkPeers() error {
	seen := make(map[string]bool)
	for i, p := range c.Peers {
		if err := c.checkPeer(p); err != nil {
			return fmt.Errorf("[%d].%w", i, err)
		}
		host := strings.ToLower(p.Host)
		if seen[host] {
			return fmt.Errorf("[%d].host: %s is there twice", i, p.Host)
		}
		seen[host] = true
	}
	return nil
}

func (c *Config) checkPeer(p Peer) error {
	switch {
	case checkIdentity(p.Host) != nil:
		return fmt.Errorf("host: %w", checkIdentity(p.Host))
	case strings.EqualFold(p.Host, c.OriginHost):
		return errors.New("host: is this node itself")
	case p.Realm != "" && checkIdentity(p.Realm) != nil:
		return fmt.Errorf("realm: %w", checkIdentity(p.Realm))
	case p.Address != "" && checkAddresses([]string{p.Address}) != nil:
		return fmt.Errorf("address: %w", checkAddresses([]string{p.Address}))
	case oneOf(p.Transport, "", TCP, TLS, SCTP) != nil:
		return fmt.Errorf("transport: must be tcp, tls or sctp")
	case p.Transport == TLS && p.Connect && c.TLS.CAFile == "":
		return errors.New("transport: tls needs diameter.tls.caFile")
	}
	if _, _, err := p.tlsVersions(c.TLS); err != nil {
		return fmt.Errorf("minTlsVersion: %w", err)
	}
	return nil
}

// address is where the peer is dialled.
func (p Peer) address() string {
	if p.Address != "" {
		return p.Address
	}
	port := "3868"
	if p.Transport == TLS {
		port = "5868"
	}
	return net.JoinHostPort(p.Host, port)
}
