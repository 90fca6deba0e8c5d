package bsf

import (
	"context"
	"time"
)

// BindingStore keeps the bindings of PDU sessions. Every method that changes
// something is atomic with all lookup keys and durable when it returns on an
// engine that promises durability. Errors are those of this package.
type BindingStore interface {
	// Create stores r unless the rules decide otherwise.
	Create(ctx context.Context, r *Record, rules Rules) (Outcome, error)
	// Update replaces the record with what change returns for it. The ID and
	// Created must stay. Bindings whose address the result takes over are
	// removed when rules supersede. An error of change is returned as it is
	// and nothing changes. change may run more than once.
	Update(ctx context.Context, id ID, rules Rules, change func(Record) (*Record, error)) (Outcome, error)
	// Delete removes the record, or returns ErrNotFound.
	Delete(ctx context.Context, id ID) (Outcome, error)
	// Find returns the bindings that answer to the key: for a prefix, those
	// that have a prefix which contains it. The order is not defined.
	Find(ctx context.Context, key Key) ([]*Record, error)
}

// Outcome is what a change of a BindingStore did.
type Outcome struct {
	Verdict
	// Record is the record as stored, or as it was when deleted.
	Record *Record
	// Queued is set when events for subscribers were stored with the change.
	Queued bool
}

// BindingPager walks over bindings in the order in which their sessions were
// last confirmed, oldest first.
type BindingPager interface {
	// Stale returns up to limit records that come after the cursor and were
	// last confirmed before the given time. A record that is confirmed while
	// paging moves to the end; no other is missed or seen twice.
	Stale(ctx context.Context, before time.Time, after Cursor, limit int) ([]*Record, error)
	// HeldBy returns up to limit records after the cursor whose pcfId or
	// pcfSetId is the given one.
	HeldBy(ctx context.Context, holder Holder, after Cursor, limit int) ([]*Record, error)
	// Touch notes an audit: when the session was confirmed and how many
	// attempts since then got no verdict.
	Touch(ctx context.Context, id ID, audited time.Time, attempts uint8) error
	// Count is the number of bindings.
	Count(ctx context.Context) (int64, error)
}

// Cursor is a place in the order of BindingPager; the zero Cursor is before
// the first record.
type Cursor struct {
	Audited time.Time
	ID      ID
}

// At is the cursor of a record.
func At(r *Record) Cursor { return Cursor{r.Audited, r.ID} }

// Before reports whether c comes before o.
func (c Cursor) Before(o Cursor) bool {
	if !c.Audited.Equal(o.Audited) {
		return c.Audited.Before(o.Audited)
	}
	return string(c.ID[:]) < string(o.ID[:])
}

// Holder names a PCF by instance or by set; exactly one is given.
type Holder struct {
	PcfId    string
	PcfSetId string
}

// Kind tells the kinds of documents apart.
type Kind uint8

// The kinds of documents. The numbers are stored.
const (
	KindUeBinding    Kind = 1
	KindMbsBinding   Kind = 2
	KindSubscription Kind = 3
	KindSetting      Kind = 4
	KindHistory      Kind = 5
)

// String is the name of the kind in logs and metrics.
func (k Kind) String() string {
	switch k {
	case KindUeBinding:
		return "pcf-ue-binding"
	case KindMbsBinding:
		return "pcf-mbs-binding"
	case KindSubscription:
		return "subscription"
	case KindSetting:
		return "setting"
	case KindHistory:
		return "history"
	}
	return "unknown"
}

// Document is a stored resource other than a PDU session binding.
type Document struct {
	Kind Kind
	ID   ID
	// Keys are the texts by which the document is found, at most two, none of
	// them empty.
	Keys []string
	// Unique, when not empty, is held by at most one document of the kind.
	Unique string
	// Body is the resource as JSON.
	Body []byte
}

// DocumentStore keeps documents with the same promises as BindingStore.
type DocumentStore interface {
	// CreateDocument stores d. When another document of the kind has its
	// Unique text, that one is returned and nothing changes. A not nil event
	// is queued in the same step when somebody subscribed to its SUPI.
	// Documents in replace are removed in the same step where they exist.
	CreateDocument(ctx context.Context, d *Document, replace []ID, ev *Event) (holder *Document, queued bool, err error)
	// UpdateDocument replaces the body and keys with what change returns.
	UpdateDocument(ctx context.Context, kind Kind, id ID, change func(Document) (*Document, error)) error
	// DeleteDocument removes the document, or returns ErrNotFound. The event
	// that ev returns for it is queued as with CreateDocument.
	DeleteDocument(ctx context.Context, kind Kind, id ID, ev func(Document) *Event) (queued bool, err error)
	// FindDocuments returns the documents of the kind that have the key,
	// oldest first.
	FindDocuments(ctx context.Context, kind Kind, key string) ([]Document, error)
}

// EventQueue hands out the events that were stored with changes. An event is
// in the queue until Finish; one that was claimed and not finished when the
// process ended, or within the lease, is handed out again.
type EventQueue interface {
	// Claim returns up to limit events that nobody works on, oldest first. While
	// another process works on an event of a subscriber, the later ones of that
	// subscriber wait.
	Claim(ctx context.Context, limit int) ([]*Event, error)
	// Finish removes an event.
	Finish(ctx context.Context, id ID) error
}
