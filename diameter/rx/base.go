package rx

import (
	"net/netip"
	"slices"

	"github.com/fiorix/go-diameter/v4/diam"
	"github.com/fiorix/go-diameter/v4/diam/avp"
	"github.com/fiorix/go-diameter/v4/diam/datatype"
	"github.com/fiorix/go-diameter/v4/diam/dict"
)

// Capabilities is what a node tells about itself in CER and CEA (RFC 6733
// §5.3).
type Capabilities struct {
	Origin
	HostIPAddresses []netip.Addr
	VendorID        uint32
	ProductName     string
	// Applications are the Auth-Application-Ids, those inside Vendor-Specific-
	// Application-Id included.
	Applications []uint32
	// InbandSecurity lists Inband-Security-Ids; empty means that only
	// NO_INBAND_SECURITY is offered.
	InbandSecurity []uint32
	Firmware       uint32
}

// inbandNone is NO_INBAND_SECURITY (RFC 6733 §6.10).
const inbandNone = 0

// Common reports whether Rx can be spoken with the node: it offers Rx in any
// form, or it relays everything.
func (c *Capabilities) Common() bool {
	return slices.Contains(c.Applications, ApplicationID) || slices.Contains(c.Applications, RelayID)
}

// SecureEnough reports whether a connection without in-band security suits the
// node.
func (c *Capabilities) SecureEnough() bool {
	return len(c.InbandSecurity) == 0 || slices.Contains(c.InbandSecurity, inbandNone)
}

// ParseCapabilities reads a CER or CEA that Scan has accepted. The error is a
// *Error.
func ParseCapabilities(v *View) (*Capabilities, error) {
	c := &Capabilities{Origin: Origin{Host: string(v.OriginHost.Data), Realm: string(v.OriginRealm.Data)}}
	switch {
	case v.Application != 0:
		return nil, fail(ApplicationUnsupported, nil, "capabilities exchange with application %d", v.Application)
	case c.Host == "":
		return nil, missing(OriginHost, 0, 1, "Origin-Host")
	case c.Realm == "":
		return nil, missing(OriginRealm, 0, 1, "Origin-Realm")
	}
	for off := HeaderLen; off < len(v.Raw); {
		a, next, err := Next(v.Raw, off)
		if err != nil {
			return nil, err
		}
		if err := c.take(&a); err != nil {
			return nil, err
		}
		off = next
	}
	return c, nil
}

// CheckAddresses returns the error for a CER without Host-IP-Address.
func (c *Capabilities) CheckAddresses() error {
	if len(c.HostIPAddresses) == 0 {
		return missing(HostIPAddress, 0, 6, "Host-IP-Address")
	}
	return nil
}

// take reads one AVP of a CER or CEA.
func (c *Capabilities) take(a *AVP) error {
	if a.Vendor != VendorIETF {
		return nil
	}
	var number *uint32
	var list *[]uint32
	switch a.Code {
	case HostIPAddress:
		return c.takeAddress(a)
	case ProductName:
		c.ProductName = string(a.Data)
		return nil
	case VendorSpecificApplicationID:
		return c.takeApplication(a)
	case VendorID:
		number = &c.VendorID
	case OriginStateID:
		number = &c.StateID
	case FirmwareRevision:
		number = &c.Firmware
	case AuthApplicationID, AcctApplicationID:
		list = &c.Applications
	case InbandSecurityID:
		list = &c.InbandSecurity
	default:
		return nil
	}
	n, ok := a.Uint32()
	switch {
	case !ok:
		return invalid(InvalidAVPLength, a, "AVP %d: %d octets, not 4", a.Code, len(a.Data))
	case number != nil:
		*number = n
	case len(*list) < maxApplications && !slices.Contains(*list, n):
		*list = append(*list, n)
	}
	return nil
}

// maxApplications bounds what is kept of a list in a CER.
const maxApplications = 1024

func (c *Capabilities) takeAddress(a *AVP) error {
	// The address family comes first (RFC 6733 §4.3.1): 1 is IPv4, 2 is IPv6.
	if len(a.Data) < 2 {
		return invalid(InvalidAVPLength, a, "Host-IP-Address: %d octets", len(a.Data))
	}
	if addr, ok := netip.AddrFromSlice(a.Data[2:]); ok && len(c.HostIPAddresses) < maxApplications {
		c.HostIPAddresses = append(c.HostIPAddresses, addr)
	}
	return nil
}

func (c *Capabilities) takeApplication(group *AVP) error {
	for off := 0; off < len(group.Data); {
		a, next, err := Next(group.Data, off)
		if err != nil {
			return err
		}
		if a.is(AuthApplicationID, 0) || a.is(AcctApplicationID, 0) {
			if err := c.take(&a); err != nil {
				return err
			}
		}
		off = next
	}
	return nil
}

// The base messages of this node are written by the library: it knows the
// types of their AVPs.

func newMessage(command Command, flags uint8, hopByHop, endToEnd uint32, o Origin) *diam.Message {
	m := diam.NewMessage(uint32(command), flags, 0, hopByHop, endToEnd, dict.Default)
	m.AddAVP(diam.NewAVP(avp.OriginHost, avp.Mbit, 0, datatype.DiameterIdentity(o.Host)))
	m.AddAVP(diam.NewAVP(avp.OriginRealm, avp.Mbit, 0, datatype.DiameterIdentity(o.Realm)))
	return m
}

// encode cannot fail: it writes to memory what this package has built.
func encode(m *diam.Message) []byte {
	b, err := m.Serialize()
	if err != nil {
		panic(err)
	}
	return b
}

// CER is a capabilities exchange request.
func (c *Capabilities) CER(hopByHop, endToEnd uint32) []byte {
	m := newMessage(CapabilitiesExchange, FlagRequest, hopByHop, endToEnd, c.Origin)
	c.add(m)
	return encode(m)
}

// CEA is the answer to a CER. Text is the Error-Message and failed the content
// of the Failed-AVP; both may be empty.
func (c *Capabilities) CEA(request Header, result uint32, text string, failed []byte) []byte {
	m := diam.NewMessage(uint32(CapabilitiesExchange), errorFlag(result), 0, request.HopByHop, request.EndToEnd, dict.Default)
	m.AddAVP(diam.NewAVP(avp.ResultCode, avp.Mbit, 0, datatype.Unsigned32(result)))
	m.AddAVP(diam.NewAVP(avp.OriginHost, avp.Mbit, 0, datatype.DiameterIdentity(c.Host)))
	m.AddAVP(diam.NewAVP(avp.OriginRealm, avp.Mbit, 0, datatype.DiameterIdentity(c.Realm)))
	if text != "" {
		m.AddAVP(diam.NewAVP(avp.ErrorMessage, 0, 0, datatype.UTF8String(text)))
	}
	c.add(m)
	b := encode(m)
	if failed != nil {
		b = finish(appendAVP(b, FailedAVP, AVPMandatory, 0, failed), 0)
	}
	return b
}

func errorFlag(result uint32) uint8 {
	if Base(result).Protocol() {
		return FlagError
	}
	return 0
}

func (c *Capabilities) add(m *diam.Message) {
	for _, a := range c.HostIPAddresses {
		m.AddAVP(diam.NewAVP(avp.HostIPAddress, avp.Mbit, 0, datatype.Address(a.AsSlice())))
	}
	m.AddAVP(diam.NewAVP(avp.VendorID, avp.Mbit, 0, datatype.Unsigned32(c.VendorID)))
	m.AddAVP(diam.NewAVP(avp.ProductName, 0, 0, datatype.UTF8String(c.ProductName)))
	m.AddAVP(diam.NewAVP(avp.OriginStateID, avp.Mbit, 0, datatype.Unsigned32(c.StateID)))
	for _, vendor := range []datatype.Unsigned32{Vendor3GPP, VendorETSI} {
		m.AddAVP(diam.NewAVP(avp.SupportedVendorID, avp.Mbit, 0, vendor))
	}
	for _, app := range c.Applications {
		if app == RelayID {
			m.AddAVP(diam.NewAVP(avp.AuthApplicationID, avp.Mbit, 0, datatype.Unsigned32(app)))
			continue
		}
		m.AddAVP(diam.NewAVP(avp.VendorSpecificApplicationID, avp.Mbit, 0, &diam.GroupedAVP{AVP: []*diam.AVP{
			diam.NewAVP(avp.VendorID, avp.Mbit, 0, datatype.Unsigned32(Vendor3GPP)),
			diam.NewAVP(avp.AuthApplicationID, avp.Mbit, 0, datatype.Unsigned32(app)),
		}}))
		// Some peers route by the plain form alone, and none is disturbed by it.
		m.AddAVP(diam.NewAVP(avp.AuthApplicationID, avp.Mbit, 0, datatype.Unsigned32(app)))
	}
	for _, id := range c.InbandSecurity {
		m.AddAVP(diam.NewAVP(avp.InbandSecurityID, avp.Mbit, 0, datatype.Unsigned32(id)))
	}
	m.AddAVP(diam.NewAVP(avp.FirmwareRevision, 0, 0, datatype.Unsigned32(c.Firmware)))
}

// DWR is a device watchdog request (RFC 6733 §5.5.1).
func DWR(o Origin, hopByHop, endToEnd uint32) []byte {
	m := newMessage(DeviceWatchdog, FlagRequest, hopByHop, endToEnd, o)
	m.AddAVP(diam.NewAVP(avp.OriginStateID, avp.Mbit, 0, datatype.Unsigned32(o.StateID)))
	return encode(m)
}

// Cause is a Disconnect-Cause (RFC 6733 §5.4.3).
type Cause uint32

// The causes of a disconnection.
const (
	Rebooting              Cause = 0
	Busy                   Cause = 1
	DoNotWantToTalkToYou   Cause = 2
	lastCause                    = DoNotWantToTalkToYou
	unknownDisconnectCause       = "unknown cause"
)

// String is the name of the cause in RFC 6733.
func (c Cause) String() string {
	if c > lastCause {
		return unknownDisconnectCause
	}
	return [...]string{"REBOOTING", "BUSY", "DO_NOT_WANT_TO_TALK_TO_YOU"}[c]
}

// Valid reports whether RFC 6733 knows the cause.
func (c Cause) Valid() bool { return c <= lastCause }

// DPR is a disconnect peer request (RFC 6733 §5.4.1).
func DPR(o Origin, cause Cause, hopByHop, endToEnd uint32) []byte {
	m := newMessage(DisconnectPeer, FlagRequest, hopByHop, endToEnd, o)
	m.AddAVP(diam.NewAVP(avp.DisconnectCause, avp.Mbit, 0, datatype.Enumerated(cause)))
	return encode(m)
}

// DisconnectCauseOf reads the cause of a DPR; Rebooting when it has none that
// can be read.
func DisconnectCauseOf(v *View) Cause {
	for off := HeaderLen; off < len(v.Raw); {
		a, next, err := Next(v.Raw, off)
		if err != nil {
			break
		}
		if a.is(DisconnectCause, 0) {
			n, _ := a.Uint32()
			return Cause(n)
		}
		off = next
	}
	return Rebooting
}

// StateID is the Origin-State-Id of a message, 0 when it has none.
func (v *View) StateID() uint32 {
	n, _ := (&AVP{Data: v.OriginStateID.Data}).Uint32()
	return n
}
