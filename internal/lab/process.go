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
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"bsfd/internal/heap"
)

// child is a server that the bench started.
type child struct {
	cmd    *exec.Cmd
	copied chan struct{} // closed at the end of its output
	ended  chan error
}

// spawn starts this program again and waits until ready finds the address in
// what it prints.
func spawn(ctx context.Context, ready func(line []byte) string, args ...string) (*child, string, error) {
	return spawnIn(ctx, "", ready, args...)
}

// spawnIn is spawn in a control group.
func spawnIn(ctx context.Context, group string, ready func(line []byte) string, args ...string) (*child, string, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, "", err
	}
	cmd := exec.CommandContext(ctx, self, args...)
	if group != "" {
		// The program looks at its limits when it starts, so it has to be in
		// the group before.
		cmd = exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", `echo $$ > "$0/cgroup.procs" && exec "$@"`, group, self}, args...)...)
	}
	cmd.Env = cleanEnviron(os.Environ())
	out, err := cmd.StderrPipe()
	if err != nil {
		return nil, "", err
	}
	cmd.Stdout = cmd.Stderr
	c := &child{cmd: cmd, copied: make(chan struct{})}
	if err := c.begin(); err != nil {
		return nil, "", err
	}
	late := time.AfterFunc(setupTime, func() { _ = cmd.Process.Kill() })
	defer late.Stop()
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
		if said = append(said, lines.Text()); len(said) > saidLines {
			said = said[1:]
		}
	}
	close(c.copied)
	return nil, "", fmt.Errorf("%s did not start within %s: %w\n%s", args[0], setupTime, c.wait(), strings.Join(said, "\n"))
}

const (
	// setupTime bounds how long a child may take until it serves.
	setupTime = time.Minute
	// saidLines is how many of its last lines are in the error.
	saidLines = 20
)

// cleanEnviron is an environment without the settings of bsfd: what is measured
// does not depend on the shell.
func cleanEnviron(environ []string) (clean []string) {
	for _, pair := range environ {
		if !strings.HasPrefix(pair, "BSFD_") {
			clean = append(clean, pair)
		}
	}
	return clean
}

// begin starts the child, which the kernel kills when this process ends,
// however it ends. That hangs on the thread that started it, so one is kept.
func (c *child) begin() error {
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	c.ended = make(chan error, 1)
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		started <- err
		if err == nil {
			<-c.copied
			c.ended <- c.cmd.Wait()
		}
	}()
	return <-started
}

// wait waits for the end of a child whose output has ended.
func (c *child) wait() error { return <-c.ended }

func (c *child) pid() int { return c.cmd.Process.Pid }

func (c *child) stop() {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	_ = c.wait()
}

// own is a bsfd that the bench started.
type own struct {
	rx       string // host:port, empty without a gateway
	sbi, oam string // URLs
	pid      int
}

// ready reads the log of a bsfd that starts: it notes the addresses, and
// returns that of the service-based interface once it serves.
func (o *own) ready(line []byte) string {
	var l struct{ Component, Address, Message string }
	if json.Unmarshal(line, &l) != nil {
		return ""
	}
	switch {
	case l.Message == "ready":
		return o.sbi
	case l.Message != "listening":
	case l.Component == "sbi":
		o.sbi = l.Address
	case l.Component == "diameter":
		o.rx = strings.TrimPrefix(l.Address, "tcp://")
	case l.Component == "oam":
		o.oam = l.Address
	}
	return ""
}

const (
	apiPath = "/nbsf-management/v1"
	// heapHeadroom is the default of process.gcHeadroom.
	heapHeadroom = 512 << 20
)

const barePrefix = "bare handler on "

// prefixed finds what follows the prefix in a line.
func prefixed(prefix string) func(line []byte) string {
	return func(line []byte) string {
		rest, ok := strings.CutPrefix(string(line), prefix)
		if !ok {
			return ""
		}
		return rest
	}
}

// bareHandler is the reference: it reads the body and writes a reply with the
// status, the header fields and the size of one that bsfd writes.
func bareHandler() http.Handler {
	reply := body(nil, 1, "pcf1.rx.example.com")
	location := []string{"http://127.0.0.1:8000" + apiPath + "/pcfBindings/00000000000000000000000000000000"}
	binding := []string{"bl=nf-instance; nfinst=00000000-0000-4000-8000-000000000000"}
	length := []string{strconv.Itoa(len(reply))}
	contentType := []string{"application/json"}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		if r.Method == http.MethodDelete {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		h := w.Header()
		h["Content-Type"], h["Content-Length"], h["3gpp-Sbi-Binding"] = contentType, length, binding
		status := http.StatusOK
		if r.Method == http.MethodPost {
			status = http.StatusCreated
			h["Location"] = location
		}
		w.WriteHeader(status)
		// A client that went away needs no answer.
		_, _ = w.Write(reply)
	})
}

// serveBare serves the reference on net/http with the protocols and the
// collector settings of bsfd.
func serveBare(ctx context.Context, stdout io.Writer) error {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := &http.Server{
		Protocols:         new(http.Protocols),
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: 1000},
		ReadHeaderTimeout: 10 * time.Second,
		Handler:           bareHandler(),
	}
	s.Protocols.SetHTTP1(true)
	s.Protocols.SetUnencryptedHTTP2(true)
	fmt.Fprintf(stdout, "%shttp://%s\n", barePrefix, l.Addr())
	var group errgroup.Group
	group.Go(func() error {
		if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			return err
		}
		return nil
	})
	group.Go(func() error { return heap.Tune(ctx, heapHeadroom) })
	<-ctx.Done()
	return errors.Join(s.Close(), group.Wait())
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
