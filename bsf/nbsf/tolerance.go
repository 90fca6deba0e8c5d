package nbsf

import "bsfd/internal/tolerate"

// The rows of Tolerances.
const (
	tolNull = iota
	tolEmptyText
	tolEmptyArray
	tolName
	tolURI
	tolDiamRealm
	tolIpv6Text
	tolPrefixLength
	tolPrefixBits
	tolIpv4Mapped
	tolDualEndPoint
	tolMacText
	tolSstText
	tolFeaturesPrefix
	tolMediaType
	tolPatchType
	tolJSONPatch
	tolPatchFeature
	tolAccept
	tolPath
	tolQueryUnknown
	tolQueryQuoted
	tolQuerySnssai
)

// Tolerances is what this API serves although TS 29.521 or TS 29.571 has it
// otherwise. docs/interoperability.md holds the same table. What is answered
// obeys the OpenAPI file; "name" alone is kept as it came, because no other
// name would reach that PCF.
var Tolerances = tolerate.Table{
	tolNull: {
		Name:    "null",
		Accepts: "`null` for a member or an element, at any depth; in a PATCH for a member that cannot be null",
		Keeps:   "as if it were absent; a PATCH removes the member (RFC 7396)",
		Seen:    "cores in Java; JSON libraries that write every member",
	},
	tolEmptyText: {
		Name:    "emptyText",
		Accepts: "`\"\"` for a member or a query parameter that may be absent",
		Keeps:   "as if it were absent",
		Seen:    "cores in C and Go that write unset texts",
	},
	tolEmptyArray: {
		Name:    "emptyArray",
		Accepts: "`[]` for a member that may be absent",
		Keeps:   "as if it were absent",
		Seen:    "cores in Java and Go that write unset lists",
	},
	tolName: {
		Name:    "name",
		Accepts: "a name of one label, with `_`, or with a last label that is no top-level domain, in `pcfFqdn`, `pcfSmFqdn`, `pcfForUeFqdn`, `pcfDiamHost` or `pcfDiamRealm`; an address in the last two",
		Keeps:   "the name as it came",
		Seen:    "docker compose, Kubernetes, labs with /etc/hosts",
	},
	tolURI: {
		Name:    "uri",
		Accepts: "a URI or an authority in place of a name, such as `http://127.0.0.7:29507`, `pcf:7777` or `aaa://pcf.example.com`",
		Keeps:   "an address goes to the end points of that service (transport TCP, the port given or of the scheme), unless they have it; a name stays as the name, and its port becomes an end point without address when there is no end point; a Diameter identity is the host alone",
		Seen:    "free5GC PCF",
	},
	tolDiamRealm: {
		Name:    "diamRealm",
		Accepts: "`pcfDiamHost` without `pcfDiamRealm`",
		Keeps:   "the realm is the host after its first dot, or that of this BSF (`diameter.originRealm`) when the host has no dot",
		Seen:    "labs",
	},
	tolIpv6Text: {
		Name:    "ipv6Text",
		Accepts: "IPv6 in upper case, with leading zeros, or in the mixed notation",
		Keeps:   "RFC 5952 text",
		Seen:    "many; libraries that print eight groups",
	},
	tolPrefixLength: {
		Name:    "prefixLength",
		Accepts: "a prefix without a length",
		Keeps:   "/64 for what is stored, /128 for what is asked for, /32 for an IPv4 framed route",
		Seen:    "SMFs and AFs that know the address alone",
	},
	tolPrefixBits: {
		Name:    "prefixBits",
		Accepts: "a prefix with bits set beyond its length, in what is stored",
		Keeps:   "the bits are cleared",
		Seen:    "SMFs that write the address of the UE with /64",
	},
	tolIpv4Mapped: {
		Name:    "ipv4Mapped",
		Accepts: "IPv4 as an IPv4-mapped IPv6 address, in `ipv4Addr`, `ipv4Address` or `ipv6Address`",
		Keeps:   "the IPv4 address; of an end point in `ipv4Address`",
		Seen:    "sockets of both families",
	},
	tolDualEndPoint: {
		Name:    "dualEndPoint",
		Accepts: "`ipv4Address` and `ipv6Address` in one end point",
		Keeps:   "two end points with the same port",
		Seen:    "open5GS PCF that listens on both families",
	},
	tolMacText: {
		Name:    "macText",
		Accepts: "a MAC address with colons, dots or no separator",
		Keeps:   "lower case with hyphens",
		Seen:    "network stacks",
	},
	tolSstText: {
		Name:    "sstText",
		Accepts: "`sst` as a whole number in a string",
		Keeps:   "a number",
		Seen:    "cores that keep S-NSSAI as text",
	},
	tolFeaturesPrefix: {
		Name:    "featuresPrefix",
		Accepts: "`suppFeat` that begins with `0x`",
		Keeps:   "hexadecimal digits",
		Seen:    "cores in C",
	},
	tolMediaType: {
		Name:    "mediaType",
		Accepts: "POST or PUT without Content-Type, or as `text/json`",
		Keeps:   "as `application/json`",
		Seen:    "scripts, HTTP libraries without defaults",
	},
	tolPatchType: {
		Name:    "patchType",
		Accepts: "PATCH without Content-Type, as `application/json` or `text/json`: an array is a JSON Patch, an object a merge patch; a merge patch (an object) that is called `application/json-patch+json`",
		Keeps:   "as what it is",
		Seen:    "free5GC PCF, scripts",
	},
	tolJSONPatch: {
		Name:    "jsonPatch",
		Accepts: "JSON Patch (RFC 6902), of the members that a PATCH may change",
		Keeps:   "the binding as changed",
		Seen:    "cores that follow the pattern of other APIs",
	},
	tolPatchFeature: {
		Name:    "patchFeature",
		Accepts: "PATCH of a binding whose PCF negotiated no features at all",
		Keeps:   "the binding as changed",
		Seen:    "free5GC PCF, open5GS PCF",
	},
	tolAccept: {
		Name:    "accept",
		Accepts: "`Accept` without `application/json`",
		Keeps:   "the same answer as ever",
		Seen:    "open5GS: `application/problem+json` alone with DELETE",
	},
	tolPath: {
		Name:    "path",
		Accepts: "a path with doubled slashes or with one at its end",
		Keeps:   "as without them",
		Seen:    "API roots that end in a slash",
	},
	tolQueryUnknown: {
		Name:    "queryUnknown",
		Accepts: "a query parameter that is not defined",
		Keeps:   "ignored",
		Seen:    "consumers of a later release",
	},
	tolQueryQuoted: {
		Name:    "queryQuoted",
		Accepts: "a query parameter between quotation marks",
		Keeps:   "without them",
		Seen:    "clients that write each parameter as JSON",
	},
	tolQuerySnssai: {
		Name:    "querySnssai",
		Accepts: "`snssai` in a query as `1-010203`, `1` or `01010203` (hexadecimal)",
		Keeps:   "as JSON",
		Seen:    "scripts, AFs that keep S-NSSAI as text",
	},
}

// tol is the set of some rows of Tolerances.
func tol(rows ...int) tolerate.Set { return tolerate.Of(rows...) }
