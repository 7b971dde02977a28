package gateway

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"tidemark/history"
)

// Tailed is a line of a tail: a reading, or how many were left out because the
// reader of the tail was too slow.
type Tailed struct {
	*history.Reading
	Dropped uint64 `json:"dropped,omitempty"`
}

// serveTail answers with readings as they are committed, one JSON object a line,
// until the client goes away.
func (s *session) serveTail(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	t := s.pipe.tails.add(q.Get("asset"), q.Get("sensor"))
	defer s.pipe.tails.remove(t)
	w.Header().Set("Content-Type", "application/x-ndjson")
	flush := http.NewResponseController(w)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	for {
		if flush.Flush() != nil {
			return
		}
		select {
		case <-t.more:
		case <-s.pipe.ended:
			return
		case <-r.Context().Done():
			return
		}
		list, dropped := t.take()
		for i := range list {
			shown := history.Show(&list[i].r, list[i].verdict)
			if enc.Encode(Tailed{Reading: &shown}) != nil {
				return
			}
		}
		if dropped > 0 && enc.Encode(Tailed{Dropped: dropped}) != nil {
			return
		}
	}
}

// AskTail calls fn with every reading of a sensor, or of all if sensor is empty,
// that the gateway at the socket commits from now on, until ctx ends or fn
// returns an error. A gateway that stops ends it with an error.
func AskTail(ctx context.Context, socket, asset, sensor string, fn func(Tailed) error) error {
	resp, err := ask(ctx, socket, http.MethodGet, "/tail?"+url.Values{"asset": {asset}, "sensor": {sensor}}.Encode())
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	for dec := json.NewDecoder(resp.Body); ; {
		var t Tailed
		if err := dec.Decode(&t); err != nil {
			return fmt.Errorf("the gateway has stopped answering: %w", err)
		}
		if err := fn(t); err != nil {
			return err
		}
	}
}
