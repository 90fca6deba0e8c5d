package overload

import (
	"fmt"
	"net/mail"
	"strconv"
	"strings"
	"time"
)

// Control is one element of a 3gpp-Sbi-Lci or 3gpp-Sbi-Oci (TS 29.500
// §5.2.3.2.9, §5.2.3.2.10).
type Control struct {
	Timestamp time.Time
	// Validity is the Period-of-Validity; of an Oci only.
	Validity time.Duration
	// Metric is the Load-Metric or the Overload-Reduction-Metric, 0 to 100.
	Metric int
	// Scope is the name of the first parameter of the scope, such as
	// NF-Instance or Callback-Uri, and Values are its values.
	Scope  string
	Values []string
	// Params are the other parameters of the scope, such as S-NSSAI and DNN.
	Params map[string]string
}

// ParseOCI reads a 3gpp-Sbi-Oci.
func ParseOCI(s string) ([]Control, error) { return parseControls(s, true) }

// ParseLCI reads a 3gpp-Sbi-Lci.
func ParseLCI(s string) ([]Control, error) { return parseControls(s, false) }

// maxElements bounds the elements of one header field.
const maxElements = 64

func parseControls(s string, overload bool) (list []Control, err error) {
	for element, rest := "", s; rest != ""; {
		element, rest = cutOutside(rest, ',')
		c, err := parseControl(element, overload)
		if err != nil {
			return nil, err
		}
		if list = append(list, c); len(list) > maxElements {
			return nil, fmt.Errorf("more than %d elements", maxElements)
		}
	}
	if len(list) == 0 {
		return nil, fmt.Errorf("no element")
	}
	return list, nil
}

// cutOutside cuts at the first separator that is not between quotes.
func cutOutside(s string, sep byte) (before, after string) {
	quoted := false
	for i := range len(s) {
		switch {
		case s[i] == '"':
			quoted = !quoted
		case s[i] == sep && !quoted:
			return s[:i], s[i+1:]
		}
	}
	return s, ""
}

// param reads "Name: value".
func param(s string) (name, value string, ok bool) {
	name, value, ok = strings.Cut(s, ":")
	name = strings.Trim(name, " \t")
	if value == "" || value[0] != ' ' && value[0] != '\t' {
		return name, "", false
	}
	value = strings.Trim(value, " \t")
	return name, value, ok && name != "" && value != ""
}

func unquote(s string) (string, bool) {
	if len(s) < 2 || s[0] != '"' || s[len(s)-1] != '"' || strings.Contains(s[1:len(s)-1], `"`) {
		return "", false
	}
	return s[1 : len(s)-1], true
}

// scopes are the parameters that name a scope.
const scopes = " NF-Instance NF-Set NF-Service-Instance NF-Service-Set NFC-Instance NFC-Set NFC-Service-Instance NFC-Service-Set Callback-Uri SCP-FQDN SEPP-FQDN "

func parseControl(s string, overload bool) (c Control, err error) {
	for i := 0; s != ""; i++ {
		var part string
		part, s = cutOutside(s, ';')
		name, value, ok := param(part)
		if !ok {
			return c, fmt.Errorf("%q is no parameter", part)
		}
		if err := c.take(name, value, overload, &i); err != nil {
			return c, fmt.Errorf("%s: %w", name, err)
		}
	}
	if c.Scope == "" {
		return c, fmt.Errorf("there is no scope")
	}
	return c, nil
}

// take notes the parameter at a position; those before the scope have a fixed
// order.
func (c *Control) take(name, value string, overload bool, position *int) error {
	metric := "Load-Metric"
	if overload {
		metric = "Overload-Reduction-Metric"
	} else if *position == 1 {
		// An Lci has no Period-of-Validity.
		*position = 2
	}
	var ok bool
	switch *position {
	case 0:
		text, quoted := unquote(value)
		at, err := mail.ParseDate(text)
		c.Timestamp, ok = at, quoted && err == nil && name == "Timestamp"
	case 1:
		digits, seconds := strings.CutSuffix(value, "s")
		n, err := strconv.ParseUint(digits, 10, 31)
		c.Validity, ok = time.Duration(n)*time.Second, seconds && err == nil && name == "Period-of-Validity"
	case 2:
		digits, percent := strings.CutSuffix(value, "%")
		n, err := strconv.ParseUint(digits, 10, 8)
		c.Metric, ok = int(n), percent && err == nil && n <= 100 && name == metric && (len(digits) == 1 || digits[0] != '0')
	case 3:
		c.Scope = name
		c.Values, ok = scopeValues(name, value)
		ok = ok && strings.Contains(scopes, " "+name+" ")
	default:
		if c.Params == nil {
			c.Params = make(map[string]string)
		}
		c.Params[name], ok = value, true
	}
	if !ok {
		return fmt.Errorf("%q is not allowed here", value)
	}
	return nil
}

// scopeValues are the values of a scope: one, or the URIs of a Callback-Uri.
func scopeValues(name, value string) (list []string, ok bool) {
	if name != "Callback-Uri" {
		return []string{value}, true
	}
	for rest := value; rest != ""; {
		var part string
		part, rest = cutOutside(rest, '&')
		uri, quoted := unquote(strings.Trim(part, " \t"))
		if !quoted || uri == "" {
			return nil, false
		}
		list = append(list, uri)
	}
	return list, len(list) > 0
}
