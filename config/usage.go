package config

import (
	"fmt"
	"io"
	"strings"
)

// sections are the parts of the configuration with what they are about, in
// order.
var sections = [...]struct{ key, text string }{
	{"nf", "identity of this network function"},
	{"sbi", "service-based interface"},
	{"nbsf", "tolerance of the service-based interface"},
	{"bsf", "rules of the registry"},
	{"errors", "error answers"},
	{"notifications", "delivery to subscribers"},
	{"diameter", "Rx gateway"},
	{"storage", "storage"},
	{"oam", "operator's interface"},
	{"log", "log"},
	{"process", "life of the process"},
}

// writeUsage prints every setting as a flag, by section, with its default.
func writeUsage(w io.Writer) error {
	options := Options()
	for _, s := range sections {
		if _, err := fmt.Fprintf(w, "\n%s (%s.*):\n", strings.ToUpper(s.text[:1])+s.text[1:], s.key); err != nil {
			return err
		}
		for _, o := range options {
			if !strings.HasPrefix(o.Key, s.key+".") || o.FileOnly {
				continue
			}
			line := fmt.Sprintf("  --%-36s %s", o.Key, o.Usage)
			if o.Default != "" {
				line += " (" + o.Default + ")"
			}
			if _, err := fmt.Fprintln(w, line); err != nil {
				return err
			}
		}
	}
	return nil
}
