package overload

import (
	"fmt"

	"bsfd/internal/admission"
)

// Operation is the operational state of the node.
type Operation int

// The operational states.
const (
	OperationNormal   Operation = iota
	OperationPartial            // no new sessions
	OperationComplete           // no requests at all, in neither direction
	operations        = iota
)

var operationNames = [operations]string{"NORMAL", "PARTIAL_SHUTDOWN", "COMPLETE_SHUTDOWN"}

// String is the name.
func (o Operation) String() string {
	if o < 0 || int(o) >= operations {
		return fmt.Sprintf("Operation(%d)", int(o))
	}
	return operationNames[o]
}

// MarshalText implements encoding.TextMarshaler.
func (o Operation) MarshalText() ([]byte, error) { return []byte(o.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (o *Operation) UnmarshalText(b []byte) error {
	for i, name := range operationNames {
		if name == string(b) {
			*o = Operation(i)
			return nil
		}
	}
	return fmt.Errorf("%q is no operational state", b)
}

// operation is the state that counts.
func (s *Settings) operation() Operation {
	if !s.Shutdown.Enabled {
		return OperationNormal
	}
	return s.Shutdown.State
}

// closeFor adds what the operational state refuses.
func (c *Controller) closeFor(r *rules, svc Service) {
	op := c.settings.operation()
	if op == OperationNormal {
		return
	}
	s := c.settings.Shutdown
	why := "the operational state is " + op.String()
	refusal := &admission.Refusal{Detail: why, Result: uint32(s.ResponseCode), Vendor: uint32(s.VendorID)}
	if svc == ManagementService {
		if refusal = c.named(s.ErrorCodeProfile, why); refusal == nil {
			refusal = &admission.Refusal{Status: 503, Cause: "NF_FAILOVER", Title: "Shut down", Detail: why}
		}
	}
	r.sheds = true
	if op == OperationComplete {
		r.closed = refusal
		return
	}
	r.noNew = refusal
}
