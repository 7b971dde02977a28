package gateway

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"tidemark/clock"
	"tidemark/history"
)

// health gathers what speaks against trusting the gateway, for the status, the
// log and the watchdog. A fault is logged when it comes and when it goes, never
// in between. It outlives the sessions: what was wrong before a reload and still is
// has been so since then. All methods may be called from anywhere.
type health struct {
	log   zerolog.Logger
	beats atomic.Uint64 // rises whenever the pipeline has looked at its work

	mu     sync.Mutex
	clk    *clock.Clock // of this session
	faults map[string]Fault
	turned turn // to the verdict of now

	// Of the sessions before, until this one has settled; nil after that.
	old       map[string]Fault
	before    turn
	settledNS int64 // boot line
}

// turn is when the verdict became what it is.
type turn struct {
	degraded bool
	since    string
	assumed  bool // at the beginning of a session, which has found nothing yet
}

// settleTime is what a session may take to find its connections again. What looks as
// before within that time has not changed.
const settleTime = time.Minute

// Fault is one thing that is wrong now.
type Fault struct {
	Name   string `json:"name"`   // where: disk, clock, input x, uplink y …
	Detail string `json:"detail"` // what, and what to do
	Since  string `json:"since"`  // RFC 3339, by the gateway's clock

	bootNS int64
}

func newHealth(log zerolog.Logger) *health { return &health{log: log, faults: map[string]Fault{}} }

// begin takes in a session. One before that never settled, since its configuration was
// taken back or another came soon, leaves over what it had not found yet.
func (h *health) begin(clk *clock.Clock) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.clk = clk
	now := clk.Now()
	h.settle(now.BootNS)
	if h.old == nil || !h.turned.assumed {
		h.before = h.turned
	}
	if h.turned.degraded || h.turned.since == "" {
		h.turned = turn{since: history.Time(now.WallNS), assumed: true}
	}
	if h.old == nil {
		h.old = map[string]Fault{}
	}
	maps.Copy(h.old, h.faults)
	h.faults, h.settledNS = map[string]Fault{}, now.BootNS+int64(settleTime)
}

func (h *health) progress() { h.beats.Add(1) }

// set records or, with an empty detail, clears the fault called name.
func (h *health) set(name, detail string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.clk.Now()
	h.settle(now.BootNS)
	was, is := h.faults[name]
	switch {
	case detail == "" && is:
		delete(h.faults, name)
		h.log.Info().Str("fault", name).Int64("lasted_ms", (now.BootNS-was.bootNS)/1e6).Msg("recovered")
	case detail != "" && is:
		was.Detail = detail
		h.faults[name] = was
	case detail != "":
		f, before := h.old[name]
		if !before {
			f = Fault{Name: name, Since: history.Time(now.WallNS), bootNS: now.BootNS}
			h.log.Warn().Str("fault", name).Msg(detail)
		}
		f.Detail = detail
		h.faults[name] = f
		delete(h.old, name)
	}
	if degraded := len(h.faults) > 0; degraded != h.turned.degraded {
		h.turned = turn{degraded: degraded, since: history.Time(now.WallNS)}
		if h.old != nil && degraded == h.before.degraded && h.before.since != "" {
			h.turned = h.before
		}
	}
}

// settle forgets the sessions before when this one has had its time. The lock is held.
func (h *health) settle(bootNS int64) {
	if h.old == nil || bootNS <= h.settledNS {
		return
	}
	for name := range h.old {
		h.log.Info().Str("fault", name).Msg("recovered: it did not come again after the reload")
	}
	h.old = nil
}

// verdict is whether the gateway is degraded, and since when.
func (h *health) verdict() turn {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.turned
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

// severity is the order of faults by where they are, the worst first: nothing is
// taken, nothing is windowed, something is missing, something waits.
var severity = []string{"disk", "store", "clock", "input", "source clocks", "feature", "times", "disk space", "uplink", "configuration", "precision", "write budget"}

func (f *Fault) rank() int {
	first, _, _ := strings.Cut(f.Name, " ")
	if i := slices.Index(severity, f.Name); i >= 0 {
		return i
	}
	return slices.Index(severity, first)
}

// list returns the faults, the worst first, and of equals the oldest.
func (h *health) list() []Fault {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := slices.Collect(maps.Values(h.faults))
	slices.SortFunc(out, func(a, b Fault) int {
		return cmp.Or(cmp.Compare(a.rank(), b.rank()), cmp.Compare(a.bootNS, b.bootNS), cmp.Compare(a.Name, b.Name))
	})
	return out
}

// line is the verdict in one line: trustworthy, or degraded by what, the worst first
// and that one told whole.
func (h *health) line() string {
	faults := h.list()
	if len(faults) == 0 {
		return "trustworthy"
	}
	names := make([]string, len(faults))
	for i, f := range faults {
		names[i] = f.Name
	}
	return "degraded: " + strings.Join(names, ", ") + ": " + faults[0].Detail
}
