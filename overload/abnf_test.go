package overload

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// grammar is an ABNF (RFC 5234): rules by name in lower case.
type grammar map[string]node

// node matches at the begin of a text and returns every end that it can have.
type node func(g grammar, s string, at int, depth int) []int

// loadGrammar reads the grammar of the custom headers, or skips the test.
func loadGrammar(t *testing.T) grammar {
	t.Helper()
	file, err := filepath.Abs(filepath.Join("..", "..", "shared", "spec", "openapi", "TS29500_CustomHeaders.abnf"))
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Skipf("the grammar of TS 29.500 is not here: skipping")
	}
	g, err := parseGrammar(string(b))
	if err != nil {
		t.Fatal(err)
	}
	return g
}

var ruleStart = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9-]*)\s*=\s*(.*)$`)

func parseGrammar(text string) (grammar, error) {
	g, name, bodies := grammar{}, "", map[string]string{}
	for line := range strings.SplitSeq(text, "\n") {
		line = stripComment(strings.TrimRight(line, "\r"))
		if m := ruleStart.FindStringSubmatch(line); m != nil {
			name = strings.ToLower(m[1])
			bodies[name] = m[2]
			continue
		}
		bodies[name] += " " + line
	}
	for name, body := range bodies {
		if name == "" {
			continue
		}
		p := &abnfParser{s: body}
		n, err := p.alternation()
		if err != nil || strings.TrimSpace(p.s[p.at:]) != "" {
			return nil, fmt.Errorf("%s: %w at %q", name, err, p.s[p.at:])
		}
		g[name] = n
	}
	return g, nil
}

// stripComment drops what follows a semicolon outside of quotes.
func stripComment(line string) string {
	before, _ := cutOutside(line, ';')
	return before
}

type abnfParser struct {
	s  string
	at int
}

func (p *abnfParser) space() {
	for p.at < len(p.s) && (p.s[p.at] == ' ' || p.s[p.at] == '\t') {
		p.at++
	}
}

func (p *abnfParser) alternation() (node, error) {
	var list []node
	for {
		n, err := p.concatenation()
		if err != nil {
			return nil, err
		}
		list = append(list, n)
		if p.space(); p.at >= len(p.s) || p.s[p.at] != '/' {
			break
		}
		p.at++
	}
	return func(g grammar, s string, at, depth int) (ends []int) {
		for _, n := range list {
			ends = append(ends, n(g, s, at, depth)...)
		}
		return unique(ends)
	}, nil
}

func unique(list []int) (out []int) {
	seen := map[int]bool{}
	for _, n := range list {
		if !seen[n] {
			seen[n] = true
			out = append(out, n)
		}
	}
	return out
}

func (p *abnfParser) concatenation() (node, error) {
	var list []node
	for {
		p.space()
		if p.at >= len(p.s) || strings.ContainsRune("/)]", rune(p.s[p.at])) {
			break
		}
		n, err := p.repetition()
		if err != nil {
			return nil, err
		}
		list = append(list, n)
	}
	return func(g grammar, s string, at, depth int) []int {
		ends := []int{at}
		for _, n := range list {
			var next []int
			for _, e := range ends {
				next = append(next, n(g, s, e, depth)...)
			}
			ends = unique(next)
		}
		return ends
	}, nil
}

var repeat = regexp.MustCompile(`^(\d*)(\*?)(\d*)`)

func (p *abnfParser) repetition() (node, error) {
	m := repeat.FindStringSubmatch(p.s[p.at:])
	low, high := 1, 1
	if m[0] != "" {
		p.at += len(m[0])
		low, _ = strconv.Atoi(m[1])
		high = low
		if m[2] == "*" {
			high = 1 << 20
			if m[3] != "" {
				high, _ = strconv.Atoi(m[3])
			}
		}
	}
	n, err := p.element()
	if err != nil {
		return nil, err
	}
	return func(g grammar, s string, at, depth int) (ends []int) {
		front, seen := []int{at}, map[int]bool{}
		if low == 0 {
			ends = append(ends, at)
		}
		for i := 1; i <= high && len(front) > 0; i++ {
			var next []int
			for _, f := range front {
				for _, e := range n(g, s, f, depth) {
					if i <= low || !seen[e] {
						seen[e] = true
						next = append(next, e)
					}
				}
			}
			if front = unique(next); i >= low {
				ends = append(ends, front...)
			}
		}
		return unique(ends)
	}, nil
}

func (p *abnfParser) element() (node, error) {
	switch c := p.s[p.at]; {
	case c == '(' || c == '[':
		p.at++
		n, err := p.alternation()
		if err != nil {
			return nil, err
		}
		p.space()
		if p.at >= len(p.s) {
			return nil, fmt.Errorf("a group does not end")
		}
		p.at++
		if c == '(' {
			return n, nil
		}
		return func(g grammar, s string, at, depth int) []int {
			return unique(append([]int{at}, n(g, s, at, depth)...))
		}, nil
	case c == '"':
		end := strings.IndexByte(p.s[p.at+1:], '"')
		text := p.s[p.at+1 : p.at+1+end]
		p.at += end + 2
		return func(_ grammar, s string, at, _ int) []int {
			if len(s)-at >= len(text) && strings.EqualFold(s[at:at+len(text)], text) {
				return []int{at + len(text)}
			}
			return nil
		}, nil
	case c == '%':
		return p.number()
	default:
		end := p.at
		for end < len(p.s) && (p.s[end] == '-' || p.s[end] >= '0' && p.s[end] <= '9' || p.s[end]|32 >= 'a' && p.s[end]|32 <= 'z') {
			end++
		}
		name := strings.ToLower(p.s[p.at:end])
		if name == "" {
			return nil, fmt.Errorf("no element")
		}
		p.at = end
		return func(g grammar, s string, at, depth int) []int {
			n, ok := g[name]
			if !ok || depth > 200 {
				return nil
			}
			return n(g, s, at, depth+1)
		}, nil
	}
}

var numberForm = regexp.MustCompile(`^%([xd])([0-9A-Fa-f]+)((?:\.[0-9A-Fa-f]+)*)(?:-([0-9A-Fa-f]+))?`)

func (p *abnfParser) number() (node, error) {
	m := numberForm.FindStringSubmatch(p.s[p.at:])
	if m == nil {
		return nil, fmt.Errorf("no number")
	}
	p.at += len(m[0])
	base := map[string]int{"x": 16, "d": 10}[m[1]]
	octet := func(s string) byte {
		n, _ := strconv.ParseUint(s, base, 8)
		return byte(n)
	}
	low := octet(m[2])
	if m[4] != "" {
		high := octet(m[4])
		return func(_ grammar, s string, at, _ int) []int {
			if at < len(s) && s[at] >= low && s[at] <= high {
				return []int{at + 1}
			}
			return nil
		}, nil
	}
	text := string(low)
	for part := range strings.SplitSeq(m[3], ".") {
		if part != "" {
			text += string(octet(part))
		}
	}
	return func(_ grammar, s string, at, _ int) []int {
		if strings.HasPrefix(s[at:], text) {
			return []int{at + len(text)}
		}
		return nil
	}, nil
}

// matches reports whether the whole text is of the rule.
func (g grammar) matches(rule, s string) bool {
	for _, e := range g[strings.ToLower(rule)](g, s, 0, 0) {
		if e == len(s) {
			return true
		}
	}
	return false
}
