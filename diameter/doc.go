// Package diameter is the Rx gateway: a Diameter agent (RFC 6733) between AFs
// and PCFs. It finds the PCF of an AA-Request by the binding of the UE address
// (TS 29.513, TS 29.213 §7) and relays everything else by Destination-Host.
//
// A connection has one goroutine that reads, handles and forwards; what it
// sends to other connections is written without waiting for them. Requests
// that wait for an answer stand in the table of the connection they went out
// on, so that a lost connection finds all of its own.
package diameter
