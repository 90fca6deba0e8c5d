package diameter

import (
	"errors"
	"fmt"
	"time"

	"bsfd/diameter/rx"
	"bsfd/internal/tlsfiles"
	"bsfd/internal/tolerate"
)

// Mode is how the gateway answers an AAR (TS 29.213 §7.1).
type Mode string

// The modes of the gateway.
const (
	ModeProxy    Mode = "proxy"    // forwards requests to the PCF
	ModeRedirect Mode = "redirect" // tells the AF where the PCF is
)

// RoutingMode chooses the addresses of a peer's name that are dialled.
type RoutingMode string

// The routing modes. Where a name has both families, only those of the
// preferred one are tried.
const (
	RoutingIPv4     RoutingMode = "IPv4"
	RoutingIPv6     RoutingMode = "IPv6"
	RoutingIPv4IPv6 RoutingMode = "IPv4_IPv6"
	RoutingIPv6IPv4 RoutingMode = "IPv6_IPv4"
)

// Transport carries Diameter.
type Transport string

// The transports.
const (
	TCP  Transport = "tcp"
	TLS  Transport = "tls"
	SCTP Transport = "sctp"
)

// Config configures the gateway.
type Config struct {
	Enabled     bool     `koanf:"enabled" usage:"run the Rx gateway"`
	Listen      []string `koanf:"listen" usage:"addresses for TCP, host:port; several with commas"`
	ListenTLS   []string `koanf:"listenTls" usage:"addresses for TLS from the first octet, usually port 5868"`
	ListenSCTP  []string `koanf:"listenSctp" usage:"addresses for SCTP, ip:port"`
	OriginHost  string   `koanf:"originHost" usage:"DiameterIdentity of this node"`
	OriginRealm string   `koanf:"originRealm" usage:"realm of this node"`
	ProductName string   `koanf:"productName" usage:"Product-Name in capabilities exchange"`
	// HostIPAddresses are sent in capabilities exchange; the address of the
	// connection when empty.
	HostIPAddresses []string    `koanf:"hostIpAddresses" usage:"Host-IP-Address in capabilities exchange; the connection's own when empty"`
	Mode            Mode        `koanf:"mode" usage:"answer to an AAR: proxy or redirect"`
	RoutingMode     RoutingMode `koanf:"routingMode" usage:"address family of dialled peers: IPv4, IPv6, IPv4_IPv6 or IPv6_IPv4"`
	// AllowedRealms lets hosts in that are not in Peers.
	AllowedRealms []string `koanf:"allowedRealms" usage:"realms whose hosts may connect without being a configured peer; * for all"`
	// OwnOriginRealms are those of peers that are presented this node as the
	// origin of RAR and ASR.
	OwnOriginRealms []string `koanf:"ownOriginRealms" usage:"realms whose peers get RAR and ASR with the Origin-Host and Origin-Realm of this node (Kamailio)"`
	// FollowRedirects sends a request on to the host that a redirect names.
	FollowRedirects bool `koanf:"followRedirects" usage:"send a request to the host that a redirect (3006) of a PCF or an agent names; otherwise the AF gets the redirect"`
	// Tolerate names the rows of Tolerances that are allowed.
	Tolerate []string `koanf:"tolerate" usage:"what is served against the letter: names of docs/interoperability.md, all, or none"`
	// ServedRealms are served beside OriginRealm and the realms of peers and
	// routes.
	ServedRealms         []string      `koanf:"servedRealms" usage:"realms that are served beside those of this node, its peers and its routes; * for all"`
	ValidateRealm        bool          `koanf:"validateRealm" usage:"answer an AAR of a realm that is not served with realmNotServed"`
	ValidateBindingRealm bool          `koanf:"validateBindingRealm" usage:"answer an AAR whose realm is not the pcfDiamRealm of the binding with realmNotServed"`
	OverwriteRealm       bool          `koanf:"overwriteRealm" usage:"replace the Destination-Realm with the pcfDiamRealm of the binding"`
	DiscoveryTimeout     time.Duration `koanf:"discoveryTimeout" usage:"bound of the lookup of a binding"`
	// LookupBySubscription answers an AAR without address.
	LookupBySubscription bool     `koanf:"lookupBySubscription" usage:"find the binding of an AAR without address by Subscription-Id and Called-Station-Id"`
	ProxyInfo            bool     `koanf:"proxyInfo" usage:"add a Proxy-Info to forwarded requests"`
	Cookie               Cookie   `koanf:"cookie"`
	Priority             Priority `koanf:"messagePriority"`
	TLS                  TLSFiles `koanf:"tls"`
	Timers               Timers   `koanf:"timers"`
	Retry                Retry    `koanf:"retry"`
	Transport            Link     `koanf:"transport"`
	Limits               Limits   `koanf:"limits"`
	Sessions             Sessions `koanf:"sessions"`
	Redirect             Redirect `koanf:"redirect"`
	Results              Results  `koanf:"results"`
	Stale                Stale    `koanf:"stale"`
	Repaving             Repaving `koanf:"repaving"`
	Peers                []Peer   `koanf:"peers" usage:"nodes that may connect or are dialled"`
	Routes               []Route  `koanf:"routes" usage:"where requests go that have no connected Destination-Host"`
}

// Cookie is the AVP that carries the ocnf-service-cookie of a binding.
type Cookie struct {
	Code   uint32 `koanf:"code" usage:"code of the OCNF-SERVICE-COOKIE AVP; 0 sends none"`
	Vendor uint32 `koanf:"vendorId" usage:"vendor of the OCNF-SERVICE-COOKIE AVP"`
}

// TLSFiles are the certificates of TLS connections, PEM.
type TLSFiles struct {
	CertFile   string `koanf:"certFile" usage:"certificate chain, PEM"`
	KeyFile    string `koanf:"keyFile" usage:"private key, PEM"`
	CAFile     string `koanf:"caFile" usage:"authorities of the peers' certificates, PEM; required to dial with TLS"`
	Mutual     bool   `koanf:"mutual" usage:"peers must present a certificate"`
	MinVersion string `koanf:"minVersion" usage:"lowest TLS version: 1.2 or 1.3"`
	MaxVersion string `koanf:"maxVersion" usage:"highest TLS version: 1.2 or 1.3"`
	// CloseAfter is how long after a renewal of the certificate connections that
	// came in may keep the old one; 0 lets them.
	CloseAfter time.Duration `koanf:"closeAfter" usage:"time after which peers that connected to a certificate that was replaced are disconnected (DPR); 0s keeps them"`
}

// Timers are the times to wait for answers. Those of commands are the one of
// the interface where they are 0.
type Timers struct {
	Response time.Duration `koanf:"response" usage:"wait for an answer on Rx, 3s to 2147483647ms"`
	AAR      time.Duration `koanf:"aar" usage:"the same for AAR; 0s is the one of the interface"`
	STR      time.Duration `koanf:"str" usage:"the same for STR"`
	RAR      time.Duration `koanf:"rar" usage:"the same for RAR"`
	ASR      time.Duration `koanf:"asr" usage:"the same for ASR"`
}

// Link is the life of connections.
type Link struct {
	Watchdog     time.Duration `koanf:"watchdog" usage:"Tw of RFC 3539, 6s or more"`
	Capabilities time.Duration `koanf:"capabilities" usage:"wait for CER or CEA, TLS handshake included"`
	Connect      time.Duration `koanf:"connect" usage:"wait for a connection that is dialled"`
	Disconnect   time.Duration `koanf:"disconnect" usage:"wait for DPA"`
	ReconnectMin time.Duration `koanf:"reconnectMin" usage:"wait before the first attempt to reconnect"`
	ReconnectMax time.Duration `koanf:"reconnectMax" usage:"longest wait between attempts (Tc of RFC 6733)"`
	Write        time.Duration `koanf:"write" usage:"a peer that takes nothing for so long is disconnected"`
}

// Limits bound what peers can take.
type Limits struct {
	MessageBytes    int `koanf:"messageBytes" usage:"longest message"`
	Connections     int `koanf:"connections" usage:"connections at once"`
	Unauthenticated int `koanf:"unauthenticated" usage:"connections at once that have not exchanged capabilities"`
	QueueBytes      int `koanf:"queueBytes" usage:"octets that may wait for a peer before it is disconnected"`
	Pending         int `koanf:"pending" usage:"requests at once that wait for an answer of one connection"`
	Lookups         int `koanf:"lookups" usage:"lookups at once in a database: their highest rate is this many in a round trip"`
}

// Sessions is the memory of which PCF has an Rx session.
type Sessions struct {
	Max    int           `koanf:"max" usage:"Rx sessions that are remembered; the oldest are forgotten first"`
	MaxAge time.Duration `koanf:"maxAge" usage:"an Rx session is forgotten after this time"`
}

// Redirect is what goes with Redirect-Host (RFC 6733 §6.13, §6.14).
type Redirect struct {
	Usage     uint32        `koanf:"hostUsage" usage:"Redirect-Host-Usage: 0 DONT_CACHE, 1 ALL_SESSION or 6 ALL_USER"`
	CacheTime time.Duration `koanf:"maxCacheTime" usage:"Redirect-Max-Cache-Time"`
}

// Results are the answers to requests that cannot be forwarded, as code or
// vendor:code.
type Results struct {
	RealmNotServed string `koanf:"realmNotServed" usage:"result for a realm that is not served"`
	NoBinding      string `koanf:"noBinding" usage:"result for an address without binding"`
	Discovery      string `koanf:"discovery" usage:"result when the binding cannot be determined"`
	Unreachable    string `koanf:"unreachable" usage:"result when no peer can be reached"`
	Timeout        string `koanf:"timeout" usage:"result when no peer has answered"`
	Busy           string `koanf:"busy" usage:"result when there is too much work"`
}

// Stale is when an answer of the PCF removes the binding.
type Stale struct {
	Results []string `koanf:"results" usage:"results of an AAA, code or vendor:code, by which the PCF says that it has no such session"`
}

// Repaving is the controlled disconnection of peers so that they spread over
// the instances again.
type Repaving struct {
	Enabled            bool          `koanf:"enabled" usage:"disconnect peers when it is triggered"`
	MaxStaggerJitter   time.Duration `koanf:"maxStaggerJitter" usage:"longest random wait of an instance before it begins"`
	DisconnectInterval time.Duration `koanf:"connectionDisconnectInterval" usage:"wait between two disconnections"`
	ReinvocationDelay  time.Duration `koanf:"reinvocationDelayMin" usage:"shortest time between the end of one and the start of the next"`
	DPRDelay           time.Duration `koanf:"dprDelay" usage:"wait for outstanding answers of a peer before its DPR"`
	DisconnectCause    uint32        `koanf:"dprDisconnectCause" usage:"Disconnect-Cause: 0 REBOOTING, 1 BUSY or 2 DO_NOT_WANT_TO_TALK_TO_YOU"`
}

// DefaultConfig is the configuration without any setting.
func DefaultConfig() Config {
	return Config{
		Enabled:  true,
		Listen:   []string{"127.0.0.1:3868"},
		Tolerate: []string{tolerate.All},

		FollowRedirects: true,
		OriginHost:      "bsf.localdomain",
		OriginRealm:     "localdomain",
		ProductName:     "bsfd",
		Mode:            ModeProxy,
		RoutingMode:     RoutingIPv4IPv6,

		ValidateRealm: true, OverwriteRealm: true,
		DiscoveryTimeout: 2 * time.Second,
		Cookie:           Cookie{Code: 3601, Vendor: 111},
		Priority:         Priority{Vendor: 111},
		TLS:              TLSFiles{MinVersion: "1.2", MaxVersion: "1.3", CloseAfter: 10 * time.Minute},
		Timers:           Timers{Response: 4 * time.Second},
		Retry:            Retry{Attempts: PerCommand{1, 1, 1, 1}},
		Transport: Link{
			Watchdog: 30 * time.Second, Capabilities: 10 * time.Second, Connect: 5 * time.Second, Disconnect: 5 * time.Second,
			ReconnectMin: time.Second, ReconnectMax: 30 * time.Second, Write: 10 * time.Second,
		},
		Limits:   Limits{MessageBytes: 64 << 10, Connections: 20000, Unauthenticated: 1000, QueueBytes: 8 << 20, Pending: 65536, Lookups: 96},
		Sessions: Sessions{Max: 1 << 20, MaxAge: 24 * time.Hour},
		Redirect: Redirect{Usage: 1, CacheTime: time.Hour},
		Results: Results{
			RealmNotServed: "3003", NoBinding: "10415:5065", Discovery: "5012", Unreachable: "3002", Timeout: "3002", Busy: "3004",
		},
		Stale: Stale{Results: []string{"10415:5065"}},
		Repaving: Repaving{
			MaxStaggerJitter: 200 * time.Millisecond, DisconnectInterval: 100 * time.Millisecond,
			ReinvocationDelay: time.Minute, DPRDelay: time.Second,
		},
	}
}

// Check reports the first wrong setting with its key.
func (c *Config) Check() error {
	if !c.Enabled {
		return nil
	}
	for _, part := range []struct {
		key string
		err error
	}{
		{"originHost", checkIdentity(c.OriginHost)},
		{"originRealm", checkIdentity(c.OriginRealm)},
		{"listen", checkAddresses(c.Listen)},
		{"listenTls", c.checkListenTLS()},
		{"listenSctp", checkAddresses(c.ListenSCTP)},
		{"hostIpAddresses", checkIPs(c.HostIPAddresses)},
		{"mode", oneOf(c.Mode, ModeProxy, ModeRedirect)},
		{"routingMode", oneOf(c.RoutingMode, RoutingIPv4, RoutingIPv6, RoutingIPv4IPv6, RoutingIPv6IPv4)},
		{"discoveryTimeout", within(c.DiscoveryTimeout, time.Millisecond, time.Minute)},
		{"tls", c.TLS.check()},
		{"tolerate", c.checkTolerate()},
		{"timers", c.Timers.check()},
		{"retry", c.Retry.check()},
		{"transport", c.Transport.check()},
		{"limits", c.Limits.check()},
		{"sessions.maxAge", within(c.Sessions.MaxAge, time.Minute, 30*24*time.Hour)},
		{"sessions.max", atLeast(c.Sessions.Max, 0)},
		{"redirect.hostUsage", oneOf(c.Redirect.Usage, 0, 1, 6)},
		{"repaving", c.Repaving.check()},
		{"peers", c.checkPeers()},
		{"routes", c.checkRoutes()},
	} {
		if part.err != nil {
			return fmt.Errorf("%s: %w", part.key, part.err)
		}
	}
	_, err := c.results()
	return err
}

func (c *Config) checkListenTLS() error {
	if len(c.ListenTLS) > 0 && c.TLS.CertFile == "" {
		return errors.New("needs tls.certFile")
	}
	return checkAddresses(c.ListenTLS)
}

func (t TLSFiles) check() error {
	switch {
	case (t.CertFile == "") != (t.KeyFile == ""):
		return errors.New("certFile and keyFile belong together")
	case t.Mutual && t.CAFile == "":
		return errors.New("mutual: needs caFile")
	}
	if err := within(t.CloseAfter, 0, 30*24*time.Hour); err != nil {
		return fmt.Errorf("closeAfter: %w", err)
	}
	_, _, err := tlsfiles.Versions(t.MinVersion, t.MaxVersion)
	return err
}

// Bounds of a response timer.
const (
	minResponse = 3 * time.Second
	maxResponse = 2147483647 * time.Millisecond
)

func (t Timers) check() error {
	if err := within(t.Response, minResponse, maxResponse); err != nil {
		return fmt.Errorf("response: %w", err)
	}
	for name, d := range map[string]time.Duration{"aar": t.AAR, "str": t.STR, "rar": t.RAR, "asr": t.ASR} {
		if d == 0 {
			continue
		}
		if err := within(d, minResponse, maxResponse); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// of is the time to wait for the answer to a command.
func (t Timers) of(k kind) time.Duration {
	if d := [kinds]time.Duration{t.AAR, t.STR, t.RAR, t.ASR, 0}[k]; d != 0 {
		return d
	}
	return t.Response
}

func (l Link) check() error {
	for _, x := range []struct {
		key       string
		v         time.Duration
		low, high time.Duration
	}{
		{"watchdog", l.Watchdog, 6 * time.Second, time.Hour},
		{"capabilities", l.Capabilities, 100 * time.Millisecond, 5 * time.Minute},
		{"connect", l.Connect, 100 * time.Millisecond, 5 * time.Minute},
		{"disconnect", l.Disconnect, 100 * time.Millisecond, 5 * time.Minute},
		{"reconnectMin", l.ReconnectMin, 10 * time.Millisecond, l.ReconnectMax},
		{"reconnectMax", l.ReconnectMax, 10 * time.Millisecond, time.Hour},
		{"write", l.Write, 100 * time.Millisecond, 5 * time.Minute},
	} {
		if err := within(x.v, x.low, x.high); err != nil {
			return fmt.Errorf("%s: %w", x.key, err)
		}
	}
	return nil
}

func (l Limits) check() error {
	for _, x := range []struct {
		key    string
		v, low int
	}{
		{"messageBytes", l.MessageBytes, 4096}, {"connections", l.Connections, 1}, {"unauthenticated", l.Unauthenticated, 1},
		{"queueBytes", l.QueueBytes, 64 << 10}, {"pending", l.Pending, 1}, {"lookups", l.Lookups, 1},
	} {
		if err := atLeast(x.v, x.low); err != nil {
			return fmt.Errorf("%s: %w", x.key, err)
		}
	}
	if l.MessageBytes > 16<<20-4 {
		return errors.New("messageBytes: must be at most 16777212, the longest message of Diameter")
	}
	return nil
}

func (r Repaving) check() error {
	if !rx.Cause(r.DisconnectCause).Valid() {
		return errors.New("dprDisconnectCause: must be 0, 1 or 2")
	}
	for key, d := range map[string]time.Duration{
		"maxStaggerJitter": r.MaxStaggerJitter, "connectionDisconnectInterval": r.DisconnectInterval,
		"reinvocationDelayMin": r.ReinvocationDelay, "dprDelay": r.DPRDelay,
	} {
		if err := within(d, 0, time.Hour); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	return nil
}

func (c *Config) checkTolerate() error {
	_, err := Tolerances.Parse(c.Tolerate)
	return err
}
