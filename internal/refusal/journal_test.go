package refusal

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

func TestLinesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		j := NewJournal(Config{Enabled: true, Rate: 10, MaxBurst: 100}, zerolog.New(&out), prometheus.NewRegistry())
		for i := range 10000 {
			j.Report(&Refusal{Interface: "sbi", What: "POST /x", Result: "400", Cause: "C", Params: []Param{{"/dnn", "required"}}, Peer: fmt.Sprint(i)})
		}
		if n := strings.Count(out.String(), "\n"); n != 100 {
			t.Errorf("%d lines", n)
		}
		if n := testutil.ToFloat64(j.dropped); n != 9900 {
			t.Errorf("%v are counted as left out", n)
		}
		out.Reset()
		time.Sleep(time.Second)
		failure := &Refusal{Interface: "sbi", What: "POST /x", Result: "500", Peer: "p", Failure: true}
		if !j.Count(failure.Key()) {
			t.Error("a new kind is not wanted")
		}
		j.Note(failure, func(e *zerolog.Event) { e.Str("more", "x") })
		for _, want := range []string{`"leftOut":9900`, `"level":"warn"`, `"more":"x"`, `"peer":"p"`} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%s lacks %s", out.String(), want)
			}
		}
		kinds := j.Kinds()
		if len(kinds) != 2 || kinds[0].Result != "500" || kinds[1].Count != 10000 || kinds[1].Peer != "99" ||
			!kinds[1].FirstSeen.Before(kinds[0].FirstSeen) {
			t.Errorf("%+v", kinds)
		}
	})
}

func TestKindsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := NewJournal(Config{Rate: 1, MaxBurst: 1}, zerolog.Nop(), prometheus.NewRegistry())
		for i := range 1000 {
			j.Report(&Refusal{What: fmt.Sprint(i)})
			time.Sleep(time.Millisecond)
		}
		if kinds := j.Kinds(); len(kinds) != maxKinds || kinds[0].What != "999" || kinds[maxKinds-1].What != "800" {
			t.Errorf("%d kinds, from %s to %s", len(kinds), kinds[0].What, kinds[len(kinds)-1].What)
		}
	})
}

func TestMask(t *testing.T) {
	for in, want := range map[string]string{
		"/x/v1/pcfBindings": "/x/v1/pcfBindings", "/subscribers/imsi-001010000000001": "/subscribers/imsi-*",
		"/b/01a24ff02c5a79cfacfe00454206d387/": "/b/*/", "/facade": "/facade", "/v1234": "/v1234", "/\xff": "/", "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa": "/aaaaaaaaaaaaaaaaaaaaaaaaaaaaa"[:30],
	} {
		if got := Mask(in, 30); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
