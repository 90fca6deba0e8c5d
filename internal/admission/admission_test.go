package admission

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestBacklog proves that a connection counts as backlogged from the first read
// that fills its buffer to the first that does not, or that waits.
func TestBacklog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Backlog
		since := func() time.Duration { return b.Since(time.Now()) }
		b.Read(10, 100)
		if since() != 0 {
			t.Error("a read that has read all")
		}
		for range 10 {
			b.Read(100, 100)
			<-time.After(50 * time.Millisecond)
		}
		if since() != 500*time.Millisecond {
			t.Errorf("%s of reads that filled the buffer", since())
		}
		b.Read(99, 100)
		if since() != 0 {
			t.Error("a read that has read all the rest")
		}
		b.Read(100, 100)
		<-time.After(300 * time.Millisecond)
		if since() != 0 {
			t.Error("the reader waits, so there is nothing")
		}
		b.Read(100, 100)
		<-time.After(10 * time.Millisecond)
		if since() != 10*time.Millisecond {
			t.Errorf("%s after the wait", since())
		}
	})
}
