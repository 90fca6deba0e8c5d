package sbi

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"bsfd/internal/refusal"
	"bsfd/internal/tgpp"
)

// Condition is a named kind of error with its answer. Operators may change
// the answer by name; applications see Status and Cause.
type Condition struct {
	// Name is the key under which the condition is configured.
	Name string
	// Status is the HTTP status, 400 to 599.
	Status int
	// Cause is the machine-readable cause (TS 29.500 Table 5.2.7.2-1), or
	// empty where none is defined.
	Cause string
	// Title is the short text for people.
	Title string
	// ErrorID is the number of the condition in application error ids.
	ErrorID int
}

// Conditions that do not belong to one API.
var (
	InvalidAPI              = &Condition{"invalidApi", 400, "INVALID_API", "Unknown API or version", 101}
	InvalidMsgFormat        = &Condition{"invalidMsgFormat", 400, "INVALID_MSG_FORMAT", "Malformed message", 102}
	InvalidQueryParam       = &Condition{"invalidQueryParam", 400, "INVALID_QUERY_PARAM", "Unsupported query parameter", 103}
	MandatoryQueryMissing   = &Condition{"mandatoryQueryParamMissing", 400, "MANDATORY_QUERY_PARAM_MISSING", "Required query parameter is missing", 104}
	MandatoryQueryIncorrect = &Condition{"mandatoryQueryParamIncorrect", 400, "MANDATORY_QUERY_PARAM_INCORRECT", "Required query parameter is invalid", 105}
	OptionalQueryIncorrect  = &Condition{"optionalQueryParamIncorrect", 400, "OPTIONAL_QUERY_PARAM_INCORRECT", "Optional query parameter is invalid", 106}
	MandatoryIeMissing      = &Condition{"mandatoryIeMissing", 400, "MANDATORY_IE_MISSING", "Required parameter is missing", 107}
	MandatoryIeIncorrect    = &Condition{"mandatoryIeIncorrect", 400, "MANDATORY_IE_INCORRECT", "Required parameter is invalid", 108}
	OptionalIeIncorrect     = &Condition{"optionalIeIncorrect", 400, "OPTIONAL_IE_INCORRECT", "Optional parameter is invalid", 109}
	ModificationNotAllowed  = &Condition{"modificationNotAllowed", 403, "MODIFICATION_NOT_ALLOWED", "Modification is not allowed", 110}
	NotFound                = &Condition{"resourceNotFound", 404, "", "Resource not found", 111}
	UnknownPath             = &Condition{"resourceUriStructureNotFound", 404, "RESOURCE_URI_STRUCTURE_NOT_FOUND", "Unknown resource", 112}
	MethodNotAllowed        = &Condition{"methodNotAllowed", 405, "", "Method not allowed", 113}
	NotAcceptable           = &Condition{"notAcceptable", 406, "", "Not acceptable", 114}
	ContentTooLarge         = &Condition{"contentTooLarge", 413, "", "Body is too large", 115}
	URITooLong              = &Condition{"uriTooLong", 414, "", "URI is too long", 116}
	UnsupportedMediaType    = &Condition{"unsupportedMediaType", 415, "", "Unsupported media type", 117}
	HeaderTooLarge          = &Condition{"headerTooLarge", 431, "", "Header is too large", 126}
	SystemFailure           = &Condition{"systemFailure", 500, "SYSTEM_FAILURE", "Internal failure", 118}
	InsufficientResources   = &Condition{"insufficientResources", 500, "INSUFFICIENT_RESOURCES", "Insufficient resources", 119}
	NotImplemented          = &Condition{"methodNotImplemented", 501, "", "Method is not implemented", 120}
	StorageUnavailable      = &Condition{"storageUnavailable", 503, "NF_FAILOVER", "Storage is not available", 121}
	ShuttingDown            = &Condition{"shuttingDown", 503, "NF_FAILOVER", "Shutting down", 122}
	StorageTimeout          = &Condition{"storageTimeout", 504, "TARGET_NF_NOT_REACHABLE", "Storage did not answer in time", 123}
	TimedOutRequest         = &Condition{"timedOutRequest", 504, "TIMED_OUT_REQUEST", "Request arrived too late", 124}
)

// Conditions lists the conditions of this package.
func Conditions() []*Condition {
	return []*Condition{
		InvalidAPI, InvalidMsgFormat, InvalidQueryParam, MandatoryQueryMissing, MandatoryQueryIncorrect,
		OptionalQueryIncorrect, MandatoryIeMissing, MandatoryIeIncorrect, OptionalIeIncorrect,
		ModificationNotAllowed, NotFound, UnknownPath, MethodNotAllowed, NotAcceptable, ContentTooLarge,
		URITooLong, HeaderTooLarge, UnsupportedMediaType, SystemFailure, InsufficientResources, NotImplemented,
		StorageUnavailable, ShuttingDown, StorageTimeout, TimedOutRequest, congested,
	}
}

// InvalidParam names a wrong parameter (TS 29.571 §5.2.4.2): a JSON Pointer,
// "query name", "header name" or "{variable}".
type InvalidParam struct {
	Param  string
	Reason string
}

// Problem is an error answer: ProblemDetails (TS 29.571 §5.2.4.1) of a
// condition.
type Problem struct {
	Condition     *Condition
	Detail        string
	InvalidParams []InvalidParam
	// Extra appends further members, each with its leading comma, as the
	// extended problem types of an API have them.
	Extra func(dst []byte) []byte
	// Header holds fields of the answer, such as Allow or Retry-After.
	Header http.Header
	// Subscriber is the SUPI or GPSI that the request was about, for the log.
	Subscriber string
}

// Error implements error.
func (p *Problem) Error() string {
	if p.Detail != "" {
		return p.Condition.Title + ": " + p.Detail
	}
	return p.Condition.Title
}

// Fail returns a problem of a condition with a detail text.
func Fail(c *Condition, detail string) *Problem { return &Problem{Condition: c, Detail: detail} }

// FailParam returns a problem with one invalid parameter.
func FailParam(c *Condition, param, reason string) *Problem {
	return &Problem{Condition: c, Detail: param + ": " + reason, InvalidParams: []InvalidParam{{param, reason}}}
}

// With sets a header field and returns p.
func (p *Problem) With(field, value string) *Problem {
	if p.Header == nil {
		p.Header = make(http.Header)
	}
	p.Header.Set(field, value)
	return p
}

// Override replaces parts of the answer of a condition; zero fields keep the
// default.
type Override struct {
	Status      int    `koanf:"status"`
	Cause       string `koanf:"cause"`
	Title       string `koanf:"title"`
	Description string `koanf:"description"`
}

// ErrorConfig configures how errors are answered and logged.
type ErrorConfig struct {
	// Overrides holds the configured answers by condition name.
	Overrides map[string]Override `koanf:"conditions" usage:"answers by condition name"`
	// ApplicationErrorID puts the FQDN and the application error id into
	// detail.
	ApplicationErrorID bool `koanf:"applicationErrorId" usage:"put FQDN and application error id into detail"`
	// Fqdn is the name of this BSF for that detail.
	Fqdn string `koanf:"-"`
	// InstanceID is the NF instance id for the Server header.
	InstanceID string `koanf:"-"`
	// ServerHeader puts "BSF-<instance id>" into the Server field of errors
	// with a status in ServerHeaderCodes, where an empty list means all.
	ServerHeader      bool  `koanf:"serverHeader" usage:"put the Server field into errors"`
	ServerHeaderCodes []int `koanf:"serverHeaderCodes" usage:"statuses with a Server field; none means all"`
	// Log bounds the lines for what is refused.
	Log refusal.Config `koanf:"log"`
	// ShowUeIdentifier adds the SUPI or GPSI to a line.
	ShowUeIdentifier bool `koanf:"-"`
}

// effective is a condition with its override applied.
type effective struct {
	status             int
	cause, title, desc string
}

func (c *Condition) effective(overrides map[string]Override) effective {
	e := effective{c.Status, c.Cause, c.Title, ""}
	o, ok := overrides[c.Name]
	if !ok {
		return e
	}
	if o.Status != 0 {
		e.status = o.Status
	}
	if o.Cause != "" {
		e.cause = o.Cause
	}
	if o.Title != "" {
		e.title = o.Title
	}
	e.desc = o.Description
	return e
}

// appendJSON appends the ProblemDetails.
func (p *Problem) appendJSON(dst []byte, e effective, detail, instance string) []byte {
	dst = append(dst, `{"title":`...)
	dst = tgpp.AppendJSONString(dst, e.title)
	dst = append(dst, `,"status":`...)
	dst = strconv.AppendInt(dst, int64(e.status), 10)
	if detail != "" {
		dst = append(dst, `,"detail":`...)
		dst = tgpp.AppendJSONString(dst, strings.ToValidUTF8(detail, "\uFFFD"))
	}
	if instance != "" {
		dst = append(dst, `,"instance":`...)
		dst = tgpp.AppendJSONString(dst, strings.ToValidUTF8(instance, "\uFFFD"))
	}
	if e.cause != "" {
		dst = append(dst, `,"cause":`...)
		dst = tgpp.AppendJSONString(dst, e.cause)
	}
	for i, ip := range p.InvalidParams {
		if i == 0 {
			dst = append(dst, `,"invalidParams":[`...)
		} else {
			dst = append(dst, ',')
		}
		dst = append(dst, `{"param":`...)
		dst = tgpp.AppendJSONString(dst, strings.ToValidUTF8(ip.Param, "\uFFFD"))
		dst = append(dst, `,"reason":`...)
		dst = append(tgpp.AppendJSONString(dst, strings.ToValidUTF8(ip.Reason, "\uFFFD")), '}')
	}
	if len(p.InvalidParams) > 0 {
		dst = append(dst, ']')
	}
	if p.Extra != nil {
		dst = p.Extra(dst)
	}
	return append(dst, '}')
}

// RetryAfter is the value of a Retry-After field, in whole seconds of at
// least one.
func RetryAfter(d time.Duration) string {
	return strconv.Itoa(max(1, int((d+time.Second-1)/time.Second)))
}
