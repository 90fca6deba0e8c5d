// Package tgpp holds the 3GPP value types that more than one package uses:
// identifiers, addresses, slices and features of TS 29.571, each with its
// parser and validation. Names are those of the OpenAPI files.
//
// Parsers accept what the patterns of TS 29.571 accept, and nothing else, and
// return an error whose text tells the sender what was expected. The zero
// value of every type means "absent".
package tgpp

import "errors"

// ErrFormat is the error that every parser of this package wraps.
var ErrFormat = errors.New("invalid format")
