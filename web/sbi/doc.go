// Package sbi is the HTTP side of service-based interfaces (TS 29.500): the
// server with its listeners, TLS and limits, the client for requests that the
// BSF originates, the 3gpp-Sbi headers, and errors as ProblemDetails.
//
// Handlers are plain http.Handlers and need nothing of the server beyond that
// interface; the server itself sits behind a small interface of its own.
package sbi
