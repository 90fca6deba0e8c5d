package sbi

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
)

// MediaType is the media type of the body of a request in lower case, without
// parameters (TS 29.501 §5.2.1): empty when there is none, "?" when there are
// several.
func MediaType(r *http.Request) string {
	values := r.Header["Content-Type"]
	switch len(values) {
	case 0:
		return ""
	case 1:
		v, _, _ := strings.Cut(values[0], ";")
		return strings.ToLower(strings.TrimSpace(v))
	}
	return "?"
}

// ReadBody reads the body of a request into buf, at most limit bytes after
// decompression; gzip is the one content coding that is understood (TS 29.500
// §6.9).
func ReadBody(r *http.Request, buf *bytes.Buffer, limit int) *Problem {
	src := io.Reader(r.Body)
	switch coding := strings.Join(r.Header["Content-Encoding"], ","); strings.ToLower(coding) {
	case "", "identity":
	case "gzip":
		z, err := gzip.NewReader(r.Body)
		if err != nil {
			return Fail(InvalidMsgFormat, "the body is not gzip")
		}
		src = z
	default:
		return Fail(UnsupportedMediaType, "content coding "+coding+" is not supported").With("Accept-Encoding", "gzip")
	}
	if n := r.ContentLength; n > 0 && n <= int64(limit) {
		buf.Grow(int(n) + bytes.MinRead)
	}
	n, err := buf.ReadFrom(io.LimitReader(src, int64(limit)+1))
	switch {
	case err != nil && errors.Is(err, gzip.ErrChecksum), err != nil && errors.Is(err, gzip.ErrHeader):
		return Fail(InvalidMsgFormat, "the body is not gzip")
	case err != nil:
		return Fail(InvalidMsgFormat, "the body ended early")
	case n > int64(limit):
		return Fail(ContentTooLarge, "the body is too large")
	}
	return nil
}

// AcceptsJSON reports whether the answer may be application/json.
func AcceptsJSON(r *http.Request) bool {
	values := r.Header["Accept"]
	if len(values) == 0 {
		return true
	}
	for _, v := range values {
		for part := range strings.SplitSeq(v, ",") {
			m, _, _ := strings.Cut(part, ";")
			switch strings.ToLower(strings.TrimSpace(m)) {
			case "", "*/*", "application/*", "application/json":
				return true
			}
		}
	}
	return false
}
