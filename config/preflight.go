package config

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"bsfd/diameter"
	"bsfd/internal/tlsfiles"
	"bsfd/storage"
	"bsfd/storage/embedded"
	"bsfd/storage/postgres"
	"bsfd/web/sbi"
)

// errPreflight is the error when a check failed; the lines tell which.
var errPreflight = errors.New("not all checks passed")

// Preflight checks what a start would need, without changing anything: a line
// a check. The error tells whether one failed.
func (c *Config) Preflight(ctx context.Context, w io.Writer) error {
	failed := false
	report := func(what string, err error) {
		line := "ok    " + what
		if err != nil {
			failed = true
			line = "FAIL  " + what + ": " + err.Error()
		}
		fmt.Fprintln(w, line)
	}
	report("configuration", nil)
	if c.SBI.TLS.Enabled() {
		report("certificate "+c.SBI.TLS.CertFile, certificateUsable(c.SBI.TLS))
	}
	switch c.Storage.Engine {
	case storage.Embedded:
		report("data directory "+c.Storage.DataDir, directoryUsable(c.Storage.DataDir))
		report("free space", enoughSpace(c.Storage.DataDir, c.Storage.Embedded.ReserveBytes))
	case storage.Postgres:
		for _, f := range postgres.Inspect(ctx, c.Storage.PostgresConfig()) {
			report(f.What, f.Err)
		}
	}
	addresses := slices.Concat([]string{c.OAM.Listen}, c.SBI.Listen)
	if d := c.Diameter; d.Enabled {
		addresses = slices.Concat(addresses, d.Listen, d.ListenTLS)
		if d.TLS != diameter.DefaultConfig().TLS {
			report("certificates of diameter.tls", d.TLS.Check())
		}
	}
	for _, addr := range addresses {
		report("address "+addr, addressFree(ctx, addr))
	}
	if failed {
		return errPreflight
	}
	return nil
}

func certificateUsable(c sbi.TLSConfig) error {
	state, err := c.State(time.Now())
	if err != nil {
		return fmt.Errorf("%s: %w", state, err)
	}
	if state != tlsfiles.Valid {
		return errors.New(string(state))
	}
	return nil
}

// directoryUsable tries to write where the data will be, or where its
// directory will be made.
func directoryUsable(dir string) error {
	for {
		st, err := os.Stat(dir)
		if err == nil && !st.IsDir() {
			return errors.New("not a directory")
		}
		if err == nil || filepath.Dir(dir) == dir {
			break
		}
		dir = filepath.Dir(dir)
	}
	f, err := os.CreateTemp(dir, ".bsfd-check-*")
	if err != nil {
		return err
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

func enoughSpace(dir string, reserve int64) error {
	if free := embedded.FreeBytes(dir); free < 2*reserve {
		return fmt.Errorf("%d bytes are free, %d are needed", free, 2*reserve)
	}
	return nil
}

func addressFree(ctx context.Context, addr string) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return l.Close()
}
