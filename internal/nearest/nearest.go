// Package nearest finds the name that may have been meant by one that does not
// exist.
package nearest

import (
	"fmt"
	"strings"

	"github.com/agnivade/levenshtein"
)

// Name is the name among known that looks most like name, or empty when none
// does. The last part of a path may be what was meant, too.
func Name(name string, known []string) string {
	best, least := "", len(name)/3+2
	for _, k := range known {
		d := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(k))
		if last := k[strings.LastIndexByte(k, '.')+1:]; strings.EqualFold(last, name) {
			d = min(d, 1)
		}
		if d < least {
			best, least = k, d
		}
	}
	return best
}

// Meant is the end of an error about a name that does not exist: " (did you mean
// …?)", or empty.
func Meant(name string, known []string) string {
	if near := Name(name, known); near != "" {
		return fmt.Sprintf(" (did you mean %s?)", near)
	}
	return ""
}
