package nbsf

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"bsfd/bsf"
	"bsfd/web/sbi"
)

// poster is the part of sbi.Client that callbacks need.
type poster interface {
	Post(ctx context.Context, uri string, header http.Header, body []byte) (sbi.Response, error)
}

// Callback sends the notifications of the API (TS 29.521 §4.2.8). It is a
// bsf.Sender.
type Callback struct {
	client poster
	header http.Header
}

// NewCallback returns a Callback that sends through the client.
func NewCallback(client poster) *Callback {
	return &Callback{client, http.Header{sbi.HeaderCallback: {"Nbsf_Management_myNotification"}}}
}

// Send implements bsf.Sender.
func (c *Callback) Send(ctx context.Context, uri string, n *bsf.Notification) (bsf.Delivery, string, error) {
	body, err := json.Marshal(n)
	if err != nil {
		return bsf.Failed, "", err
	}
	resp, err := c.client.Post(ctx, uri, c.header, body)
	switch {
	case errors.Is(err, sbi.ErrHeld):
		return bsf.Held, "", err
	case err != nil:
		return bsf.Failed, "", err
	case resp.Status/100 == 2:
		return bsf.Delivered, resp.Moved, nil
	case resp.Status == http.StatusNotFound:
		return bsf.Gone, "", fmt.Errorf("receiver answered %d", resp.Status)
	default:
		return bsf.Failed, "", fmt.Errorf("receiver answered %d", resp.Status)
	}
}
