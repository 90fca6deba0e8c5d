// Package bsf is the domain of the Binding Support Function (TS 23.503
// §6.1.1.2.2, TS 29.521): which PCF holds the session of a UE address, who
// wants to know when that changes, and the rules that decide between two
// registrations for the same session.
//
// Registry is the door: Register, Discover, Update and Deregister for the
// bindings of PDU sessions, and the same for the bindings of a UE, of an MBS
// session and for subscriptions. It keeps its state in a Store, so that every
// rule that two racing requests could break is decided inside one atomic step
// of the storage engine.
package bsf
