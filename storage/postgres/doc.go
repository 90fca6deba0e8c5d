// Package postgres is the storage engine on PostgreSQL and on distributed SQL
// that speaks its protocol: nothing here needs an extension, a session lock or
// a notification.
//
// Requests that arrive together share a round trip. Two goroutines, each with a
// connection, take all plain registrations and deregistrations that wait and
// send them as a few set-based statements in one transaction; lookups are
// pipelined the same way. When nothing waits, a request goes out alone and at
// once. What a statement over a set cannot decide (collision rules, framed
// routes, subscribers to be told) goes through a transaction of its own, in
// which guard rows make racing requests take turns.
package postgres
