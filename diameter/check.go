package diameter

import (
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"time"
)

// identity is what a DiameterIdentity looks like: a host name (RFC 6733
// §4.3.1).
var identity = regexp.MustCompile(`^[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?(\.[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?)*$`)

func checkIdentity(s string) error {
	if len(s) > 255 || !identity.MatchString(s) {
		return fmt.Errorf("%q is not a host name", s)
	}
	return nil
}

func oneOf[T comparable](v T, values ...T) error {
	if !slices.Contains(values, v) {
		return fmt.Errorf("must be one of %v", values)
	}
	return nil
}

func within(v, low, high time.Duration) error {
	if v < low || v > high {
		return fmt.Errorf("must be %s to %s", low, high)
	}
	return nil
}

func atLeast(v, low int) error {
	if v < low {
		return fmt.Errorf("must be at least %d", low)
	}
	return nil
}

func checkAddresses(list []string) error {
	for _, a := range list {
		if _, _, err := net.SplitHostPort(a); err != nil {
			return fmt.Errorf("%q is not host:port", a)
		}
	}
	return nil
}

func checkIPs(list []string) error {
	for _, a := range list {
		if _, err := netip.ParseAddr(a); err != nil {
			return fmt.Errorf("%q is not an IP address", a)
		}
	}
	return nil
}

func orElse[T comparable](v, other T) T {
	var zero T
	if v == zero {
		return other
	}
	return v
}
