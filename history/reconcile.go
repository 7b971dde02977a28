package history

import (
	"context"
	"fmt"
	"maps"
	"math"
	"slices"

	"tidemark/buffer"
	"tidemark/reading"
	"tidemark/windowing"
)

// Rebuilding says which windows Reconcile rebuilds. Times are event times of
// windows' starts, reading.NoTime for no limit.
type Rebuilding struct {
	FromMS, ToMS int64 // ToMS excluded
	Feature      string
	Sensors      []Sensor // of these; none: all. A group goes by its name.
}

// Reconciled is a window as it should have been.
type Reconciled struct {
	*windowing.Emission // valid until the next
	// Partial says why not everything that belongs to the window is known; empty if
	// all is.
	Partial []string
}

// Why a reconciled window is partial.
const (
	PartialRetention = "before_retention" // it began before what the journal holds
	PartialStore     = "before_store"     // it began before the store's birth: only what has come since is known
	PartialGap       = "gap"              // blocks of its time are lost
	PartialOpen      = "not_over"         // it reaches beyond the latest reading
)

// Reconcile rebuilds the windows of the features in force from everything that the
// journal holds: what came late too, which the served revisions left out. It calls
// fn with every window that has readings or held values, by slices of event time, in
// one order for one journal. Nothing is told to the gateway.
//
// What is rebuilt is one slice at a time: memory is that of an engine with two
// million readings' windows, whatever the journal holds.
func Reconcile(ctx context.Context, j Journal, what Rebuilding, progress ProgressFunc, fn func(Reconciled) error) (*Info, error) {
	info, err := j.Info(ctx)
	if err != nil {
		return nil, err
	}
	config, err := info.engineConfig()
	if err != nil {
		return nil, err
	}
	r := &rebuilder{j: j, info: info, what: what, birthMS: config.FloorMS, fn: fn}
	if err := r.configure(config); err != nil {
		return nil, err
	}
	if err := r.plan.read(ctx, j, info, progress); err != nil {
		return nil, err
	}
	low, high := r.bounds()
	done := low
	r.come = func(ms int64) {
		if done = max(done, min(ms, high)); progress != nil {
			progress(stepRebuilding, done-low, high-low)
		}
	}
	for at := low; at < high; {
		to := min(r.plan.upTo(at, r.reach, r.size, r.longest), high)
		if err := r.slice(ctx, at, to); err != nil {
			return nil, err
		}
		at = max(to, min(r.plan.next(to-1-r.reach)-r.size+1, high))
		r.come(at)
	}
	return info, nil
}

// rebuilder is a reconciliation in the making.
type rebuilder struct {
	j       Journal
	info    *Info
	what    Rebuilding
	birthMS int64
	config  windowing.Config
	plan    plan
	size    int64          // the longest window
	reach   int64          // how far before a window's start what it says may begin
	longest int64          // slice
	come    func(ms int64) // tells how far in event time it is
	fn      func(Reconciled) error
}

// longestEmpty is how many windows without readings one jump of the watermark may
// bring forth for a key (windowing), with room to spare.
const longestEmpty = 1000

// configure makes the private engine's configuration: nothing closes, is late, idle,
// stalled or spaced until the slice ends.
func (r *rebuilder) configure(c *windowing.Config) error {
	r.config = *c
	r.config.Features = nil
	r.config.FloorMS, r.config.Explicit, r.config.Finals = reading.NoTime, true, false
	r.config.MaxOpenWindows, r.config.ForgetAfterMS = 0, 0
	r.longest = math.MaxInt64 / 4
	for _, f := range c.Features {
		if r.what.Feature != "" && f.ID.Name != r.what.Feature {
			continue
		}
		f.IdleAfterMS, f.FlushAfterMS, f.CorrectEveryMS, f.MaxLagMS = 0, 0, 0, 0
		r.config.Features = append(r.config.Features, f)
		r.size = max(r.size, f.SizeMS)
		r.reach = max(r.reach, f.MaxHoldMS)
		if f.MaxHoldMS > 0 || f.EmitEmpty {
			r.longest = min(r.longest, longestEmpty*f.Every())
		}
	}
	if len(r.config.Features) == 0 {
		return fmt.Errorf("%w: %q", ErrUnselected, r.what.Feature)
	}
	return nil
}

// bounds is the range of starts of the windows in question.
func (r *rebuilder) bounds() (low, high int64) {
	low, high = r.plan.low-r.size+1, r.plan.high+1
	if r.what.FromMS != reading.NoTime {
		low = max(low, r.what.FromMS)
	}
	if r.what.ToMS != reading.NoTime {
		high = min(high, r.what.ToMS)
	}
	return low, high
}

// slice rebuilds the windows that start in [from, to).
func (r *rebuilder) slice(ctx context.Context, from, to int64) error {
	e, err := windowing.New(r.config)
	if err != nil {
		return err
	}
	low, high := from-r.reach, to+r.size
	inputs := map[string]bool{}
	for _, run := range r.plan.runs {
		if run.min >= high || run.max < low {
			continue
		}
		err := r.j.Blocks(ctx, run.first, run.next, func(blk buffer.Block) error {
			if blk.MinMS == reading.NoTime || blk.MinMS >= high || blk.MaxMS < low {
				return nil
			}
			b, err := decode(&blk)
			if err == nil {
				e.Step(r.within(b, low, high, inputs))
				r.come(min(blk.MinMS, to))
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	last := &reading.Batch{GatewayMS: reading.NoTime}
	for _, input := range slices.Sorted(maps.Keys(inputs)) {
		last.Marks = append(last.Marks, reading.Mark{Kind: reading.MarkWatermark, Input: input, TimeMS: high})
	}
	out := e.Step(last)
	for i := range out.Emissions {
		m := &out.Emissions[i]
		if m.Kind != windowing.EmitFeature || m.StartMS < from || m.StartMS >= to || !r.wants(m) {
			continue
		}
		if m.Coverage.Observed == 0 && m.Coverage.CoveredMS <= 0 {
			continue // nothing is known of it
		}
		if err := r.fn(Reconciled{m, r.partial(m)}); err != nil {
			return err
		}
	}
	return nil
}

// within leaves in b the accepted readings of the slice, and what is said about the
// lives of their sources.
func (r *rebuilder) within(b *reading.Batch, low, high int64, inputs map[string]bool) *reading.Batch {
	out := &reading.Batch{GatewayMS: reading.NoTime}
	marks := b.Marks
	note := func(upTo int) {
		for len(marks) > 0 && marks[0].At <= upTo {
			if m := marks[0]; m.Kind == reading.MarkIdle || m.Kind == reading.MarkActive {
				m.At = len(out.Readings)
				out.Marks = append(out.Marks, m)
			}
			marks = marks[1:]
		}
	}
	for i := range b.Readings {
		note(i)
		x := &b.Readings[i]
		if ms := reading.FloorMS(x.Stamp.EventNS); x.Stamp.Disposition.Accepted() && ms >= low && ms < high {
			out.Readings = append(out.Readings, *x)
			inputs[x.Tag.Value().Input] = true
		}
	}
	note(len(b.Readings))
	return out
}

func (r *rebuilder) wants(m *windowing.Emission) bool {
	return len(r.what.Sensors) == 0 || slices.Contains(r.what.Sensors, Sensor{m.Asset, m.Sensor})
}

// partial says what speaks against a window's being whole.
func (r *rebuilder) partial(m *windowing.Emission) []string {
	why := []string{}
	if r.info.First > 1 && (r.info.OldestMS == 0 || m.StartMS < r.info.OldestMS) {
		why = append(why, PartialRetention)
	}
	if r.birthMS != reading.NoTime && m.StartMS < r.birthMS {
		why = append(why, PartialStore)
	}
	if slices.ContainsFunc(r.plan.gaps, func(g span) bool { return m.StartMS <= g.to && m.EndMS > g.from }) {
		why = append(why, PartialGap)
	}
	if m.EndMS > r.plan.high+1 {
		why = append(why, PartialOpen)
	}
	return why
}
