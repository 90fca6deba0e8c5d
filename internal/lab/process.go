package lab

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// child is a server that the bench started.
type child struct {
	cmd    *exec.Cmd
	copied chan struct{}
}

// spawn starts this program again and waits until ready finds the address in
// what it prints.
func spawn(ctx context.Context, ready func(line []byte) string, args ...string) (*child, string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	out, err := cmd.StderrPipe()
	if err != nil {
		return nil, "", err
	}
	cmd.Stdout = cmd.Stderr
	if err := cmd.Start(); err != nil {
		return nil, "", err
	}
	c := &child{cmd: cmd, copied: make(chan struct{})}
	lines := bufio.NewScanner(out)
	var said []string
	for lines.Scan() {
		if root := ready(lines.Bytes()); root != "" {
			go func() {
				defer close(c.copied)
				_, _ = io.Copy(io.Discard, out)
			}()
			return c, root, nil
		}
		said = append(said, lines.Text())
	}
	return nil, "", fmt.Errorf("%s did not start: %w\n%s", args[0], cmd.Wait(), strings.Join(said, "\n"))
}

func (c *child) pid() int { return c.cmd.Process.Pid }

func (c *child) stop() {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	<-c.copied
	_ = c.cmd.Wait()
}

// bsfdReady finds the address of the service-based interface in the log.
func bsfdReady(line []byte) string {
	var l struct{ Component, Address, Message string }
	if json.Unmarshal(line, &l) == nil && l.Component == "sbi" && l.Message == "listening" {
		return l.Address
	}
	return ""
}

const barePrefix = "bare handler on "

func bareReady(line []byte) string {
	root, ok := strings.CutPrefix(string(line), barePrefix)
	if !ok {
		return ""
	}
	return root
}

// serveBare serves the reference: net/http with the protocols and the collector
// settings of bsfd, and a handler that reads the body and writes a reply of the
// status and size in the path, /bare/<status>/<size>.
func serveBare(ctx context.Context, stdout io.Writer) error {
	debug.SetGCPercent(400)
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	reply := []byte(strings.Repeat("x", 64<<10))
	s := &http.Server{
		Protocols:         new(http.Protocols),
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: 1000},
		ReadHeaderTimeout: 10 * time.Second,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				return
			}
			dir, size := path.Split(r.URL.Path)
			n, _ := strconv.Atoi(size)
			status, _ := strconv.Atoi(path.Base(dir))
			h := w.Header()
			if status == http.StatusCreated {
				h["Location"] = []string{"http://127.0.0.1/nbsf-management/v1/pcfBindings/00000000000000000000000000000000"}
			}
			if n > 0 {
				h["Content-Type"] = []string{"application/json"}
				h["Content-Length"] = []string{size}
			}
			w.WriteHeader(status)
			if n > 0 {
				_, _ = w.Write(reply[:min(n, len(reply))])
			}
		}),
	}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	fmt.Fprintf(stdout, "%shttp://%s\n", barePrefix, l.Addr())
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }()
	<-ctx.Done()
	err = s.Close()
	if serveErr := <-served; !errors.Is(serveErr, http.ErrServerClosed) {
		err = errors.Join(err, serveErr)
	}
	return err
}

// cpuTime is what a process has used, 0 when that cannot be read.
func cpuTime(pid int) time.Duration {
	if pid == 0 {
		return 0
	}
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	f := strings.Fields(rest)
	if len(f) < 13 {
		return 0
	}
	user, _ := strconv.ParseInt(f[11], 10, 64)
	system, _ := strconv.ParseInt(f[12], 10, 64)
	const tick = 10 * time.Millisecond
	return time.Duration(user+system) * tick
}

// residentMemory is the resident set of a process in bytes.
func residentMemory(pid int) int64 {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0
	}
	f := strings.Fields(string(b))
	if len(f) < 2 {
		return 0
	}
	pages, _ := strconv.ParseInt(f[1], 10, 64)
	return pages * int64(os.Getpagesize())
}
