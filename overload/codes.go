package overload

import (
	"net/http"
	"slices"
	"strconv"
)

// The answers to requests that are shed when what is configured is not
// supported.
const (
	defaultStatus = http.StatusServiceUnavailable
	defaultResult = 3004
)

// supportedStatus reports whether a status may answer a request that is shed.
func supportedStatus(code int) bool {
	switch {
	case code >= 400 && code <= 426, code == 428, code == 429, code == 431, code == 451:
		return true
	}
	return code >= 500 && code <= 511
}

// httpStatus is the status, or the default when it is not supported.
func httpStatus(code int) int {
	if !supportedStatus(code) {
		return defaultStatus
	}
	return code
}

// resultNames are the Diameter result codes that a profile may name.
var resultNames = map[string]uint32{
	"DIAMETER_COMMAND_UNSUPPORTED": 3001, "DIAMETER_UNABLE_TO_DELIVER": 3002, "DIAMETER_REALM_NOT_SERVED": 3003,
	"DIAMETER_TOO_BUSY": 3004, "DIAMETER_LOOP_DETECTED": 3005, "DIAMETER_REDIRECT_INDICATION": 3006,
	"DIAMETER_APPLICATION_UNSUPPORTED": 3007, "DIAMETER_INVALID_HDR_BITS": 3008, "DIAMETER_INVALID_AVP_BITS": 3009,
	"DIAMETER_UNKNOWN_PEER": 3010, "DIAMETER_AUTHENTICATION_REJECTED": 4001, "DIAMETER_OUT_OF_SPACE": 4002,
	"ELECTION_LOST": 4003, "DIAMETER_END_USER_SERVICE_DENIED": 4010, "DIAMETER_CREDIT_CONTROL_NOT_APPLICABLE": 4011,
	"DIAMETER_CREDIT_LIMIT_REACHED": 4012, "SPLIT_BRAIN_SUSPECTED": 4999, "DIAMETER_AVP_UNSUPPORTED": 5001,
	"DIAMETER_AUTHORIZATION_REJECTED": 5003, "DIAMETER_INVALID_AVP_VALUE": 5004, "DIAMETER_MISSING_AVP": 5005,
	"DIAMETER_RESOURCES_EXCEEDED": 5006, "DIAMETER_AVP_NOT_ALLOWED": 5008, "DIAMETER_AVP_OCCURS_TOO_MANY_TIMES": 5009,
	"DIAMETER_NO_COMMON_APPLICATION": 5010, "DIAMETER_UNSUPPORTED_VERSION": 5011, "DIAMETER_UNABLE_TO_COMPLY": 5012,
	"DIAMETER_INVALID_BIT_IN_HEADER": 5013, "DIAMETER_INVALID_AVP_LENGTH": 5014, "DIAMETER_INVALID_MESSAGE_LENGTH": 5015,
	"DIAMETER_INVALID_AVP_BIT_COMBO": 5016, "DIAMETER_NO_COMMON_SECURITY": 5017, "DIAMETER_USER_UNKNOWN": 5030,
	"DIAMETER_RATING_FAILED": 5031,
}

// resultCode reads a result code: a name, or a number of 3000 to 5999.
func resultCode(s string) (code uint32, ok bool) {
	if code, ok = resultNames[s]; ok {
		return code, true
	}
	n, err := strconv.ParseUint(s, 10, 16)
	return uint32(n), err == nil && n >= 3000 && n <= 5999
}

// experimental are the Experimental-Result-Codes that are supported, by vendor.
var experimental = map[int][]int{10415: {5011, 5065, 5453, 5454}, 21274: {5997}}

// diameterResult is the configured result, or the default when it belongs to
// none of the series 3xxx, 4xxx and 5xxx.
func diameterResult(code, vendor int) (result, vendorID uint32) {
	if code < 3000 || code > 5999 {
		return defaultResult, 0
	}
	return uint32(code), uint32(vendor)
}

// unsupported lists the configured answers that the default takes the place
// of, as log lines.
func (s *Settings) unsupported() (lines []string) {
	status := func(code int) {
		if !supportedStatus(code) {
			lines = append(lines, "No matching constant for '"+strconv.Itoa(code)+"' Rejecting request with default response code: 503.")
		}
	}
	status(s.Management.Advanced.ResponseCode)
	for _, p := range s.ErrorCodes {
		status(p.Code)
	}
	d := s.Diameter
	if d.ResponseCode < 3000 || d.ResponseCode > 5999 {
		lines = append(lines, "Configured "+strconv.Itoa(d.ResponseCode)+" does not belong to 3xxx, 4xxx or 5xxx series. using default response code: 3004")
	} else if known, ok := experimental[d.VendorID]; d.VendorID != 0 && (!ok || !slices.Contains(known, d.ResponseCode)) {
		lines = append(lines, "Experimental-Result "+strconv.Itoa(d.VendorID)+":"+strconv.Itoa(d.ResponseCode)+" is not in the table of supported ones and is used as it is")
	}
	return lines
}
