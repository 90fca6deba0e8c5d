package config

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"bsfd/bsf"
	"bsfd/diameter"
	"bsfd/internal/settings"
	"bsfd/overload"
	"bsfd/web/oam"
)

var update = flag.Bool("update", false, "write the generated documents")

func TestDefaultsAreValid(t *testing.T) {
	cfg, err := Load(Source{})
	if err != nil {
		t.Fatal(err)
	}
	if cfg.SBI.Listen[0] != "127.0.0.1:8000" || cfg.OAM.Listen != "127.0.0.1:8081" || cfg.Storage.Engine != "embedded" ||
		cfg.Storage.DataDir != "./data" || cfg.NF.Fqdn != "bsf.localdomain" || cfg.Log.Level != "info" || cfg.Log.Format != "json" {
		t.Errorf("%+v", cfg)
	}
}

func file(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "bsfd.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestFileThenEnvironmentThenFlags(t *testing.T) {
	cfg, err := Load(Source{
		File: file(t, "sbi:\n  listen: ['127.0.0.1:1', '[::1]:1']\n  tls: {minVersion: '1.3'}\nbsf: {sameAddress: keep, features: '3'}\n"+
			"notifications: {timeout: 7s, workers: 10}\nlog: {level: warn}\nerrors: {serverHeaderCodes: [503], conditions: {notAcceptable: {status: 400}}}\n"),
		Environ: []string{"BSFD_LOG_LEVEL=debug", "BSFD_NOTIFICATIONS_WORKERS=20", "BSFD_STORAGE_DATADIR=/x", "PATH=/", "BSFD_SERVICE_HOST=10.0.0.1", "BSFD_PORT=tcp://x"},
		Flags:   map[string]string{"diameter.listen": "", "notifications.workers": "30", "oam.listen": "127.0.0.1:2", "bsf.revalidation": "false", "errors.serverHeaderCodes": "400,500"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(cfg.SBI.Listen) != "[127.0.0.1:1 [::1]:1]" || cfg.SBI.TLS.MinVersion != "1.3" || cfg.BSF.SameAddress != bsf.Keep ||
		cfg.BSF.Features != 3 || cfg.Notifications.Timeout != 7*time.Second || cfg.Log.Level != "debug" || cfg.Notifications.Workers != 30 ||
		cfg.Storage.DataDir != "/x" || cfg.OAM.Listen != "127.0.0.1:2" || cfg.BSF.Revalidation ||
		len(cfg.Diameter.Listen) != 0 || fmt.Sprint(cfg.Errors.ServerHeaderCodes) != "[400 500]" || cfg.Errors.Overrides["notAcceptable"].Status != 400 {
		t.Errorf("%+v", cfg)
	}
}

func TestErrorsNameTheKey(t *testing.T) {
	for text, key := range map[string]string{
		"sbi: {listne: x}":                "sbi.listne: unknown key",
		"nonsense: 1":                     "nonsense: unknown key",
		"sbi: 5":                          "sbi: must be a section",
		"sbi: {listen: ['x']}":            "sbi.listen",
		"sbi: {listen: []}":               "sbi.listen",
		"sbi: {maxConcurrentStreams: 5}":  "sbi.maxConcurrentStreams",
		"sbi: {bindingHeader: nf-set}":    "sbi.bindingHeader",
		"sbi: {apiRoot: 'ftp://x'}":       "sbi.apiRoot",
		"sbi: {tls: {minVersion: '1.1'}}": "sbi.tls.minVersion",
		"nf: {fqdn: x}":                   "nf.fqdn",
		"nf: {instanceId: x}":             "nf.instanceId",
		"bsf: {features: 'ff'}":           "bsf.features",
		"bsf: {features: 'xyz'}":          "features",
		"bsf: {multipleMatches: first}":   "bsf.multipleMatches",
		"notifications: {timeout: soon}":  "timeout",
		"notifications: {workers: 0}":     "notifications.workers",
		"storage: {engine: postgres}":     "storage.postgres.dsn",
		"storage: {engine: postgres, postgres: {dsn: 'host=x port=y'}}": "storage.postgres.dsn",
		"storage: {timeout: 1ms}":                           "storage.timeout",
		"storage: {embedded: {memTableBytes: 1}}":           "storage.embedded.memTableBytes",
		"errors: {conditions: {foo: {status: 400}}}":        "errors.conditions.foo",
		"errors: {conditions: {invalidApi: {status: 200}}}": "errors.conditions.invalidApi.status",
		"errors: {serverHeaderCodes: [200]}":                "errors.serverHeaderCodes",
		"errors: {log: {rate: 0}}":                          "errors.log",
		"oam: {listen: 8081}":                               "oam.listen",
		"log: {level: loud}":                                "log.level",
		"log: {format: xml}":                                "log.format",
		"process: {gcHeadroom: 1}":                          "process.gcHeadroom",
		"process: {gracePeriod: 2h}":                        "process.gracePeriod",
		"- a list":                                          "bsfd.yaml",
	} {
		_, err := Load(Source{File: file(t, text)})
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if _, err := Load(Source{Environ: []string{"BSFD_FOO=1"}}); err == nil || !strings.Contains(err.Error(), "BSFD_FOO") {
		t.Errorf("unknown variable: %v", err)
	}
}

// TestEveryMistakeIsTold proves that one run tells all that is wrong, and what
// may have been meant.
func TestEveryMistakeIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		src  Source
		want []string
	}{
		"keys and variables": {
			Source{File: file(t, "sbi: {listne: x, strict: true}\nstorag: {engine: memory}\nlevel: info\n"), Environ: []string{"BSFD_SBI_LISTN=x", "BSFD_ZZZZZZZZZZZZZZZZ=1"}},
			[]string{"sbi.listne: unknown key (did you mean sbi.listen?)", "storag: unknown key", "level: unknown key (did you mean log.level?)",
				"BSFD_SBI_LISTN: unknown environment variable (did you mean BSFD_SBI_LISTEN?)", "BSFD_ZZZZZZZZZZZZZZZZ: unknown environment variable"},
		},
		"values": {
			Source{File: file(t, "sbi: {maxConcurrentStreams: 5}\nlog: {level: loud}\nnbsf: {tolerate: [nul]}\nstorage: {timeout: 1ms}\n")},
			[]string{"sbi.maxConcurrentStreams", "log.level", `nbsf.tolerate: "nul" is none of all, null`, "storage.timeout"},
		},
		"types": {
			Source{File: file(t, "notifications: {timeout: soon}\nsbi: {maxConnections: many}\n")},
			[]string{"timeout", "maxConnections"},
		},
	} {
		_, err := Load(c.src)
		for _, want := range c.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v\nlacks %s", name, err, want)
			}
		}
	}
	_, err := FromArgs("serve", []string{"--sbi.listn", "x"}, nil, nil)
	if err == nil || !strings.Contains(err.Error(), "unknown flag: --sbi.listn (did you mean sbi.listen?)") {
		t.Errorf("flag: %v", err)
	}
}

// FuzzFile proves that no file crashes the loader.
func FuzzFile(f *testing.F) {
	f.Add("sbi: {listen: ['127.0.0.1:1']}\n")
	f.Add("errors: {conditions: {invalidApi: {status: 400}}}")
	f.Fuzz(func(t *testing.T, text string) {
		_, _ = Load(Source{File: file(t, text)})
	})
}

func TestEveryOptionHasAUsage(t *testing.T) {
	for _, o := range Options() {
		if o.Usage == "" {
			t.Errorf("%s has no usage", o.Key)
		}
	}
}

// sampleFile is a configuration with every setting at its default.
func sampleFile() string {
	var b strings.Builder
	b.WriteString("# Every setting of bsfd with its default. Keep what you change.\n")
	var open []string
	for _, o := range Options() {
		if o.Element {
			continue
		}
		parts := strings.Split(o.Key, ".")
		same := 0
		for same < len(open) && same < len(parts)-1 && open[same] == parts[same] {
			same++
		}
		open = open[:same]
		for _, name := range parts[same : len(parts)-1] {
			if len(open) == 0 {
				b.WriteByte('\n')
			}
			fmt.Fprintf(&b, "%s%s:\n", strings.Repeat("  ", len(open)), name)
			open = append(open, name)
		}
		indent, name := strings.Repeat("  ", len(open)), parts[len(parts)-1]
		switch {
		case o.Runtime:
			fmt.Fprintf(&b, "\n# %s.\n# See docs/configuration.md.\n%s: {}\n", o.Usage, name)
			continue
		case o.FileOnly && o.Key != "errors.conditions":
			fmt.Fprintf(&b, "%s%s: []  # %s\n", indent, name, o.Usage)
			continue
		case o.FileOnly:
			fmt.Fprintf(&b, "%s# answers by condition name, such as\n%s#   resourceNotFound: {status: 404, cause: X, title: X, description: X}\n%s%s: {}\n", indent, indent, indent, name)
			continue
		case o.List:
			fmt.Fprintf(&b, "%s%s: [%s]  # %s\n", indent, name, quoted(o.Default), o.Usage)
			continue
		}
		value := o.Default
		if strings.ContainsAny(value, "./:") || value == "" || o.Key == "bsf.features" {
			value = fmt.Sprintf("%q", value)
		}
		fmt.Fprintf(&b, "%s%s: %s  # %s\n", indent, name, value, o.Usage)
	}
	return b.String()
}

// runtimeTable lists the settings of the configuration API by resource.
func runtimeTable() string {
	var b strings.Builder
	b.WriteString(`
## Runtime settings

Each table is a resource of the configuration API, which the operator's listener
serves. A list has elements with names, each of them a resource below it. Where it is
in the configuration file stands above the table; what the file says is the default of
what the API changes.
"Seed" is the section of the feature description that a setting follows.
`)
	for _, r := range settings.Describe(overload.Default()) {
		writeSetting(&b, r, "overload."+r.Section)
	}
	gateway := diameter.DefaultConfig()
	for _, r := range settings.Describe(gateway.Settings()) {
		writeSetting(&b, r, "diameter.repaving, with times such as 200ms")
	}
	return b.String()
}

// writeSetting writes a row of the table of a resource, with its head when it
// is the first.
func writeSetting(b *strings.Builder, r settings.Row, inFile string) {
	head := "\n### " + oam.ResourcePath(r.Path) + "\n"
	if !strings.Contains(b.String(), head) {
		fmt.Fprintf(b, "%s\nIn the file: %s. Seed: %s.\n\n|setting|default|range|meaning|\n|-|-|-|-|\n", head, inFile, r.Seed)
	}
	fmt.Fprintf(b, "|%s|%s|%s|%s|\n", r.Member, r.Default, rangeText(r.Range), r.Usage)
}

func rangeText(s string) string {
	s = strings.Replace(s, "..", " to ", 1)
	if s == "name" {
		return "name of 1 to 64 letters, digits, _, . or -"
	}
	if strings.HasPrefix(s, "|") {
		s = "empty" + s
	}
	return strings.ReplaceAll(s, "|", ", ")
}

func quoted(s string) string {
	if s == "" {
		return ""
	}
	return fmt.Sprintf("%q", s)
}

func TestSampleFileIsTheDefault(t *testing.T) {
	got, err := Load(Source{File: filepath.Join("..", "deploy", "bsfd.yaml")})
	if err != nil {
		t.Fatal(err)
	}
	want := Default()
	if g, w := fmt.Sprintf("%+v", *got), fmt.Sprintf("%+v", want); g != w {
		t.Errorf("got  %s\nwant %s", g, w)
	}
}

// TestDocumentation keeps the tables of docs/configuration.md and the sample
// configuration true. With -update it writes them.
func TestDocumentation(t *testing.T) {
	var table strings.Builder
	for _, s := range sections {
		fmt.Fprintf(&table, "\n### %s\n\n|key|default|meaning|\n|-|-|-|\n", s.text)
		for _, o := range Options() {
			if !strings.HasPrefix(o.Key, s.key+".") {
				continue
			}
			usage, value := o.Usage, o.Default
			if o.FileOnly && !o.Element {
				usage += "; file only"
			}
			fmt.Fprintf(&table, "|%s|%s|%s|\n", o.Key, value, usage)
		}
	}
	table.WriteString(runtimeTable())
	page := filepath.Join("..", "docs", "configuration.md")
	old, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	const mark = "<!-- generated from here -->\n"
	head, _, ok := strings.Cut(string(old), mark)
	if !ok {
		t.Fatalf("%s has no mark", page)
	}
	for name, want := range map[string]string{
		page: head + mark + table.String(),
		filepath.Join("..", "deploy", "bsfd.yaml"): sampleFile(),
	} {
		got, _ := os.ReadFile(name)
		if string(got) == want {
			continue
		}
		if !*update {
			t.Errorf("%s is out of date: go test ./config -update", name)
		} else if err := os.WriteFile(name, []byte(want), 0o644); err != nil { //nolint:gosec // a document
			t.Error(err)
		}
	}
}
