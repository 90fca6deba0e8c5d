package diameter

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"bsfd/diameter/rx"
)

// Retry is what happens with a request that failed at a peer. It takes
// alternates from the routes; without routes nothing is tried again.
type Retry struct {
	Enabled bool `koanf:"enabled" usage:"send failed requests to an alternate peer"`
	// UpdateDestinationHost replaces the Destination-Host with the alternate
	// when that is the destination itself and no agent.
	UpdateDestinationHost bool             `koanf:"updateDestinationHost" usage:"replace the Destination-Host when the alternate peer is no agent"`
	Attempts              PerCommand       `koanf:"maxRetryCount"`
	CycleBack             PerCommandSwitch `koanf:"cycleBack"`
	// Rules are the errors after which a request is sent again. None means one
	// rule for each command that covers every error and the time-out.
	Rules []Rule `koanf:"rules" usage:"which errors are tried again; every error and time-out of every command when empty"`
}

// PerCommand is a number for each command.
type PerCommand struct {
	AAR int `koanf:"aar" usage:"retries of an AAR; less than 1 is 1"`
	STR int `koanf:"str" usage:"retries of an STR"`
	RAR int `koanf:"rar" usage:"retries of a RAR"`
	ASR int `koanf:"asr" usage:"retries of an ASR"`
}

// PerCommandSwitch is a switch for each command.
type PerCommandSwitch struct {
	AAR bool `koanf:"aar" usage:"begin with the first peer again when all have failed an AAR"`
	STR bool `koanf:"str" usage:"the same for STR"`
	RAR bool `koanf:"rar" usage:"the same for RAR"`
	ASR bool `koanf:"asr" usage:"the same for ASR"`
}

func (p PerCommand) of(k kind) int { return max(1, [kinds]int{p.AAR, p.STR, p.RAR, p.ASR, 1}[k]) }

func (p PerCommandSwitch) of(k kind) bool { return [kinds]bool{p.AAR, p.STR, p.RAR, p.ASR, false}[k] }

// Originator tells who made an error answer.
type Originator string

// The originators of a rule.
const (
	OriginatorAny          Originator = "ANY"
	OriginatorIntermediate Originator = "INTERMEDIATE_PEER"
	OriginatorDestination  Originator = "DESTINATION_PEER"
)

// Rule names errors of a command.
type Rule struct {
	Message string `koanf:"message" usage:"AAR, STR, RAR or ASR"`
	// ResultCodes are four characters each: digits, and * for any digit.
	ResultCodes []string   `koanf:"resultCodes" usage:"four digits each, * for any digit; not 2xxx"`
	Timeout     bool       `koanf:"timeout" usage:"the rule covers the time-out, too"`
	Originator  Originator `koanf:"originator" usage:"who made the error: ANY, INTERMEDIATE_PEER or DESTINATION_PEER; ANY when empty"`
	Disabled    bool       `koanf:"disabled" usage:"the rule does not count"`
}

// DefaultRules cover every error and the time-out of every command.
func DefaultRules() []Rule {
	var rules []Rule
	for _, m := range []kind{kindAAR, kindSTR, kindRAR, kindASR} {
		rules = append(rules, Rule{Message: m.String(), ResultCodes: []string{"****"}, Timeout: true, Originator: OriginatorAny})
	}
	return rules
}

var codePattern = regexp.MustCompile(`^[0-9*]{4}$`)

func (r Retry) check() error {
	for i, rule := range r.Rules {
		if err := rule.check(); err != nil {
			return fmt.Errorf("rules[%d].%w", i, err)
		}
	}
	return nil
}

func (r Rule) check() error {
	if err := oneOf(r.Message, "AAR", "STR", "RAR", "ASR"); err != nil {
		return fmt.Errorf("message: %w", err)
	}
	if err := oneOf(r.Originator, "", OriginatorAny, OriginatorIntermediate, OriginatorDestination); err != nil {
		return fmt.Errorf("originator: %w", err)
	}
	for _, p := range r.ResultCodes {
		switch {
		case !codePattern.MatchString(p):
			return fmt.Errorf("resultCodes: %q is not four digits or *", p)
		case p[0] == '2':
			return fmt.Errorf("resultCodes: %q is a success, which is never tried again", p)
		}
	}
	if len(r.ResultCodes) == 0 && !r.Timeout {
		return errors.New("resultCodes: there are none and timeout is off")
	}
	return nil
}

// failure is why a request is sent again.
type failure struct {
	// result and destination are those of an error answer.
	result      rx.Result
	destination bool
	timeout     bool
}

// retries reports whether a rule covers the failure.
func (r *Retry) retries(k kind, f failure) bool {
	if !r.Enabled || k >= kindOther {
		return false
	}
	for i := range r.Rules {
		if r.Rules[i].covers(k, f) {
			return true
		}
	}
	return false
}

func (r *Rule) covers(k kind, f failure) bool {
	if r.Disabled || r.Message != k.String() {
		return false
	}
	if f.timeout {
		return r.Timeout
	}
	if f.result.Success() || r.Originator == OriginatorIntermediate && f.destination || r.Originator == OriginatorDestination && !f.destination {
		return false
	}
	for _, p := range r.ResultCodes {
		if matchCode(p, f.result.Code) {
			return true
		}
	}
	return false
}

// matchCode compares a code with a pattern of four characters.
func matchCode(pattern string, code uint32) bool {
	text := strconv.FormatUint(uint64(code), 10)
	if len(text) != len(pattern) {
		return false
	}
	for i := range len(pattern) {
		if pattern[i] != '*' && pattern[i] != text[i] {
			return false
		}
	}
	return true
}

// matchHost compares a host with a pattern in which * stands for any
// characters. Both are in lower case.
func matchHost(pattern, host string) bool {
	head, rest, wild := strings.Cut(pattern, "*")
	if !wild {
		return pattern == host
	}
	if !strings.HasPrefix(host, head) {
		return false
	}
	host = host[len(head):]
	for {
		part, more, again := strings.Cut(rest, "*")
		if !again {
			return strings.HasSuffix(host, part)
		}
		i := strings.Index(host, part)
		if i < 0 {
			return false
		}
		host, rest = host[i+len(part):], more
	}
}
