package nbsf

import (
	"context"
	"encoding/json"
	"net/http"

	"bsfd/bsf"
	"bsfd/internal/tolerate"
)

// registerUe handles POST /pcf-ue-bindings (TS 29.521 §4.2.2.3).
func (a *API) registerUe(c *call) error {
	var b bsf.PcfForUeBinding
	err := a.decode(c, func(d *decoder) func(string) { return d.pcfForUeBinding(&b) })
	c.subscriber = subscriber(b.Supi, b.Gpsi)
	if err != nil {
		return err
	}
	id, err := a.registry.RegisterUe(c.r.Context(), &b)
	if err != nil {
		return err
	}
	a.created(c, "pcf-ue-bindings", id, b.AppendJSON(nil))
	return nil
}

// discoverUe handles GET /pcf-ue-bindings (TS 29.521 §4.2.4.3).
func (a *API) discoverUe(c *call) error {
	supi, gpsi, features, p := a.ueQuery(c)
	c.subscriber = subscriber(supi, gpsi)
	if p != nil {
		return p
	}
	found, err := a.registry.DiscoverUe(c.r.Context(), supi, gpsi)
	if err != nil {
		return err
	}
	out := []byte{'['}
	for i := range found {
		found[i].SuppFeat = visibleFeatures(found[i].SuppFeat, features)
		out = appendElement(out, i, &found[i])
	}
	a.answer(c, http.StatusOK, append(out, ']'))
	return nil
}

// appendElement appends element i of an array.
func appendElement(dst []byte, i int, v interface{ AppendJSON([]byte) []byte }) []byte {
	if i > 0 {
		dst = append(dst, ',')
	}
	return v.AppendJSON(dst)
}

// updateUe handles PATCH /pcf-ue-bindings/{bindingId} (TS 29.521 §4.2.5.3).
func (a *API) updateUe(c *call) error {
	return updateDocument(a, c, uePatcher, a.registry.UpdateUe)
}

// updateDocument handles PATCH of a binding that is kept as a document.
func updateDocument[T any](a *API, c *call, t *patcher[T], update func(context.Context, bsf.ID, func(*T) error) (*T, error)) error {
	change, err := readPatch(a, c, t)
	if err != nil {
		return err
	}
	id, err := bsf.ParseID(c.id)
	if err != nil {
		return err
	}
	var used tolerate.Set
	b, err := update(c.r.Context(), id, func(b *T) (err error) { used, err = change(b); return err })
	if err != nil {
		return err
	}
	c.used |= used
	a.answer(c, http.StatusOK, t.encode(b, nil))
	return nil
}

// remove handles DELETE of a resource.
func (a *API) remove(c *call, remove func(context.Context, bsf.ID) error) error {
	id, err := bsf.ParseID(c.id)
	if err != nil {
		return err
	}
	if err := remove(c.r.Context(), id); err != nil {
		return err
	}
	a.answer(c, http.StatusNoContent, nil)
	return nil
}

// deregisterUe handles DELETE /pcf-ue-bindings/{bindingId} (TS 29.521
// §4.2.3.3).
func (a *API) deregisterUe(c *call) error {
	return a.remove(c, a.registry.DeregisterUe)
}

// registerMbs handles POST /pcf-mbs-bindings (TS 29.521 §4.2.2.4).
func (a *API) registerMbs(c *call) error {
	var b bsf.PcfMbsBinding
	if err := a.decode(c, func(d *decoder) func(string) { return d.pcfMbsBinding(&b) }); err != nil {
		return err
	}
	id, err := a.registry.RegisterMbs(c.r.Context(), &b)
	if err != nil {
		return err
	}
	a.created(c, "pcf-mbs-bindings", id, b.AppendJSON(nil))
	return nil
}

// discoverMbs handles GET /pcf-mbs-bindings (TS 29.521 §4.2.4.4).
func (a *API) discoverMbs(c *call) error {
	session, features, p := a.mbsQuery(c)
	if p != nil {
		return p
	}
	found, err := a.registry.DiscoverMbs(c.r.Context(), *session)
	if err != nil {
		return err
	}
	out := []byte{'['}
	for i := range found {
		found[i].SuppFeat = visibleFeatures(found[i].SuppFeat, features)
		out = appendElement(out, i, &found[i])
	}
	a.answer(c, http.StatusOK, append(out, ']'))
	return nil
}

// updateMbs handles PATCH /pcf-mbs-bindings/{bindingId} (TS 29.521 §4.2.5.4).
func (a *API) updateMbs(c *call) error {
	return updateDocument(a, c, mbsPatcher, a.registry.UpdateMbs)
}

// deregisterMbs handles DELETE /pcf-mbs-bindings/{bindingId} (TS 29.521
// §4.2.3.4).
func (a *API) deregisterMbs(c *call) error {
	return a.remove(c, a.registry.DeregisterMbs)
}

// subscribe handles POST /subscriptions (TS 29.521 §4.2.6.2).
func (a *API) subscribe(c *call) error {
	s, err := a.subscription(c)
	if err != nil {
		return err
	}
	id, met, err := a.registry.Subscribe(c.r.Context(), s)
	if err != nil {
		return err
	}
	body, err := subscriptionResp(s, met)
	if err != nil {
		return err
	}
	a.created(c, "subscriptions", id, body)
	return nil
}

func (a *API) subscription(c *call) (*bsf.Subscription, error) {
	var s bsf.Subscription
	err := a.decode(c, func(d *decoder) func(string) { return d.subscription(&s) })
	c.subscriber = subscriber(s.Supi, s.Gpsi)
	return &s, err
}

// subscriptionResp is a BsfSubscriptionResp: the subscription and, when some
// of its events have already happened, the members of their notification.
func subscriptionResp(s *bsf.Subscription, met *bsf.Notification) ([]byte, error) {
	body := s.AppendMembers(nil)
	if met != nil {
		events, err := json.Marshal(met.EventNotifs)
		if err != nil {
			return nil, err
		}
		body = append(append(body, `,"eventNotifs":`...), events...)
	}
	return append(body, '}'), nil
}

// resubscribe handles PUT /subscriptions/{subId} (TS 29.521 §4.2.6.3).
func (a *API) resubscribe(c *call) error {
	s, err := a.subscription(c)
	if err != nil {
		return err
	}
	id, err := bsf.ParseID(c.id)
	if err != nil {
		return err
	}
	met, err := a.registry.Resubscribe(c.r.Context(), id, s)
	if err != nil {
		return err
	}
	body, err := subscriptionResp(s, met)
	if err != nil {
		return err
	}
	a.answer(c, http.StatusOK, body)
	return nil
}

// unsubscribe handles DELETE /subscriptions/{subId} (TS 29.521 §4.2.7.2).
func (a *API) unsubscribe(c *call) error {
	return a.remove(c, a.registry.Unsubscribe)
}
