package tolerate

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/rs/zerolog"
)

var table = Table{{Name: "a", Accepts: "x", Keeps: "y", Seen: "z"}, {Name: "b"}}

func TestNamesChooseRows(t *testing.T) {
	for _, c := range []struct {
		names []string
		want  Set
		err   string
	}{
		{nil, 0, ""},
		{[]string{"all"}, 3, ""},
		{[]string{"b"}, 2, ""},
		{[]string{"b", "a"}, 3, ""},
		{[]string{"c"}, 0, `"c" is none of all, a, b`},
	} {
		got, err := table.Parse(c.names)
		if got != c.want || (err == nil) != (c.err == "") || err != nil && err.Error() != c.err {
			t.Errorf("%v: %v, %v", c.names, got, err)
		}
	}
	if Of(0, 1) != 3 || !Set(3).Has(2) || Set(1).Has(3) {
		t.Error("sets")
	}
}

func TestOneLineAnHourForAPeerAndKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		reg := prometheus.NewRegistry()
		l := NewLedger(table, "tolerated_total", zerolog.New(&out), reg)
		lines := func() int {
			n := strings.Count(out.String(), "\n")
			out.Reset()
			return n
		}
		for range 5 {
			l.Note("PCF", Of(0))
		}
		if n := lines(); n != 1 {
			t.Errorf("%d lines for one peer and kind", n)
		}
		l.Note("PCF", Of(0, 1))
		l.Note("AMF", Of(0))
		if n := lines(); n != 2 {
			t.Errorf("%d lines for another kind and another peer", n)
		}
		time.Sleep(repeatAfter)
		l.Note("PCF", Of(0))
		if n := lines(); n != 1 {
			t.Errorf("%d lines after an hour", n)
		}
		for i := range 2 * maxPeers {
			l.Note(fmt.Sprint(i), Of(1))
		}
		if n := lines(); n > maxPeers || len(l.lines) > maxPeers {
			t.Errorf("%d lines, %d peers remembered", n, len(l.lines))
		}
		time.Sleep(repeatAfter)
		l.Note("late", Of(1))
		if n := lines(); n != 1 {
			t.Errorf("%d lines once there is room again", n)
		}
		if n := testutil.ToFloat64(l.counters[0]); n != 8 {
			t.Errorf("counted %v", n)
		}
	})
}
