package web

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// every is how often those who look get a new view.
const every = time.Second

// stall is for how long somebody who looks may take nothing.
const stall = 30 * time.Second

// maxStreams bounds how many may look at once.
const maxStreams = 32

// hub hands each view to everybody who looks.
type hub struct {
	mu      sync.Mutex
	streams map[chan []byte]bool // under mu; each holds the newest view not yet sent
	woken   chan struct{}        // somebody has begun to look
}

func newHub() hub {
	return hub{streams: map[chan []byte]bool{}, woken: make(chan struct{}, 1)}
}

// join begins to look; nil if there are too many who do.
func (h *hub) join() chan []byte {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.streams) >= maxStreams {
		return nil
	}
	c := make(chan []byte, 1)
	h.streams[c] = true
	select {
	case h.woken <- struct{}{}:
	default:
	}
	return c
}

func (h *hub) leave(c chan []byte) {
	h.mu.Lock()
	delete(h.streams, c)
	h.mu.Unlock()
}

// send gives everybody the view, in the place of an older one that they did not
// take yet.
func (h *hub) send(data []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for c := range h.streams {
		select {
		case <-c:
		default:
		}
		c <- data
	}
}

func (h *hub) watched() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.streams) > 0
}

// Run makes views while somebody looks, until ctx ends.
func (p *Page) Run(ctx context.Context) error {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		for p.hub.watched() {
			p.refresh(ctx)
			select {
			case <-tick.C:
			case <-ctx.Done():
				return nil
			}
		}
		select {
		case <-p.hub.woken:
		case <-ctx.Done():
			return nil
		}
	}
}

// refresh makes one view and sends it.
func (p *Page) refresh(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	v, err := p.view(ctx)
	if err != nil {
		v = map[string]string{"error": err.Error()}
	}
	data, err := json.Marshal(v)
	if err != nil {
		p.log.Error().Err(err).Msg("the page's view cannot be encoded")
		return
	}
	p.hub.send(data)
}

func (p *Page) serveStream(w http.ResponseWriter, r *http.Request) {
	c := p.hub.join()
	if c == nil {
		http.Error(w, "too many look at this page already", http.StatusServiceUnavailable)
		return
	}
	defer p.hub.leave(c)
	out := http.NewResponseController(w)
	_ = out.SetWriteDeadline(time.Time{}) // it goes on
	// Whoever takes nothing for long makes room for others: a deadline that has
	// passed ends a write.
	stalled := time.AfterFunc(stall, func() { _ = out.SetWriteDeadline(time.Unix(1, 0)) })
	defer stalled.Stop()
	w.Header().Set("Content-Type", "text/event-stream")
	for {
		select {
		case data := <-c:
			if _, err := fmt.Fprintf(w, "data: %s\n\n", data); err != nil || out.Flush() != nil {
				return
			}
			stalled.Reset(stall)
		case <-r.Context().Done():
			return
		}
	}
}
