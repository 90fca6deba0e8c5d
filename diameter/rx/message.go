// Package rx reads, patches and writes Diameter messages of the Rx interface
// (TS 29.214) and of the base protocol (RFC 6733). It works on the octets as
// they came: what a proxy does not understand passes unchanged. It opens no
// sockets.
package rx

import "encoding/binary"

// HeaderLen is the length of a Diameter header in octets (RFC 6733 §3).
const HeaderLen = 20

// Version is the only version of the Diameter header.
const Version = 1

// ApplicationID is the Auth-Application-Id of Rx (TS 29.214 §5.1).
const ApplicationID = 16777236

// RelayID is the application of agents that relay everything (RFC 6733 §2.4).
const RelayID = 0xffffffff

// Vendors of AVPs.
const (
	VendorIETF = 0
	Vendor3GPP = 10415
	VendorETSI = 13019
)

// The bits of Header.Flags (RFC 6733 §3).
const (
	FlagRequest    = 0x80 // R
	FlagProxiable  = 0x40 // P
	FlagError      = 0x20 // E
	FlagRetransmit = 0x10 // T
)

// Command is a Diameter command code.
type Command uint32

// The commands of the base protocol and of Rx (RFC 6733 §3.1, TS 29.214 §5.6).
const (
	CapabilitiesExchange Command = 257
	ReAuth               Command = 258
	AA                   Command = 265
	AbortSession         Command = 274
	SessionTermination   Command = 275
	DeviceWatchdog       Command = 280
	DisconnectPeer       Command = 282
)

// Base reports whether the command is one between neighbours (RFC 6733 §5):
// its messages are never forwarded.
func (c Command) Base() bool {
	return c == CapabilitiesExchange || c == DeviceWatchdog || c == DisconnectPeer
}

// Request is the abbreviation of the command's request.
func (c Command) Request() string { return c.stem() + "R" }

// Answer is the abbreviation of the command's answer.
func (c Command) Answer() string { return c.stem() + "A" }

func (c Command) stem() string {
	switch c {
	case CapabilitiesExchange:
		return "CE"
	case ReAuth:
		return "RA"
	case AA:
		return "AA"
	case AbortSession:
		return "AS"
	case SessionTermination:
		return "ST"
	case DeviceWatchdog:
		return "DW"
	case DisconnectPeer:
		return "DP"
	}
	return "??"
}

// Header is the header of a message (RFC 6733 §3).
type Header struct {
	Version     uint8
	Length      uint32 // of the whole message, in octets
	Flags       uint8
	Command     Command
	Application uint32
	HopByHop    uint32
	EndToEnd    uint32
}

// Request reports whether the message is a request.
func (h Header) Request() bool { return h.Flags&FlagRequest != 0 }

// ParseHeader reads the header of a message. b holds at least HeaderLen octets.
func ParseHeader(b []byte) Header {
	_ = b[HeaderLen-1]
	return Header{
		Version:     b[0],
		Length:      binary.BigEndian.Uint32(b) & 0xffffff,
		Flags:       b[4],
		Command:     Command(binary.BigEndian.Uint32(b[4:]) & 0xffffff),
		Application: binary.BigEndian.Uint32(b[8:]),
		HopByHop:    binary.BigEndian.Uint32(b[12:]),
		EndToEnd:    binary.BigEndian.Uint32(b[16:]),
	}
}

// SetHopByHop replaces the Hop-by-Hop Identifier of a message.
func SetHopByHop(message []byte, id uint32) { binary.BigEndian.PutUint32(message[12:], id) }

// SetApplication replaces the Application-Id of a message.
func SetApplication(message []byte, id uint32) { binary.BigEndian.PutUint32(message[8:], id) }

// SetRetransmit sets or clears the T bit of a message.
func SetRetransmit(message []byte, on bool) {
	if message[4] &^= FlagRetransmit; on {
		message[4] |= FlagRetransmit
	}
}

// appendHeader starts a message; finish sets its length.
func appendHeader(dst []byte, h Header) []byte {
	dst = binary.BigEndian.AppendUint32(dst, Version<<24)
	dst = binary.BigEndian.AppendUint32(dst, uint32(h.Flags)<<24|uint32(h.Command))
	dst = binary.BigEndian.AppendUint32(dst, h.Application)
	dst = binary.BigEndian.AppendUint32(dst, h.HopByHop)
	return binary.BigEndian.AppendUint32(dst, h.EndToEnd)
}

// finish writes the length of the message that begins at start.
func finish(dst []byte, start int) []byte {
	binary.BigEndian.PutUint32(dst[start:], Version<<24|uint32(len(dst)-start))
	return dst
}
