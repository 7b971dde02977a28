package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"tidemark/buffer"
	"tidemark/clock"
	"tidemark/history"
	"tidemark/reading"
)

// Status is what the gateway knows about itself, as `tidemark status --json`
// prints it. Consumers ignore fields that they do not know.
type Status struct {
	Verdict    string  `json:"verdict"` // trustworthy, or degraded
	Since      string  `json:"since"`   // RFC 3339, when the verdict became what it is
	Because    []Fault `json:"because"` // of what, the worst first
	Gateway    string  `json:"gateway"`
	Version    string  `json:"version"`
	Generation uint64  `json:"generation"` // 0 until the clock was trusted once
	At         string  `json:"at"`         // the gateway's wall clock
	GatewayMS  int64   `json:"gateway_ms"` // gateway time
	Page       string  `json:"page"`       // URL of the local page; empty if there is none

	Configuration ConfigStatus      `json:"configuration"`
	Clock         clock.Status      `json:"clock"`
	Inputs        []InputStatus     `json:"inputs"`
	Features      []FeatureStatus   `json:"features"`
	Uplinks       []UplinkStatus    `json:"uplinks"`
	Store         buffer.Stats      `json:"store"`
	Block         uint64            `json:"block"`     // last committed journal block
	Conserved     bool              `json:"conserved"` // the sums of law 5 hold for every input
	Emitted       map[string]uint64 `json:"emitted"`   // records by type, since the store's birth
	Lost          map[string]uint64 `json:"lost"`      // what the store had to drop, by kind
}

// ConfigStatus is which configuration is in force.
type ConfigStatus struct {
	File     string    `json:"file"`
	Hash     string    `json:"hash"`               // first 8 hex digits of the SHA-256 of the text in force
	Loads    uint64    `json:"loads"`              // configurations that this process put in force, and those that it had to take back
	Rejected *Rejected `json:"rejected,omitempty"` // the last edit of the file, if it was at fault and is not in force
}

// InputStatus is one input: its connection and the sums of law 5.
type InputStatus struct {
	Name       string        `json:"name"`
	Reader     *ReaderStatus `json:"reader"` // null where nothing reads the input
	Counts     InputCounts   `json:"counts"`
	PendingNow int64         `json:"pending_now"`
	// QuarantinedNow is how many readings are in quarantine by the books.
	QuarantinedNow int64             `json:"quarantined_now"`
	Quarantine     map[string]uint64 `json:"quarantine,omitempty"` // by reason
	Rejects        map[string]uint64 `json:"rejects,omitempty"`
}

// errStopping answers a question that comes too late.
var errStopping = errors.New("the gateway is starting or stopping")

// Status asks the running gateway. It fails while the gateway starts or stops.
func (g *Gateway) Status(ctx context.Context) (*Status, error) {
	s := g.now.Load()
	if s == nil {
		return nil, errStopping
	}
	return s.status(ctx)
}

func (s *session) status(ctx context.Context) (*Status, error) {
	inst := s.clk.Now()
	st := &Status{
		Gateway: s.cfg.Gateway.ID, Version: s.gateway.opts.Version,
		At: history.Time(inst.WallNS), GatewayMS: inst.GatewayMS, Conserved: true,
		Clock:         s.clk.Status(),
		Configuration: s.configStatus(),
	}
	err := s.pipe.ask(ctx, func() { s.pipe.describe(st) })
	if err != nil {
		return nil, err
	}
	for _, u := range s.uplinks {
		st.Uplinks = append(st.Uplinks, u.status())
	}
	if st.Store, err = s.store.Stats(); err != nil {
		return nil, err
	}
	for _, r := range s.readers {
		i := slices.IndexFunc(st.Inputs, func(in InputStatus) bool { return in.Name == r.input() })
		st.Inputs[i].Reader = r.standing()
	}
	if s.web != nil {
		st.Page = s.web.URL()
	}
	s.look()
	st.Because = s.health.list()
	now := s.health.verdict()
	st.Verdict, st.Since = "trustworthy", now.since
	if now.degraded {
		st.Verdict = "degraded"
	}
	return st, nil
}

// describe fills in what belongs to the pipeline.
func (p *pipeline) describe(st *Status) {
	st.Generation, st.Block = p.ledger.Generation, p.seq
	es := p.engine.Status()
	for i := range es {
		f := newFeatureStatus(&es[i])
		st.Features = append(st.Features, f)
		p.health.set("precision of feature "+f.Name, tooWide(&f))
	}
	st.Emitted, st.Lost = maps.Clone(p.ledger.Counts.Emitted), maps.Clone(p.ledger.Counts.Lost)
	for _, name := range p.inputs {
		c := *p.ledger.Counts.input(name)
		st.Conserved = st.Conserved && c.Conserved(p.taken[name], p.waiting(name))
		st.Inputs = append(st.Inputs, InputStatus{
			Name: name, Counts: c, PendingNow: c.PendingNow(), QuarantinedNow: c.QuarantinedNow(),
			Quarantine: maps.Clone(p.ledger.Counts.Quarantine[name]),
			Rejects:    maps.Clone(p.ledger.Counts.Rejects[name]),
		})
	}
}

// look brings the health up to date with the connections.
func (s *session) look() {
	inst := s.clk.Now()
	s.gateway.trend.note(inst.GatewayMS, inst.BoundNS, inst.State.String())
	s.lookAtConfig()
	for _, r := range s.readers {
		rs := r.standing()
		detail := rs.Problem
		if detail == "" && rs.State != "connected" && rs.State != "stopped" {
			detail = rs.State + " to " + rs.peer()
		}
		s.health.set("input "+r.input(), detail)
	}
	for _, u := range s.uplinks {
		us, detail := u.status(), ""
		if us.State != "online" && us.State != "stopped" {
			detail = cmp.Or(us.Reason, us.State)
		}
		s.health.set("uplink "+u.name, detail)
	}
	s.health.set("source clocks", keptOut(s.clk.Sources()))
	if st, err := s.store.Stats(); err == nil {
		s.health.set("disk space", shortOfSpace(st))
	}
}

// spaceLeft is how much of its file system a store must find free.
const spaceLeft = 128 << 20

// shortOfSpace says that the file system will be full before the store has reached
// its quota.
func shortOfSpace(st buffer.Stats) string {
	grows := st.QuotaBytes - st.FileBytes
	if st.FreeBytes < 0 || st.FreeBytes >= min(grows, spaceLeft) {
		return ""
	}
	return fmt.Sprintf("%d MiB are free on the store's file system, and the store may grow by %d MiB more: free space, or lower store.quota", st.FreeBytes>>20, grows>>20)
}

// keptOut says whose readings are in quarantine for their times, the worst first.
func keptOut(sources []clock.SourceStatus) string {
	worst, more := "", 0
	for _, src := range sources {
		switch {
		case len(src.KeptOut) == 0:
		case worst == "":
			worst = src.Advice
		default:
			more++
		}
	}
	if more > 0 {
		worst += fmt.Sprintf("; so do those of %d more (tidemark quarantine list)", more)
	}
	return worst
}

// waiting is how much of what an input brought is in the batch that is not
// committed yet.
func (p *pipeline) waiting(input string) (n uint64) {
	for i := range p.batch.Readings {
		r := &p.batch.Readings[i]
		if !r.Delivery.Has(reading.Rejudged) && r.Tag.Value().Input == input {
			n++
		}
	}
	for i := range p.rejects {
		if p.rejects[i].input == input {
			n++
		}
	}
	return n
}

// tooWide says that a feature leaves many readings out because their times are
// not known well enough for its windows (SEMANTICS, Disposition 7).
func tooWide(f *FeatureStatus) string {
	if f.Excluded == 0 || f.Excluded*20 < f.Windowed {
		return ""
	}
	return fmt.Sprintf("%d of %d readings are in none of its windows: twice the error of their times is more than a window; widen the window, or make the clocks better known", f.Excluded, f.Excluded+f.Windowed+f.Late)
}
