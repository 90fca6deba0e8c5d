// Package lab puts load on a bsfd and compares it with a reference in the same
// run: the same client, on the same machine, against a bare handler of the
// same HTTP stack that reads the same body and writes a reply of the same size.
package lab
