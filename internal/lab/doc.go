// Package lab is a small network around bsfd. `bsfd lab` plays calls between
// simulated AFs and PCFs and draws them. `bsfd bench` puts load on a bsfd and
// compares it with references in the same run: the same client, on the same
// machine, against a bare handler of the same HTTP stack, or against relays of
// Diameter.
package lab
