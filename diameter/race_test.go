//go:build race

package diameter

const raceEnabled = true
