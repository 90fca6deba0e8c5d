package process

import "errors"

// Teardown undoes acquisitions in reverse order.
type Teardown struct{ list []func() error }

// Add registers what undoes an acquisition.
func (t *Teardown) Add(f func() error) { t.list = append(t.list, f) }

// Run undoes everything that was added, the last first.
func (t *Teardown) Run() (err error) {
	for len(t.list) > 0 {
		last := len(t.list) - 1
		err = errors.Join(err, t.list[last]())
		t.list = t.list[:last]
	}
	return err
}
