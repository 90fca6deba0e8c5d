package nbsf

import (
	"errors"
	"net/http"

	"bsfd/bsf"
	"bsfd/internal/tgpp"
	"bsfd/web/sbi"
)

// register handles POST /pcfBindings (TS 29.521 §4.2.2.2).
func (a *API) register(c *call) error {
	reg := &c.reg
	reg.Binding = bsf.NewPcfBinding()
	b := &reg.Binding
	err := a.decode(c, func(d *decoder) func(string) { return d.pcfBinding(b, &reg.NotificationURL) })
	c.subscriber = subscriber(b.Supi, b.Gpsi)
	if err != nil {
		return err
	}
	h := c.r.Header
	_, reg.Revalidation = h[sbi.HeaderRevalidation]
	reg.Origination = sbi.Timestamp(h, sbi.HeaderOrigination)
	reg.Sender = sbi.Timestamp(h, sbi.HeaderSender)
	reg.CustomSender = sbi.Timestamp(h, sbi.HeaderCustomSender)
	if cookie := h[sbi.HeaderCookie]; len(cookie) == 1 {
		if len(cookie[0]) > a.cfg.MaxCookieBytes {
			return sbi.FailParam(sbi.OptionalIeIncorrect, "header ocnf-service-cookie", "too long")
		}
		reg.Cookie = cookie[0]
	}
	rec, err := a.registry.Register(c.r.Context(), reg)
	if err != nil {
		return err
	}
	c.out = rec.Binding.AppendJSON(c.out)
	a.created(c, "pcfBindings", rec.ID, c.out)
	return nil
}

// discover handles GET /pcfBindings (TS 29.521 §4.2.4.2).
func (a *API) discover(c *call) error {
	q := &c.query
	features, p := a.discoverQuery(c.r.URL.RawQuery, q)
	c.subscriber = subscriber(q.Supi, q.Gpsi)
	if p != nil {
		return p
	}
	rec, err := a.registry.Discover(c.r.Context(), q)
	if errors.Is(err, bsf.ErrNotFound) {
		a.answer(c, http.StatusNoContent, nil)
		return nil
	}
	if err != nil {
		return err
	}
	if features != nil {
		rec.Binding.Hide(*features)
	}
	c.out = rec.Binding.AppendJSON(c.out)
	a.answer(c, http.StatusOK, c.out)
	return nil
}

// update handles PATCH /pcfBindings/{bindingId} (TS 29.521 §4.2.5.2).
func (a *API) update(c *call) error {
	var patch bindingPatch
	if err := a.decode(c, func(d *decoder) func(string) { return d.pcfBindingPatch(&patch) }); err != nil {
		return err
	}
	id, err := bsf.ParseID(c.id)
	if err != nil {
		return err
	}
	rec, err := a.registry.Update(c.r.Context(), id, patch.apply)
	if err != nil {
		return err
	}
	a.answer(c, http.StatusOK, rec.Binding.AppendJSON(nil))
	return nil
}

// deregister handles DELETE /pcfBindings/{bindingId} (TS 29.521 §4.2.3.2).
func (a *API) deregister(c *call) error {
	return a.remove(c, a.registry.Deregister)
}

// visibleFeatures is the feature set of an answer to a consumer that supports
// f, or everything when it did not say.
func visibleFeatures(stored, f *tgpp.Features) *tgpp.Features {
	if stored == nil || f == nil {
		return stored
	}
	common := *stored & *f
	return &common
}
