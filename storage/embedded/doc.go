// Package embedded is the durable storage engine that needs no other process:
// the memory engine answers, a Pebble store under it keeps one time-ordered
// key per record.
//
// One goroutine commits. It takes all changes that wait, plans each against
// the state in memory, writes them as one batch with one sync, makes them
// visible and only then lets their callers answer. What was acknowledged is on
// disk; what is on disk is found after a restart, with all its lookup keys,
// because the lookup side is built from the records.
package embedded
