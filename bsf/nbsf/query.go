package nbsf

import (
	"net/url"
	"strings"

	"bsfd/bsf"
	"bsfd/internal/tgpp"
	"bsfd/web/sbi"
)

// param is one query parameter, decoded.
type param struct{ name, value string }

// params splits a query string. Parameters that are repeated or whose escapes
// are broken are a problem.
func params(raw string, dst []param) ([]param, *sbi.Problem) {
	for pair := range strings.SplitSeq(raw, "&") {
		if pair == "" {
			continue
		}
		name, value, _ := strings.Cut(pair, "=")
		var err error
		if strings.ContainsAny(pair, "%+") {
			if name, err = url.QueryUnescape(name); err == nil {
				value, err = url.QueryUnescape(value)
			}
		}
		if err != nil {
			return nil, sbi.FailParam(sbi.InvalidQueryParam, "query "+name, "broken percent-encoding")
		}
		for _, p := range dst {
			if p.name == name {
				return nil, sbi.FailParam(sbi.InvalidQueryParam, "query "+name, "given twice")
			}
		}
		dst = append(dst, param{name, value})
	}
	return dst, nil
}

// read parses the value of a parameter into dst, or returns the problem with
// it.
func read[T any](p param, c *sbi.Condition, dst *T, parse func(string) (T, error)) *sbi.Problem {
	v, err := parse(p.value)
	if err != nil {
		return sbi.FailParam(c, "query "+p.name, reasonText(err))
	}
	*dst = v
	return nil
}

// discoverQuery reads the parameters of GET /pcfBindings (TS 29.521
// §5.3.2.3.2). features is nil without supp-feat.
func (a *API) discoverQuery(raw string, q *bsf.Query) (features *tgpp.Features, problem *sbi.Problem) {
	var buf [3]param
	list, problem := params(raw, buf[:0])
	for _, p := range list {
		switch p.name {
		case "ipv4Addr":
			problem = read(p, sbi.MandatoryQueryIncorrect, &q.Ipv4Addr, tgpp.ParseIpv4Addr)
		case "ipv6Prefix":
			problem = read(p, sbi.MandatoryQueryIncorrect, &q.Ipv6, tgpp.ParseIpv6Prefix)
		case "macAddr48":
			problem = read(p, sbi.MandatoryQueryIncorrect, &q.MacAddr48, tgpp.ParseMacAddr48)
		case "dnn":
			problem = read(p, sbi.OptionalQueryIncorrect, &q.Dnn, tgpp.ParseDnn)
		case "supi":
			problem = read(p, sbi.OptionalQueryIncorrect, &q.Supi, tgpp.ParseSupi)
		case "gpsi":
			problem = read(p, sbi.OptionalQueryIncorrect, &q.Gpsi, tgpp.ParseGpsi)
		case "snssai":
			q.Snssai = &tgpp.Snssai{}
			problem = a.object(p, sbi.OptionalQueryIncorrect, func(d *decoder) func(string) {
				return d.only("snssai", func() { d.snssai("snssai", optional, q.Snssai) })
			})
		case "ipDomain":
			problem = read(p, sbi.OptionalQueryIncorrect, &q.IpDomain, tgpp.ParseIPDomain)
		case "supp-feat":
			features = new(tgpp.Features)
			problem = read(p, sbi.OptionalQueryIncorrect, features, tgpp.ParseFeatures)
		default:
			problem = sbi.FailParam(sbi.InvalidQueryParam, "query "+p.name, "not defined")
		}
		if problem != nil {
			return nil, problem
		}
	}
	if problem != nil {
		return nil, problem
	}
	hasIP := q.Ipv4Addr.IsValid() || q.Ipv6.IsValid()
	switch {
	case hasIP && q.MacAddr48 != "":
		problem = sbi.FailParam(sbi.MandatoryQueryIncorrect, "query macAddr48", "not together with an IP address")
	case !hasIP && q.MacAddr48 == "":
		problem = sbi.Fail(sbi.MandatoryQueryMissing, "one of ipv4Addr, ipv6Prefix and macAddr48 is required")
		for _, name := range [...]string{"ipv4Addr", "ipv6Prefix", "macAddr48"} {
			problem.InvalidParams = append(problem.InvalidParams, sbi.InvalidParam{Param: "query " + name, Reason: "missing"})
		}
	}
	return features, problem
}

// object reads a parameter whose value is JSON (TS 29.501 §5.3.13) with the
// decoder of bodies. The value is wrapped, so that the decoder sees an object
// with the parameter as its member.
func (a *API) object(p param, c *sbi.Condition, members func(*decoder) func(string)) *sbi.Problem {
	d := a.decoders.get()
	defer a.decoders.put(d)
	d.in.WriteString(`{"` + p.name + `":`)
	d.in.WriteString(p.value)
	d.in.WriteByte('}')
	if problem := d.decode(members(d)); problem != nil {
		return sbi.FailParam(c, "query "+p.name, problem.Detail)
	}
	return nil
}

// only reads the one member of that name. Another can be there only because
// the value of the parameter closed the object and went on.
func (d *decoder) only(name string, read func()) func(string) {
	return func(got string) {
		if got == name {
			read()
			return
		}
		d.skip()
		d.reject("", optional, "must be one JSON object")
	}
}

// ueQuery reads the parameters of GET /pcf-ue-bindings.
func ueQuery(raw string) (supi tgpp.Supi, gpsi tgpp.Gpsi, features *tgpp.Features, problem *sbi.Problem) {
	list, problem := params(raw, nil)
	for _, p := range list {
		switch p.name {
		case "supi":
			problem = read(p, sbi.MandatoryQueryIncorrect, &supi, tgpp.ParseSupi)
		case "gpsi":
			problem = read(p, sbi.MandatoryQueryIncorrect, &gpsi, tgpp.ParseGpsi)
		case "supp-feat":
			features = new(tgpp.Features)
			problem = read(p, sbi.OptionalQueryIncorrect, features, tgpp.ParseFeatures)
		default:
			problem = sbi.FailParam(sbi.InvalidQueryParam, "query "+p.name, "not defined")
		}
		if problem != nil {
			return
		}
	}
	if problem == nil && supi == "" && gpsi == "" {
		problem = sbi.FailParam(sbi.MandatoryQueryMissing, "query supi", "supi or gpsi is required")
	}
	return
}

// mbsQuery reads the parameters of GET /pcf-mbs-bindings.
func (a *API) mbsQuery(raw string) (session *tgpp.MbsSessionId, features *tgpp.Features, problem *sbi.Problem) {
	list, problem := params(raw, nil)
	for _, p := range list {
		switch p.name {
		case "mbs-session-id":
			var b bsf.PcfMbsBinding
			problem = a.object(param{"mbsSessionId", p.value}, sbi.MandatoryQueryIncorrect, func(d *decoder) func(string) {
				return d.only("mbsSessionId", func() { d.pcfMbsBinding(&b)("mbsSessionId") })
			})
			if problem != nil {
				problem.InvalidParams[0].Param = "query mbs-session-id"
			}
			session = b.MbsSessionId
		case "supp-feat":
			features = new(tgpp.Features)
			// The OpenAPI file declares JSON content here: a quoted string.
			p.value = strings.Trim(p.value, `"`)
			problem = read(p, sbi.OptionalQueryIncorrect, features, tgpp.ParseFeatures)
		default:
			problem = sbi.FailParam(sbi.InvalidQueryParam, "query "+p.name, "not defined")
		}
		if problem != nil {
			return
		}
	}
	if problem == nil && session == nil {
		problem = sbi.FailParam(sbi.MandatoryQueryMissing, "query mbs-session-id", "missing")
	}
	return
}

// queryDNN is the dnn of a query as it was sent, empty when it has none.
func queryDNN(raw string) string {
	const name = "dnn="
	for rest := raw; rest != ""; {
		var pair string
		pair, rest, _ = strings.Cut(rest, "&")
		if value, ok := strings.CutPrefix(pair, name); ok {
			return value
		}
	}
	return ""
}
