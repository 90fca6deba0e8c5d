package bsf

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"bsfd/internal/tgpp"
)

// Settings under which the registry keeps what outlives the process.
const settingInstanceID = "nf.instanceId"

// negotiate replaces the offered features by the common ones.
func (r *Registry) negotiate(f **tgpp.Features) {
	if *f != nil {
		common := **f & r.cfg.Features
		*f = &common
	}
}

func decodeBody[T any](d Document) (T, error) {
	var v T
	if err := json.Unmarshal(d.Body, &v); err != nil {
		return v, fmt.Errorf("stored %s %s: %w", d.Kind, d.ID, err)
	}
	return v, nil
}

// RegisterUe stores a binding for a UE (TS 29.521 §4.2.2.3) and returns its
// id. It takes the place of a binding of the same PCF for the same SUPI, which
// must be left over.
func (r *Registry) RegisterUe(ctx context.Context, b *PcfForUeBinding) (ID, error) {
	r.negotiate(&b.SuppFeat)
	if err := b.Check(); err != nil {
		return ID{}, err
	}
	old, err := r.docs.FindDocuments(ctx, KindUeBinding, supiText(b.Supi))
	if err != nil {
		return ID{}, err
	}
	var replace []ID
	for _, d := range old {
		if o, err := decodeBody[PcfForUeBinding](d); err == nil && samePcfForUe(b, &o) {
			replace = append(replace, d.ID)
		}
	}
	id := NewID()
	_, queued, err := r.docs.CreateDocument(ctx, b.document(id), replace, ueEvent(b, false))
	if queued {
		r.waker.Wake()
	}
	return id, err
}

func samePcfForUe(a, b *PcfForUeBinding) bool {
	if a.PcfId != "" || b.PcfId != "" {
		return strings.EqualFold(string(a.PcfId), string(b.PcfId))
	}
	return a.PcfForUeFqdn != "" && strings.EqualFold(string(a.PcfForUeFqdn), string(b.PcfForUeFqdn))
}

// DiscoverUe returns the bindings of a UE by SUPI, GPSI or both, oldest first.
func (r *Registry) DiscoverUe(ctx context.Context, supi tgpp.Supi, gpsi tgpp.Gpsi) ([]PcfForUeBinding, error) {
	key := supiText(supi)
	if supi == "" {
		key = gpsiText(gpsi)
	}
	docs, err := r.docs.FindDocuments(ctx, KindUeBinding, key)
	if err != nil {
		return nil, err
	}
	var found []PcfForUeBinding
	for _, d := range docs {
		b, err := decodeBody[PcfForUeBinding](d)
		if err != nil {
			return nil, err
		}
		if (supi == "" || b.Supi == supi) && (gpsi == "" || b.Gpsi == gpsi) {
			found = append(found, b)
		}
	}
	return found, nil
}

// resource is what updateDocument needs of a resource.
type resource interface {
	Check() error
	document(ID) *Document
}

// updateDocument changes a stored resource and returns it as stored. A result
// that breaks a rule changes nothing.
func updateDocument[T any, P interface {
	*T
	resource
}](ctx context.Context, r *Registry, kind Kind, id ID, change func(P) error) (P, error) {
	var b T
	err := r.docs.UpdateDocument(ctx, kind, id, func(d Document) (*Document, error) {
		var err error
		if b, err = decodeBody[T](d); err != nil {
			return nil, err
		}
		if err := change(&b); err != nil {
			return nil, err
		}
		if err := P(&b).Check(); err != nil {
			return nil, err
		}
		return P(&b).document(id), nil
	})
	return &b, err
}

// UpdateUe changes a binding for a UE and returns it as stored.
func (r *Registry) UpdateUe(ctx context.Context, id ID, change func(*PcfForUeBinding) error) (*PcfForUeBinding, error) {
	return updateDocument(ctx, r, KindUeBinding, id, change)
}

// DeregisterUe removes a binding for a UE, or returns ErrNotFound.
func (r *Registry) DeregisterUe(ctx context.Context, id ID) error {
	queued, err := r.docs.DeleteDocument(ctx, KindUeBinding, id, func(d Document) *Event {
		b, err := decodeBody[PcfForUeBinding](d)
		if err != nil {
			return nil
		}
		return ueEvent(&b, true)
	})
	if queued {
		r.waker.Wake()
	}
	return err
}

// RegisterMbs stores a binding for an MBS session and returns its id. A
// session that is already bound is a *Conflict with its holder.
func (r *Registry) RegisterMbs(ctx context.Context, b *PcfMbsBinding) (ID, error) {
	r.negotiate(&b.SuppFeat)
	if err := b.Check(); err != nil {
		return ID{}, err
	}
	id := NewID()
	holder, _, err := r.docs.CreateDocument(ctx, b.document(id), nil, nil)
	if err != nil {
		return ID{}, err
	}
	if holder != nil {
		h, err := decodeBody[PcfMbsBinding](*holder)
		if err != nil {
			return ID{}, err
		}
		r.metrics.conflicts.Inc()
		return ID{}, &Conflict{MbsHolder: &h}
	}
	return id, nil
}

// DiscoverMbs returns the bindings of an MBS session.
func (r *Registry) DiscoverMbs(ctx context.Context, session tgpp.MbsSessionId) ([]PcfMbsBinding, error) {
	docs, err := r.docs.FindDocuments(ctx, KindMbsBinding, session.Key())
	if err != nil {
		return nil, err
	}
	var found []PcfMbsBinding
	for _, d := range docs {
		b, err := decodeBody[PcfMbsBinding](d)
		if err != nil {
			return nil, err
		}
		found = append(found, b)
	}
	return found, nil
}

// UpdateMbs changes a binding for an MBS session and returns it as stored.
func (r *Registry) UpdateMbs(ctx context.Context, id ID, change func(*PcfMbsBinding) error) (*PcfMbsBinding, error) {
	return updateDocument(ctx, r, KindMbsBinding, id, change)
}

// DeregisterMbs removes a binding for an MBS session, or returns ErrNotFound.
func (r *Registry) DeregisterMbs(ctx context.Context, id ID) error {
	_, err := r.docs.DeleteDocument(ctx, KindMbsBinding, id, noEvent)
	return err
}

func noEvent(Document) *Event { return nil }

// Subscribe stores a subscription and returns its id with what already holds,
// or nil when nothing does (TS 29.521 §4.2.6.2). A registration that races
// with it may be reported twice, but never lost.
func (r *Registry) Subscribe(ctx context.Context, s *Subscription) (ID, *Notification, error) {
	r.negotiate(&s.SuppFeat)
	if err := s.Check(); err != nil {
		return ID{}, nil, err
	}
	id := NewID()
	if _, _, err := r.docs.CreateDocument(ctx, s.document(id), nil, nil); err != nil {
		return ID{}, nil, err
	}
	met, err := r.met(ctx, s)
	return id, met, err
}

// met returns what already holds for a subscription.
func (r *Registry) met(ctx context.Context, s *Subscription) (*Notification, error) {
	sessions, err := r.bindings.Find(ctx, SupiKey(s.Supi))
	if err != nil {
		return nil, err
	}
	ues, err := r.DiscoverUe(ctx, s.Supi, "")
	if err != nil {
		return nil, err
	}
	return s.Met(sessions, ues), nil
}

// Resubscribe replaces a subscription whole (TS 29.521 §4.2.6.3) and returns
// what already holds, or ErrNotFound.
func (r *Registry) Resubscribe(ctx context.Context, id ID, s *Subscription) (*Notification, error) {
	r.negotiate(&s.SuppFeat)
	if err := s.Check(); err != nil {
		return nil, err
	}
	err := r.docs.UpdateDocument(ctx, KindSubscription, id, func(Document) (*Document, error) {
		return s.document(id), nil
	})
	if err != nil {
		return nil, err
	}
	return r.met(ctx, s)
}

// Unsubscribe removes a subscription, or returns ErrNotFound.
func (r *Registry) Unsubscribe(ctx context.Context, id ID) error {
	_, err := r.docs.DeleteDocument(ctx, KindSubscription, id, noEvent)
	if err == nil {
		r.waker.Forget(id)
	}
	return err
}

// InstanceID returns the NF instance id: the configured one, else the one that
// the store keeps, else a fresh one that is stored. Instances on one database
// share their bindings, not their identity: name tells them apart.
func InstanceID(ctx context.Context, docs DocumentStore, name, configured string) (string, error) {
	if configured != "" {
		return configured, nil
	}
	fresh := uuid.NewString()
	key := settingInstanceID + ":" + name
	d := &Document{Kind: KindSetting, ID: NewID(), Keys: []string{key}, Unique: key, Body: []byte(fmt.Sprintf("%q", fresh))}
	holder, _, err := docs.CreateDocument(ctx, d, nil, nil)
	if err != nil || holder == nil {
		return fresh, err
	}
	return decodeBody[string](*holder)
}
