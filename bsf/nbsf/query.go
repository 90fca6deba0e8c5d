package nbsf

import (
	"net/url"
	"strconv"
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

// read reads the value of a parameter into dst, or returns the problem with it.
// An empty value stands for an absent parameter.
func read[T any](c *call, p param, condition *sbi.Condition, dst *T, f *form[T]) *sbi.Problem {
	if p.value == "" && c.tolerate(tol(tolEmptyText)) {
		return nil
	}
	v, err := f.exact(p.value)
	if err != nil && f.lenient != nil {
		if lenient, used, ok := f.lenient(p.value); ok && c.tolerate(used) {
			v, err = lenient, nil
		}
	}
	if err != nil {
		return sbi.FailParam(condition, "query "+p.name, reasonText(err))
	}
	*dst = v
	return nil
}

// unknown is the problem with a parameter that is not defined, if it is one.
func (c *call) unknown(p param) *sbi.Problem {
	if c.tolerate(tol(tolQueryUnknown)) {
		return nil
	}
	return sbi.FailParam(sbi.InvalidQueryParam, "query "+p.name, "not defined")
}

// unquote takes a value out of its quotation marks.
func (c *call) unquote(p *param) {
	if n := len(p.value); n >= 2 && p.value[0] == '"' && p.value[n-1] == '"' && c.tolerate(tol(tolQueryQuoted)) {
		p.value = p.value[1 : n-1]
	}
}

// readFeatures reads supp-feat; dst stays nil when the value is empty.
func (c *call) readFeatures(p param, dst **tgpp.Features) *sbi.Problem {
	if p.value == "" && c.tolerate(tol(tolEmptyText)) {
		return nil
	}
	*dst = new(tgpp.Features)
	return read(c, p, sbi.OptionalQueryIncorrect, *dst, featuresForm)
}

// discoverQuery reads the parameters of GET /pcfBindings (TS 29.521
// §5.3.2.3.2). features is nil without supp-feat.
func (a *API) discoverQuery(c *call, q *bsf.Query) (features *tgpp.Features, problem *sbi.Problem) {
	var buf [3]param
	list, problem := params(c.r.URL.RawQuery, buf[:0])
	if problem != nil {
		return nil, problem
	}
	for i := range list {
		p := &list[i]
		c.unquote(p)
		if problem := a.discoverParam(c, *p, q, &features); problem != nil {
			return nil, problem
		}
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

// discoverParam reads one parameter of GET /pcfBindings.
func (a *API) discoverParam(c *call, p param, q *bsf.Query, features **tgpp.Features) *sbi.Problem {
	switch p.name {
	case "ipv4Addr":
		return read(c, p, sbi.MandatoryQueryIncorrect, &q.Ipv4Addr, ipv4Form)
	case "ipv6Prefix":
		return read(c, p, sbi.MandatoryQueryIncorrect, &q.Ipv6, askedForm)
	case "macAddr48":
		return read(c, p, sbi.MandatoryQueryIncorrect, &q.MacAddr48, macForm)
	case "dnn":
		return read(c, p, sbi.OptionalQueryIncorrect, &q.Dnn, dnnForm)
	case "supi":
		return read(c, p, sbi.OptionalQueryIncorrect, &q.Supi, supiForm)
	case "gpsi":
		return read(c, p, sbi.OptionalQueryIncorrect, &q.Gpsi, gpsiForm)
	case "snssai":
		return a.snssaiParam(c, p, q)
	case "ipDomain":
		return read(c, p, sbi.OptionalQueryIncorrect, &q.IpDomain, ipDomainForm)
	case "supp-feat":
		return c.readFeatures(p, features)
	default:
		return c.unknown(p)
	}
}

// snssaiParam reads the parameter snssai, which is JSON or a short text.
func (a *API) snssaiParam(c *call, p param, q *bsf.Query) *sbi.Problem {
	if p.value == "" && c.tolerate(tol(tolEmptyText)) {
		return nil
	}
	if v, ok := snssaiText(p.value); ok && c.tolerate(tol(tolQuerySnssai)) {
		q.Snssai = &v
		return nil
	}
	v := new(tgpp.Snssai)
	return a.object(c, p, sbi.OptionalQueryIncorrect, func(d *decoder) func(string) {
		return d.only("snssai", func() {
			if d.snssai("snssai", optional, v) {
				q.Snssai = v
			}
		})
	})
}

// snssaiText reads an S-NSSAI as text: "1-010203", "1" (TS 29.571 §5.4.4.2), or
// eight hexadecimal digits, of which the first two are the sst.
func snssaiText(s string) (v tgpp.Snssai, ok bool) {
	sst, sd, hasSd := strings.Cut(s, "-")
	base := 10
	if !hasSd && len(s) == 8 {
		sst, sd, hasSd, base = s[:2], s[2:], true, 16
	}
	n, err := strconv.ParseUint(sst, base, 8)
	if err != nil || base == 10 && sst != strconv.FormatUint(n, 10) {
		return v, false
	}
	if hasSd {
		if sd, err = tgpp.ParseSd(sd); err != nil {
			return v, false
		}
	}
	return tgpp.Snssai{Sst: uint8(n), Sd: sd}, true
}

// object reads a parameter whose value is JSON (TS 29.501 §5.3.13) with the
// decoder of bodies. The value is wrapped, so that the decoder sees an object
// with the parameter as its member.
func (a *API) object(c *call, p param, condition *sbi.Condition, members func(*decoder) func(string)) *sbi.Problem {
	d := a.decoders.get()
	defer a.decoders.put(d)
	d.in.WriteString(`{"` + p.name + `":`)
	d.in.WriteString(p.value)
	d.in.WriteByte('}')
	if problem := d.decode(members(d)); problem != nil {
		return sbi.FailParam(condition, "query "+p.name, problem.Detail)
	}
	c.used |= d.used
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
func (a *API) ueQuery(c *call) (supi tgpp.Supi, gpsi tgpp.Gpsi, features *tgpp.Features, problem *sbi.Problem) {
	list, problem := params(c.r.URL.RawQuery, nil)
	for _, p := range list {
		c.unquote(&p)
		switch p.name {
		case "supi":
			problem = read(c, p, sbi.MandatoryQueryIncorrect, &supi, supiForm)
		case "gpsi":
			problem = read(c, p, sbi.MandatoryQueryIncorrect, &gpsi, gpsiForm)
		case "supp-feat":
			problem = c.readFeatures(p, &features)
		default:
			problem = c.unknown(p)
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
func (a *API) mbsQuery(c *call) (session *tgpp.MbsSessionId, features *tgpp.Features, problem *sbi.Problem) {
	list, problem := params(c.r.URL.RawQuery, nil)
	for _, p := range list {
		switch p.name {
		case "mbs-session-id":
			var b bsf.PcfMbsBinding
			problem = a.object(c, param{"mbsSessionId", p.value}, sbi.MandatoryQueryIncorrect, func(d *decoder) func(string) {
				return d.only("mbsSessionId", func() { d.pcfMbsBinding(&b)("mbsSessionId") })
			})
			if problem != nil {
				problem.InvalidParams[0].Param = "query mbs-session-id"
			}
			session = b.MbsSessionId
		case "supp-feat":
			// The OpenAPI file declares JSON content here: a quoted string.
			p.value = strings.Trim(p.value, `"`)
			problem = c.readFeatures(p, &features)
		default:
			problem = c.unknown(p)
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
