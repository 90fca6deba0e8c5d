// Package pgtest starts PostgreSQL servers for tests: a fresh cluster in a
// temporary directory, on a free port of the loopback address, gone with the
// test.
package pgtest

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// Server is a running cluster.
type Server struct {
	bin  string
	dir  string
	port int
	cred *syscall.Credential
	t    testing.TB
	proc *exec.Cmd
}

// Start starts a cluster and stops it when the test ends. Where PostgreSQL is
// not installed the test is skipped.
func Start(t testing.TB) *Server {
	t.Helper()
	bin := find()
	if bin == "" {
		t.Skip("PostgreSQL is not installed (apt-get install postgresql): skipping")
	}
	s := &Server{bin: bin, t: t, cred: credential(t)}
	// The path of a test directory is not open to the server's user.
	dir, err := os.MkdirTemp("", "bsfd-pg-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s.dir = filepath.Join(dir, "data")
	if s.cred != nil {
		if err := os.Chown(dir, int(s.cred.Uid), int(s.cred.Gid)); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := s.command("initdb", "-D", s.dir, "-U", "bsfd", "-A", "trust", "-E", "UTF8", "--no-locale").CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v\n%s", err, out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.port = l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	s.Boot()
	t.Cleanup(func() { s.Stop("immediate") })
	return s
}

// find returns the directory of the server's programs, or "".
func find() string {
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin")
	slices.Sort(dirs)
	slices.Reverse(dirs)
	if p, err := exec.LookPath("initdb"); err == nil {
		dirs = append(dirs, filepath.Dir(p))
	}
	for _, d := range dirs {
		if _, err := os.Stat(filepath.Join(d, "initdb")); err == nil {
			return d
		}
	}
	return ""
}

// credential is a user other than root, under which the server agrees to run.
func credential(t testing.TB) *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	for _, name := range [...]string{"postgres", "nobody"} {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
		gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
		if err1 == nil && err2 == nil {
			return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		}
	}
	t.Skip("no user to run PostgreSQL as: skipping")
	return nil
}

func (s *Server) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(s.bin, name), args...)
	c.Dir = "/"
	c.SysProcAttr = &syscall.SysProcAttr{Credential: s.cred, Setpgid: true}
	return c
}

// Boot starts the server again after Stop and waits until it answers.
func (s *Server) Boot() {
	s.t.Helper()
	s.proc = s.command("postgres", "-D", s.dir, "-p", strconv.Itoa(s.port), "-c", "listen_addresses=127.0.0.1",
		"-c", "unix_socket_directories=", "-c", "max_connections=200", "-c", "logging_collector=off")
	if err := s.proc.Start(); err != nil {
		s.t.Fatal(err)
	}
	deadline := time.Now().Add(30 * time.Second)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		c, err := pgx.Connect(ctx, s.DSN("postgres"))
		if err == nil {
			_ = c.Close(ctx)
			cancel()
			return
		}
		<-time.After(50 * time.Millisecond)
		cancel()
		if time.Now().After(deadline) {
			s.t.Fatalf("PostgreSQL does not start: %v", err)
		}
	}
}

// Stop ends the server: "fast" or "immediate", which is a crash.
func (s *Server) Stop(mode string) {
	if s.proc == nil {
		return
	}
	signal := syscall.SIGINT
	if mode == "immediate" {
		signal = syscall.SIGQUIT
	}
	_ = s.proc.Process.Signal(signal)
	_ = s.proc.Wait()
	s.proc = nil
}

// Database creates an empty database and returns its DSN.
func (s *Server) Database(name string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	c, err := pgx.Connect(ctx, s.DSN("postgres"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer c.Close(ctx)
	if _, err := c.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()); err != nil {
		s.t.Fatal(err)
	}
	return s.DSN(name)
}

// DSN is that of a database of the server.
func (s *Server) DSN(database string) string {
	return fmt.Sprintf("postgres://bsfd@127.0.0.1:%d/%s?sslmode=disable", s.port, database)
}
