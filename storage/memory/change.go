package memory

import (
	"time"

	"bsfd/bsf"
)

// DocumentRef names a document.
type DocumentRef struct {
	Kind bsf.Kind
	ID   bsf.ID
}

// Change is what a request does to the state: a plan until Apply.
type Change struct {
	DropBindings  []bsf.ID
	PutBinding    *bsf.Record
	DropDocuments []DocumentRef
	PutDocument   *bsf.Document
	DropEvents    []bsf.ID
	PutEvents     []*bsf.Event

	// Guards are hashes of everything that the plan depends on or changes.
	// Two changes with a guard in common must not be planned against the same
	// state.
	Guards []uint64
}

// Empty reports whether the change leaves the state as it is.
func (c *Change) Empty() bool {
	return len(c.DropBindings) == 0 && c.PutBinding == nil &&
		len(c.DropDocuments) == 0 && c.PutDocument == nil && len(c.DropEvents) == 0 && len(c.PutEvents) == 0
}

// Tables is the state of the engine. One goroutine at a time may plan, and one
// may apply; a change must not be planned while another with a guard in common
// is planned and not applied. Everything else may run beside them.
type Tables struct {
	bindings  *bindings
	documents *documents
	events    *events
}

// NewTables returns an empty state.
func NewTables() *Tables {
	return &Tables{newBindings(), newDocuments(), newEvents()}
}

func (t *Tables) guardKeys(c *Change, keys ...bsf.Key) {
	for _, k := range keys {
		c.Guards = append(c.Guards, uint64(t.bindings.keyHash(k)))
	}
}

func (t *Tables) guardID(c *Change, id bsf.ID) {
	c.Guards = append(c.Guards, uint64(t.bindings.idHash(id)))
}

// PlanCreate plans bsf.BindingStore.Create.
func (t *Tables) PlanCreate(r *bsf.Record, rules bsf.Rules) (Change, bsf.Outcome) {
	var c Change
	keys := rules.Keys(r, nil)
	t.guardKeys(&c, keys...)
	verdict := rules.Decide(r, t.rivals(keys))
	out := bsf.Outcome{Verdict: verdict, Record: r}
	if verdict.Duplicate != nil || verdict.Conflict != nil {
		return c, out
	}
	c.PutBinding = r
	t.remove(&c, verdict.Remove)
	t.queueEvents(&c, verdict.Remove, r)
	out.Queued = len(c.PutEvents) > 0
	return c, out
}

// rivals returns the records that have one of the keys.
func (t *Tables) rivals(keys []bsf.Key) []*bsf.Record {
	var found []*bsf.Record
	for _, k := range keys {
		for _, r := range t.bindings.lookup(t.bindings.keyHash(k)) {
			if !contained(found, r.ID) {
				found = append(found, r)
			}
		}
	}
	return found
}

func (t *Tables) remove(c *Change, removals []bsf.Removal) {
	for _, x := range removals {
		c.DropBindings = append(c.DropBindings, x.Record.ID)
		t.guardID(c, x.Record.ID)
	}
}

// queueEvents adds the events of the change for subscribers who are there.
func (t *Tables) queueEvents(c *Change, removals []bsf.Removal, put *bsf.Record) {
	if t.documents.subscriptions.Load() == 0 {
		return
	}
	for _, x := range removals {
		if b := &x.Record.Binding; t.subscribed(c, b) {
			left := t.sameSlice(b) - countSlice(removals, b)
			if put != nil && put.Binding.Supi == b.Supi && put.Binding.SameSlice(b) {
				left++
			}
			c.PutEvents = append(c.PutEvents, bsf.BindingEvent(b, true, left))
		}
	}
	if put != nil && t.subscribed(c, &put.Binding) {
		c.PutEvents = append(c.PutEvents, bsf.BindingEvent(&put.Binding, false, t.sameSlice(&put.Binding)+1))
	}
}

func (t *Tables) subscribed(c *Change, b *bsf.PcfBinding) bool {
	if b.Supi == "" || len(t.documents.find(bsf.KindSubscription, bsf.SubscriptionKey(b.Supi))) == 0 {
		return false
	}
	t.guardKeys(c, bsf.SupiKey(b.Supi))
	return true
}

// sameSlice counts the stored bindings of the subscriber for the DNN and
// S-NSSAI of b.
func (t *Tables) sameSlice(b *bsf.PcfBinding) (n int) {
	for _, r := range t.bindings.find(bsf.SupiKey(b.Supi)) {
		if r.Binding.SameSlice(b) {
			n++
		}
	}
	return n
}

func countSlice(removals []bsf.Removal, b *bsf.PcfBinding) (n int) {
	for _, x := range removals {
		if x.Record.Binding.Supi == b.Supi && x.Record.Binding.SameSlice(b) {
			n++
		}
	}
	return n
}

// PlanUpdate plans bsf.BindingStore.Update.
func (t *Tables) PlanUpdate(id bsf.ID, rules bsf.Rules, change func(bsf.Record) (*bsf.Record, error)) (Change, bsf.Outcome, error) {
	var c Change
	t.guardID(&c, id)
	old, _ := t.bindings.byID(id)
	if old == nil {
		return c, bsf.Outcome{}, bsf.ErrNotFound
	}
	fresh, err := change(*old)
	if err != nil {
		return c, bsf.Outcome{}, err
	}
	keys := rules.Keys(fresh, nil)
	t.guardKeys(&c, keys...)
	out := bsf.Outcome{Record: fresh}
	if rules.SameAddress == bsf.Supersede {
		out.Remove = rules.Decide(fresh, t.rivals(keys)).Remove
	}
	t.remove(&c, out.Remove)
	c.DropBindings = append(c.DropBindings, id)
	c.PutBinding = fresh
	t.queueEvents(&c, out.Remove, nil)
	out.Queued = len(c.PutEvents) > 0
	return c, out, nil
}

// PlanDelete plans bsf.BindingStore.Delete.
func (t *Tables) PlanDelete(id bsf.ID) (Change, bsf.Outcome, error) {
	var c Change
	t.guardID(&c, id)
	r, _ := t.bindings.byID(id)
	if r == nil {
		return c, bsf.Outcome{}, bsf.ErrNotFound
	}
	c.DropBindings = append(c.DropBindings, id)
	t.queueEvents(&c, []bsf.Removal{{Record: r, Reason: bsf.ReasonDeregistered}}, nil)
	return c, bsf.Outcome{Record: r, Queued: len(c.PutEvents) > 0}, nil
}

// PlanTouch plans bsf.BindingPager.Touch.
func (t *Tables) PlanTouch(id bsf.ID, audited time.Time, attempts uint8) (Change, error) {
	var c Change
	t.guardID(&c, id)
	r, _ := t.bindings.byID(id)
	if r == nil {
		return c, bsf.ErrNotFound
	}
	r.Audited, r.Attempts = audited.UTC().Truncate(time.Microsecond), attempts
	c.DropBindings, c.PutBinding = []bsf.ID{id}, r
	return c, nil
}

// PlanCreateDocument plans bsf.DocumentStore.CreateDocument.
func (t *Tables) PlanCreateDocument(d *bsf.Document, replace []bsf.ID, ev *bsf.Event) (c Change, holder *bsf.Document) {
	if d.Unique != "" {
		c.Guards = append(c.Guards, uint64(t.documents.textHash(d.Kind, partUnique, d.Unique)))
		if holder = t.documents.byUnique(d.Kind, d.Unique); holder != nil {
			return c, holder
		}
	}
	for _, id := range replace {
		t.guardDocument(&c, d.Kind, id)
		c.DropDocuments = append(c.DropDocuments, DocumentRef{d.Kind, id})
	}
	c.PutDocument = d
	t.queueEvent(&c, ev)
	return c, nil
}

func (t *Tables) guardDocument(c *Change, kind bsf.Kind, id bsf.ID) {
	c.Guards = append(c.Guards, uint64(t.documents.textHash(kind, partID, string(id[:]))))
}

func (t *Tables) queueEvent(c *Change, ev *bsf.Event) {
	if ev != nil && t.documents.subscriptions.Load() > 0 &&
		len(t.documents.find(bsf.KindSubscription, bsf.SubscriptionKey(ev.Supi))) > 0 {
		c.PutEvents = append(c.PutEvents, ev)
	}
}

// PlanUpdateDocument plans bsf.DocumentStore.UpdateDocument.
func (t *Tables) PlanUpdateDocument(kind bsf.Kind, id bsf.ID, change func(bsf.Document) (*bsf.Document, error)) (Change, error) {
	var c Change
	t.guardDocument(&c, kind, id)
	old, _ := t.documents.byID(kind, id)
	if old == nil {
		return c, bsf.ErrNotFound
	}
	fresh, err := change(*old)
	if err != nil {
		return c, err
	}
	c.DropDocuments = []DocumentRef{{kind, id}}
	c.PutDocument = fresh
	return c, nil
}

// PlanDeleteDocument plans bsf.DocumentStore.DeleteDocument.
func (t *Tables) PlanDeleteDocument(kind bsf.Kind, id bsf.ID, ev func(bsf.Document) *bsf.Event) (Change, error) {
	var c Change
	t.guardDocument(&c, kind, id)
	old, _ := t.documents.byID(kind, id)
	if old == nil {
		return c, bsf.ErrNotFound
	}
	c.DropDocuments = []DocumentRef{{kind, id}}
	t.queueEvent(&c, ev(*old))
	return c, nil
}

// Apply makes a planned change visible. It fails only when there is no room;
// what was dropped is then gone and what was to be put is not there.
func (t *Tables) Apply(c *Change) error {
	if len(c.DropBindings) > 0 || c.PutBinding != nil {
		var fresh []*bsf.Record
		if c.PutBinding != nil {
			fresh = []*bsf.Record{c.PutBinding}
		}
		if err := t.bindings.replace(c.DropBindings, fresh); err != nil {
			return err
		}
	}
	for i := range c.DropDocuments {
		var fresh *bsf.Document
		if c.PutDocument != nil && c.PutDocument.ID == c.DropDocuments[i].ID {
			fresh = c.PutDocument
		}
		if err := t.documents.replace(&c.DropDocuments[i], fresh); err != nil {
			return err
		}
		if fresh != nil {
			return nil
		}
	}
	if c.PutDocument != nil {
		if err := t.documents.replace(nil, c.PutDocument); err != nil {
			return err
		}
	}
	for _, id := range c.DropEvents {
		t.events.drop(id)
	}
	for _, e := range c.PutEvents {
		t.events.put(e)
	}
	return nil
}
