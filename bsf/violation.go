package bsf

import (
	"errors"
	"fmt"
)

// Fault says what is wrong with an attribute, in the terms of TS 29.500
// Table 5.2.7.2-1.
type Fault uint8

// The faults of an attribute.
const (
	FaultMissing           Fault = iota + 1 // MANDATORY_IE_MISSING
	FaultIncorrect                          // MANDATORY_IE_INCORRECT
	FaultOptionalIncorrect                  // OPTIONAL_IE_INCORRECT
)

// Violation is the error for a resource that breaks a rule of TS 29.521.
// Param is a JSON Pointer to the attribute.
type Violation struct {
	Fault  Fault
	Param  string
	Reason string
}

// Error implements error.
func (v *Violation) Error() string { return v.Param + ": " + v.Reason }

func missing(param, reason string) error { return &Violation{FaultMissing, param, reason} }

func incorrect(param, reason string) error { return &Violation{FaultIncorrect, param, reason} }

func optional(param, reason string) error { return &Violation{FaultOptionalIncorrect, param, reason} }

// Errors of the registry and of the stores behind it. The comment names the
// answer that a consumer gets.
var (
	// ErrNotFound: no such resource (404).
	ErrNotFound = errors.New("not found")
	// ErrModificationNotAllowed: BindingUpdate was not negotiated for the
	// binding (403 MODIFICATION_NOT_ALLOWED).
	ErrModificationNotAllowed = errors.New("BindingUpdate was not negotiated for this binding")
	// ErrUnavailable: the store cannot serve now and nothing was done (503).
	ErrUnavailable = errors.New("storage is not available")
	// ErrTimeout: the store did not answer in time and the outcome is not
	// known (504).
	ErrTimeout = errors.New("storage did not answer in time")
	// ErrExpired: the consumer stopped waiting before the work began, and
	// nothing was done (504 TIMED_OUT_REQUEST).
	ErrExpired = errors.New("the consumer no longer waits")
	// ErrFull: the store has no room for another record (500
	// INSUFFICIENT_RESOURCES).
	ErrFull = errors.New("storage is full")
)

// Conflict is the error for a registration that loses against an existing
// binding (403 EXISTING_BINDING_INFO_FOUND). Exactly one of the two holders
// is set.
type Conflict struct {
	Holder    *PcfBinding
	MbsHolder *PcfMbsBinding
	// Older is set when the timestamps of the requests decided.
	Older bool
}

// Error implements error.
func (c *Conflict) Error() string { return "another PCF holds the binding" }

// Ambiguous is the error for a discovery that more than one binding answers
// (400 MULTIPLE_BINDING_INFO_FOUND).
type Ambiguous struct {
	Count int
}

// Error implements error.
func (a *Ambiguous) Error() string { return fmt.Sprintf("%d bindings match", a.Count) }
