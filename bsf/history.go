package bsf

import "context"

// HistoryStore is where a history is kept. DocumentStore is one.
type HistoryStore interface {
	CreateDocument(ctx context.Context, d *Document, replace []ID, ev *Event) (holder *Document, queued bool, err error)
	FindDocuments(ctx context.Context, kind Kind, key string) ([]Document, error)
}

// AppendHistory adds an entry, which is JSON, to the history that has the key
// and returns its id. The oldest entries give way to it, so that no more than
// keep are left. Errors are those of the store.
func AppendHistory(ctx context.Context, docs HistoryStore, key string, body []byte, keep int) (ID, error) {
	past, err := docs.FindDocuments(ctx, KindHistory, key)
	if err != nil {
		return ID{}, err
	}
	var drop []ID
	for i := 0; i <= len(past)-keep; i++ {
		drop = append(drop, past[i].ID)
	}
	d := &Document{Kind: KindHistory, ID: NewID(), Keys: []string{key}, Body: body}
	_, _, err = docs.CreateDocument(ctx, d, drop, nil)
	return d.ID, err
}
