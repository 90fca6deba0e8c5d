package rxnode

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"sync/atomic"

	"bsfd/diameter/rx"
)

// ReadMessage reads one message.
func ReadMessage(r io.Reader) ([]byte, error) {
	var head [rx.HeaderLen]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return nil, err
	}
	length := rx.ParseHeader(head[:]).Length
	if length < rx.HeaderLen || length > 1<<20 {
		return nil, fmt.Errorf("a message of %d octets", length)
	}
	m := make([]byte, length)
	copy(m, head[:])
	_, err := io.ReadFull(r, m[rx.HeaderLen:])
	return m, err
}

// ResultOf is the result of an answer, the zero Result when it has none.
func ResultOf(m []byte) rx.Result {
	var v rx.View
	if v.Scan(m) != nil {
		return rx.Result{}
	}
	r, _ := v.Result()
	return r
}

// Message builds a message of Rx from AVPs with their padding.
func Message(command rx.Command, flags uint8, endToEnd uint32, avps ...[]byte) []byte {
	m := make([]byte, rx.HeaderLen)
	for _, a := range avps {
		m = append(m, a...)
	}
	binary.BigEndian.PutUint32(m, rx.Version<<24|uint32(len(m)))
	binary.BigEndian.PutUint32(m[4:], uint32(flags)<<24|uint32(command))
	binary.BigEndian.PutUint32(m[8:], rx.ApplicationID)
	binary.BigEndian.PutUint32(m[16:], endToEnd)
	return m
}

// Text is an AVP of a text, with the M bit.
func Text(code rx.Code, s string) []byte { return rx.Encode(code, rx.AVPMandatory, 0, []byte(s)) }

// Number is an AVP of an Unsigned32, with the M bit.
func Number(code rx.Code, n uint32) []byte {
	return rx.Encode(code, rx.AVPMandatory, 0, binary.BigEndian.AppendUint32(nil, n))
}

// Session is what the requests of one Rx session have in common.
type Session struct {
	ID         string
	Host       string // Origin-Host
	Realm      string // Origin-Realm
	DestRealm  string
	DestHost   string // empty for none
	endToEnd   atomic.Uint32
	Extra      [][]byte // more AVPs of an AAR
	NoRealmAVP bool     // leaves Destination-Realm out
}

// AAR is a request to authorize media of the UE with the address.
func (s *Session) AAR(address netip.Addr, more ...[]byte) []byte {
	avps := s.head()
	if address.Is4() {
		avps = append(avps, rx.Encode(rx.FramedIPAddress, rx.AVPMandatory, 0, address.AsSlice()))
	} else if address.IsValid() {
		avps = append(avps, rx.Encode(rx.FramedIPv6Prefix, rx.AVPMandatory, 0, append([]byte{0, 128}, address.AsSlice()...)))
	}
	avps = append(avps, s.Extra...)
	return Message(rx.AA, rx.FlagRequest|rx.FlagProxiable, s.endToEnd.Add(1), append(avps, more...)...)
}

// Other is an STR, RAR or ASR.
func (s *Session) Other(c rx.Command, more ...[]byte) []byte {
	avps := s.head()
	switch c {
	case rx.SessionTermination:
		avps = append(avps, Number(rx.TerminationCause, 1))
	case rx.ReAuth:
		avps = append(avps, rx.Encode(rx.SpecificAction, rx.AVPMandatory, rx.Vendor3GPP, []byte{0, 0, 0, 2}))
	case rx.AbortSession:
		avps = append(avps, rx.Encode(rx.AbortCause, rx.AVPMandatory, rx.Vendor3GPP, []byte{0, 0, 0, 0}))
	}
	return Message(c, rx.FlagRequest|rx.FlagProxiable, s.endToEnd.Add(1), append(avps, more...)...)
}

func (s *Session) head() [][]byte {
	avps := [][]byte{
		Text(rx.SessionID, s.ID), Number(rx.AuthApplicationID, rx.ApplicationID),
		Text(rx.OriginHost, s.Host), Text(rx.OriginRealm, s.Realm),
	}
	if !s.NoRealmAVP {
		avps = append(avps, Text(rx.DestinationRealm, s.DestRealm))
	}
	if s.DestHost != "" {
		avps = append(avps, Text(rx.DestinationHost, s.DestHost))
	}
	return avps
}
