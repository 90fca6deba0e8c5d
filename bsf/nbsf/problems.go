package nbsf

import (
	"context"
	"errors"
	"time"

	"bsfd/bsf"
	"bsfd/internal/tgpp"
	"bsfd/web/sbi"
)

// Conditions of this API beside those of package sbi.
var (
	existingBinding = &sbi.Condition{Name: "existingBindingInfoFound", Status: 403, Cause: "EXISTING_BINDING_INFO_FOUND",
		Title: "Existing binding information found in DB", ErrorID: 1}
	multipleBindings = &sbi.Condition{Name: "multipleBindingInfoFound", Status: 400, Cause: "MULTIPLE_BINDING_INFO_FOUND",
		Title: "More than one binding matches", ErrorID: 2}
	subscriptionNotFound = &sbi.Condition{Name: "subscriptionNotFound", Status: 404, Cause: "SUBSCRIPTION_NOT_FOUND",
		Title: "Subscription not found", ErrorID: 3}
)

// Conditions lists the conditions that this API answers, for configuration.
func Conditions() []*sbi.Condition {
	return append(sbi.Conditions(), existingBinding, multipleBindings, subscriptionNotFound, testFailed)
}

// retryAfter is what consumers are told when storage is away for a while.
const retryAfter = 2 * time.Second

// problem maps an error of the registry to its answer.
func problem(err error) *sbi.Problem {
	var (
		p         *sbi.Problem
		violation *bsf.Violation
		conflict  *bsf.Conflict
		ambiguous *bsf.Ambiguous
	)
	switch {
	case errors.As(err, &p):
		return p
	case errors.As(err, &violation):
		return sbi.FailParam(violationCondition(violation.Fault), violation.Param, violation.Reason)
	case errors.As(err, &conflict):
		return conflictProblem(conflict)
	case errors.As(err, &ambiguous):
		return sbi.Fail(multipleBindings, err.Error())
	case errors.Is(err, bsf.ErrNotFound):
		return sbi.Fail(sbi.NotFound, "")
	case errors.Is(err, bsf.ErrModificationNotAllowed):
		return sbi.Fail(sbi.ModificationNotAllowed, err.Error())
	case errors.Is(err, bsf.ErrExpired):
		return sbi.Fail(sbi.TimedOutRequest, err.Error())
	case errors.Is(err, bsf.ErrFull):
		return sbi.Fail(sbi.InsufficientResources, bsf.ErrFull.Error())
	case errors.Is(err, bsf.ErrTimeout), errors.Is(err, context.DeadlineExceeded):
		return sbi.Fail(sbi.StorageTimeout, bsf.ErrTimeout.Error())
	case errors.Is(err, bsf.ErrUnavailable), errors.Is(err, context.Canceled):
		return sbi.Fail(sbi.StorageUnavailable, bsf.ErrUnavailable.Error()).With("Retry-After", sbi.RetryAfter(retryAfter))
	default:
		return sbi.Fail(sbi.SystemFailure, "the request could not be processed")
	}
}

func violationCondition(f bsf.Fault) *sbi.Condition {
	switch f {
	case bsf.FaultMissing:
		return sbi.MandatoryIeMissing
	case bsf.FaultOptionalIncorrect:
		return sbi.OptionalIeIncorrect
	default:
		return sbi.MandatoryIeIncorrect
	}
}

// conflictProblem tells a PCF who holds the binding (ExtProblemDetails and
// MbsExtProblemDetails, TS 29.521 §5.6.2.7 and §5.6.2.18).
func conflictProblem(c *bsf.Conflict) *sbi.Problem {
	p := sbi.Fail(existingBinding, c.Error())
	if c.Older {
		p.Detail = "a later request of another PCF holds the binding"
	}
	if h := c.Holder; h != nil {
		p.Extra = func(dst []byte) []byte {
			return bsf.AppendHolder(dst, "pcfSmFqdn", h.PcfSmFqdn, "pcfSmIpEndPoints", h.PcfSmIpEndPoints)
		}
	}
	if h := c.MbsHolder; h != nil {
		p.Extra = func(dst []byte) []byte {
			return bsf.AppendHolder(dst, "pcfFqdn", h.PcfFqdn, "pcfIpEndPoints", h.PcfIpEndPoints)
		}
	}
	return p
}

func subscriber(supi tgpp.Supi, gpsi tgpp.Gpsi) string {
	if supi != "" {
		return string(supi)
	}
	return string(gpsi)
}
