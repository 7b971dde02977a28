package gateway

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"

	"tidemark/clock"
	"tidemark/history"
)

// health gathers what speaks against trusting the gateway, for the status, the
// log and the watchdog. A fault is logged when it comes and when it goes, never
// in between. All methods may be called from anywhere.
type health struct {
	log   zerolog.Logger
	beats atomic.Uint64 // rises whenever the pipeline has looked at its work

	mu     sync.Mutex
	faults map[string]Fault
	now    func() (gatewayMS, wallNS int64)
}

// Fault is one thing that is wrong now.
type Fault struct {
	Name   string `json:"name"`   // where: disk, clock, input x, uplink y …
	Detail string `json:"detail"` // what, and what to do
	Since  string `json:"since"`  // RFC 3339, by the gateway's clock

	gatewayMS int64
}

func (h *health) progress() { h.beats.Add(1) }

// set records or, with an empty detail, clears the fault called name.
func (h *health) set(name, detail string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	old, was := h.faults[name]
	switch {
	case detail == "" && was:
		delete(h.faults, name)
		gw, _ := h.now()
		h.log.Info().Str("fault", name).Int64("lasted_ms", gw-old.gatewayMS).Msg("recovered")
	case detail != "" && !was:
		gw, wall := h.now()
		h.faults[name] = Fault{Name: name, Detail: detail, Since: history.Time(wall), gatewayMS: gw}
		h.log.Warn().Str("fault", name).Msg(detail)
	case detail != "" && old.Detail != detail:
		old.Detail = detail
		h.faults[name] = old
	}
}

// full records whether the store refuses to take more.
func (h *health) full(err error) {
	if err == nil {
		h.set("disk", "")
		return
	}
	h.set("disk", err.Error()+": nothing is acknowledged until there is room; free space or raise store.quota")
}

// throttled records whether the daily write budget delays commits.
func (h *health) throttled(on bool) {
	if !on {
		h.set("write budget", "")
		return
	}
	h.set("write budget", "commits wait for store.daily_budget; raise it or lower the rate of readings")
}

// list returns the faults, the oldest first.
func (h *health) list() []Fault {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := make([]Fault, 0, len(h.faults))
	for _, f := range h.faults {
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.gatewayMS, b.gatewayMS), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// verdict is one line: trustworthy, or degraded and by what.
func (h *health) verdict() string {
	faults := h.list()
	if len(faults) == 0 {
		return "trustworthy"
	}
	return "degraded: " + faults[0].Name + ": " + faults[0].Detail
}

func newHealth(log zerolog.Logger, clk *clock.Clock) *health {
	return &health{log: log, faults: map[string]Fault{}, now: func() (int64, int64) {
		inst := clk.Now()
		return inst.GatewayMS, inst.WallNS
	}}
}
