package gateway

import "sync"

// trend is the gateway's clock over the last day, a point a minute. It outlives
// the sessions of one process.
type trend struct {
	mu     sync.Mutex
	points []ClockPoint // under mu; ascending
}

// ClockPoint is the clock at one minute.
type ClockPoint struct {
	GatewayMS int64  `json:"gateway_ms"`
	BoundNS   int64  `json:"bound_ns"` // the largest in that minute; -1 if none was known
	State     string `json:"state"`    // the last in that minute
}

const (
	trendStepMS = 60_000
	trendPoints = 24 * 60
)

// note records the clock as it is now.
func (t *trend) note(gatewayMS, boundNS int64, state string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := gatewayMS - gatewayMS%trendStepMS
	if n := len(t.points); n > 0 && t.points[n-1].GatewayMS >= at {
		p := &t.points[n-1]
		p.State, p.BoundNS = state, max(p.BoundNS, boundNS)
		return
	}
	if len(t.points) == trendPoints {
		copy(t.points, t.points[1:])
		t.points = t.points[:trendPoints-1]
	}
	t.points = append(t.points, ClockPoint{at, boundNS, state})
}

func (t *trend) list() []ClockPoint {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]ClockPoint{}, t.points...)
}
