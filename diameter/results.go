package diameter

import (
	"fmt"
	"regexp"

	"bsfd/diameter/rx"
)

// results are the settings of Results and Stale, read.
type results struct {
	realmNotServed, noBinding, discovery, unreachable, timeout, busy rx.Result
	stale                                                            []rx.Result
}

func (c *Config) results() (r results, err error) {
	for _, x := range []struct {
		key, text string
		to        *rx.Result
	}{
		{"realmNotServed", c.Results.RealmNotServed, &r.realmNotServed},
		{"noBinding", c.Results.NoBinding, &r.noBinding},
		{"discovery", c.Results.Discovery, &r.discovery},
		{"unreachable", c.Results.Unreachable, &r.unreachable},
		{"timeout", c.Results.Timeout, &r.timeout},
		{"busy", c.Results.Busy, &r.busy},
	} {
		if *x.to, err = parseResult(x.text); err != nil {
			return r, fmt.Errorf("results.%s: %w", x.key, err)
		}
	}
	for _, text := range c.Stale.Results {
		v, err := parseResult(text)
		if err != nil {
			return r, fmt.Errorf("stale.results: %w", err)
		}
		r.stale = append(r.stale, v)
	}
	return r, nil
}

var resultText = regexp.MustCompile(`^(?:(\d{1,9}):)?([345]\d{3})$`)

func parseResult(s string) (r rx.Result, err error) {
	m := resultText.FindStringSubmatch(s)
	if m == nil {
		return r, fmt.Errorf("%q is not a code of 3000 to 5999, or vendor:code", s)
	}
	_, err = fmt.Sscan(m[2], &r.Code)
	if m[1] != "" {
		_, err = fmt.Sscan(m[1], &r.Vendor)
	}
	return r, err
}
