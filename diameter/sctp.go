package diameter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"syscall"
)

// protocolSCTP is the protocol number of SCTP.
const protocolSCTP = 132

// errNoSCTP says what to do where the kernel has no SCTP.
var errNoSCTP = errors.New("this kernel has no SCTP: load the module sctp, or use TCP")

// An SCTP association is used as one stream of octets, in the one-to-one style
// of RFC 6458 §4: such a socket behaves like one of TCP, and net treats it so.

// listenSCTP listens on ip:port.
func listenSCTP(address string) (net.Listener, error) {
	fd, sa, err := socketSCTP(address)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "sctp "+address)
	defer f.Close()
	if err := syscall.SetsockoptInt(fd, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		return nil, err
	}
	if err := syscall.Bind(fd, sa); err != nil {
		return nil, fmt.Errorf("listen sctp %s: %w", address, err)
	}
	if err := syscall.Listen(fd, syscall.SOMAXCONN); err != nil {
		return nil, fmt.Errorf("listen sctp %s: %w", address, err)
	}
	return net.FileListener(f)
}

// dialSCTP connects to ip:port.
func dialSCTP(ctx context.Context, address string) (net.Conn, error) {
	fd, sa, err := socketSCTP(address)
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), "sctp "+address)
	defer f.Close()
	done := make(chan error, 1)
	go func() { done <- syscall.Connect(fd, sa) }()
	select {
	case err = <-done:
	case <-ctx.Done():
		// It ends the connect that is under way.
		_ = syscall.Shutdown(fd, syscall.SHUT_RDWR)
		<-done
		err = ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("dial sctp %s: %w", address, err)
	}
	return net.FileConn(f)
}

func socketSCTP(address string) (int, syscall.Sockaddr, error) {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return 0, nil, fmt.Errorf("sctp: %q is not ip:port", address)
	}
	family := syscall.AF_INET6
	var sa syscall.Sockaddr = &syscall.SockaddrInet6{Port: int(ap.Port()), Addr: ap.Addr().As16()}
	if ap.Addr().Is4() {
		family = syscall.AF_INET
		sa = &syscall.SockaddrInet4{Port: int(ap.Port()), Addr: ap.Addr().As4()}
	}
	fd, err := syscall.Socket(family, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, protocolSCTP)
	if errors.Is(err, syscall.EPROTONOSUPPORT) || errors.Is(err, syscall.ESOCKTNOSUPPORT) || errors.Is(err, syscall.EINVAL) {
		return 0, nil, errNoSCTP
	}
	return fd, sa, err
}
