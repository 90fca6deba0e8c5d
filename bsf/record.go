package bsf

import (
	"encoding/hex"
	"fmt"
	"time"

	"github.com/google/uuid"

	"bsfd/internal/tgpp"
)

// ID names a stored resource. It is a UUID of version 7 (RFC 9562), so ids
// made later by one instance sort later; to consumers it is opaque.
type ID [16]byte

// NewID makes an id that no other instance makes.
func NewID() ID {
	id, err := uuid.NewV7()
	if err != nil {
		// Only a machine without a source of randomness gets here.
		panic(fmt.Sprintf("no randomness for an id: %v", err))
	}
	return ID(id)
}

// ParseID reads the text form of String. Anything else is an unknown id.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != 2*len(id) {
		return ID{}, ErrNotFound
	}
	if _, err := hex.Decode(id[:], []byte(s)); err != nil || id.String() != s {
		return ID{}, ErrNotFound
	}
	return id, nil
}

// String is 32 lower-case hexadecimal digits.
func (id ID) String() string { return hex.EncodeToString(id[:]) }

// MarshalText implements encoding.TextMarshaler with String.
func (id ID) MarshalText() ([]byte, error) { return []byte(id.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler with ParseID.
func (id *ID) UnmarshalText(b []byte) error {
	v, err := ParseID(string(b))
	*id = v
	return err
}

// Record is a PcfBinding with what the BSF keeps about it.
type Record struct {
	ID      ID         `json:"id"`
	Binding PcfBinding `json:"binding"`
	// Created is when the binding was registered, in microseconds UTC.
	Created time.Time `json:"created"`
	// Audited is when the PCF last confirmed the session; Created at first.
	Audited time.Time `json:"audited"`
	// Attempts counts audits since Audited that got no verdict.
	Attempts uint8 `json:"attempts,omitempty"`
	// Origination, Sender and CustomSender are the instants of the headers of
	// the registration that decide collisions, in milliseconds UTC; zero when
	// absent or malformed.
	Origination  time.Time `json:"origination,omitzero"`
	Sender       time.Time `json:"sender,omitzero"`
	CustomSender time.Time `json:"customSender,omitzero"`
	// Cookie is the ocnf-service-cookie header of the registration, opaque.
	Cookie string `json:"cookie,omitempty"`
	// NotificationURL is where the PCF answers audits of this binding.
	NotificationURL string `json:"notificationUrl,omitempty"`
}

// Keys lists everything by which the record is found.
func (r *Record) Keys(dst []Key) []Key {
	dst = r.Binding.RouteKeys(r.Binding.AddressKeys(dst))
	if r.Binding.Supi != "" {
		dst = append(dst, SupiKey(r.Binding.Supi))
	}
	return dst
}

// Clone returns a copy whose slices may be changed without touching r.
func (r *Record) Clone() *Record {
	c := *r
	b := &c.Binding
	b.AddIpv6Prefixes = append(b.AddIpv6Prefixes[:0:0], b.AddIpv6Prefixes...)
	b.AddMacAddrs = append([]tgpp.MacAddr48(nil), b.AddMacAddrs...)
	return &c
}

// Later reports whether r was registered after o.
func (r *Record) Later(o *Record) bool {
	if !r.Created.Equal(o.Created) {
		return r.Created.After(o.Created)
	}
	return string(r.ID[:]) > string(o.ID[:])
}
