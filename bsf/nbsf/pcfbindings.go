package nbsf

import (
	"errors"
	"net/http"
	"net/netip"
	"strings"

	"bsfd/bsf"
	"bsfd/internal/tgpp"
	"bsfd/internal/tolerate"
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
	c.used |= a.completeRealm(b)
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
	features, p := a.discoverQuery(c, q)
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
	change, err := readPatch(a, c, bindingPatcher)
	if err != nil {
		return err
	}
	id, err := bsf.ParseID(c.id)
	if err != nil {
		return err
	}
	var used tolerate.Set
	rec, err := a.registry.Update(c.r.Context(), id, bsf.Change{
		Unnegotiated: a.allowed.Has(tol(tolPatchFeature)),
		Apply: func(b *bsf.PcfBinding) (err error) {
			used, err = change(b)
			used |= a.completeRealm(b)
			return err
		},
	})
	if err != nil {
		return err
	}
	if !rec.Binding.Negotiated(bsf.FeatureBindingUpdate) {
		used |= tol(tolPatchFeature)
	}
	c.used |= used
	a.answer(c, http.StatusOK, rec.Binding.AppendJSON(nil))
	return nil
}

// completeRealm gives a Diameter host that came without its realm the realm
// that its name has, or that of this BSF.
func (a *API) completeRealm(b *bsf.PcfBinding) (used tolerate.Set) {
	if b.PcfDiamHost == "" || b.PcfDiamRealm != "" || !a.allowed.Has(tol(tolDiamRealm)) {
		return 0
	}
	realm := a.cfg.DiamRealm
	if _, err := netip.ParseAddr(string(b.PcfDiamHost)); err != nil {
		if _, domain, ok := strings.Cut(strings.TrimSuffix(string(b.PcfDiamHost), "."), "."); ok {
			realm = domain
		}
	}
	b.PcfDiamRealm = tgpp.Fqdn(realm)
	return tol(tolDiamRealm)
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
