// Package overload keeps the function at work when more comes than it can
// carry. It samples the load of the process, derives the states that
// operators know (congestion levels of each service, overload levels, the
// load and overload profile of the node), and decides for each request whether
// it is served: by message priority, by rate, and by the operational state.
// What it knows of its own load it tells to consumers (3gpp-Sbi-Lci and -Oci
// of TS 29.500 §6.3 and §6.4, DOIC of RFC 7683, Load of RFC 8583); what peers
// tell of theirs throttles the requests that are sent to them.
//
// The path of a request reads one pointer. Everything else happens once a
// sample, on the goroutine of Controller.Run.
package overload
