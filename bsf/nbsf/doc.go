// Package nbsf is the Nbsf_Management API (TS 29.521) over the registry of
// package bsf: it decodes and checks requests in one pass, calls the registry
// and encodes the answers. The rules of the domain are the registry's.
package nbsf
