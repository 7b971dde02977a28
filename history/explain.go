package history

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"tidemark/buffer"
	"tidemark/reading"
	"tidemark/windowing"
)

// Question is what Explain is asked.
type Question struct {
	Asset, Sensor string // the sensor, or a group's name
	Feature       string // only of this feature; empty: of every one
	// AtMS is an event time in the window. reading.NoTime is that of the sensor's
	// latest reading; Back windows before that are meant then.
	AtMS int64
	Back int
}

// Errors of Explain that somebody acts on.
var (
	// ErrUnknownSensor is wrapped where no block that is held has the sensor.
	ErrUnknownSensor = errors.New("there is no such sensor in the journal")
	// ErrUnselected is wrapped where no feature takes the sensor.
	ErrUnselected = errors.New("no feature selects the sensor")
	// ErrRetention is wrapped where the window is older than what is held.
	ErrRetention = errors.New("the window is older than what the journal holds")
	errEnough    = errors.New("enough")
)

// Bounds of an explanation.
const (
	listedReadings = 2000       // of a window; the rest is counted
	steppedAtMost  = 50_000_000 // readings that are stepped again
	lookBack       = 500        // blocks in which the latest reading is looked for
)

// explainer is an explanation in the making.
type explainer struct {
	j      Journal
	q      Question
	show   ProgressFunc
	info   *Info
	config *windowing.Config
	groups []*windowing.Feature // of that name

	series  reading.Series // of the latest reading
	at      int64          // event time asked for
	low, hi int64          // event times of all windows around it
	warm    int64

	first  uint64   // block that may hold a reading of the windows; 0 if none does
	before int64    // readings below it
	later  []uint64 // it and all others that may

	out *Explanation
}

// Explain tells the life of a sensor's windows. The journal is stepped again by a
// private engine from before the windows' first reading until they are closed;
// readings that came later are looked up by the blocks' headers.
func Explain(ctx context.Context, j Journal, q Question, progress ProgressFunc) (*Explanation, error) {
	x := &explainer{j: j, q: q, show: progress}
	var err error
	if x.info, err = j.Info(ctx); err != nil {
		return nil, err
	}
	if x.config, err = x.info.engineConfig(); err != nil {
		return nil, err
	}
	for _, part := range []func(context.Context) error{x.choose, x.survey, x.step, x.afterwards} {
		if err := part(ctx); err != nil {
			return nil, err
		}
	}
	x.finish()
	return x.out, nil
}

// takes reports whether a series belongs to what is asked for.
func (x *explainer) takes(s reading.Series) bool {
	if s.Asset == x.q.Asset && s.Sensor == x.q.Sensor {
		return true
	}
	return slices.ContainsFunc(x.groups, func(f *windowing.Feature) bool {
		return f.Selects(s) && (!f.GroupPerAsset || s.Asset == x.q.Asset)
	})
}

// mayHold reports whether a block may have readings of it.
func (x *explainer) mayHold(index []byte) bool {
	return len(x.groups) > 0 || mayHold(index, x.q.Asset, x.q.Sensor)
}

// choose finds the windows in question.
func (x *explainer) choose(ctx context.Context) error {
	for i := range x.config.Features {
		if f := &x.config.Features[i]; f.Group != "" && f.Group == x.q.Sensor && (f.GroupPerAsset || x.q.Asset == "") {
			x.groups = append(x.groups, f)
		}
	}
	latest, series, err := x.latest(ctx)
	if err != nil {
		return err
	}
	x.at = x.q.AtMS
	if x.at == reading.NoTime {
		if latest == reading.NoTime {
			return ErrUnknownSensor
		}
		x.at = latest
	}
	x.series = series
	x.out = &Explanation{Gateway: x.info.Gateway, Asset: x.q.Asset, Sensor: x.q.Sensor}
	x.low, x.hi = math.MaxInt64, math.MinInt64
	for i := range x.config.Features {
		f := &x.config.Features[i]
		if x.q.Feature != "" && f.ID.Name != x.q.Feature || !x.keyOf(f, series) {
			continue
		}
		at := x.at
		if x.q.AtMS == reading.NoTime {
			at -= int64(x.q.Back) * f.Every()
		}
		start, end := f.WindowAt(at)
		x.low, x.hi = min(x.low, start), max(x.hi, end)
		x.warm = max(x.warm, 2*f.SizeMS+f.AllowedLatenessMS+f.OutOfOrdernessMS+f.IdleAfterMS+60_000)
		x.out.Windows = append(x.out.Windows, Window{
			Feature: f.ID.Name, Version: f.ID.Version, Lifecycle: series.Lifecycle, Start: TimeMS(start), End: TimeMS(end), State: WindowOpen,
			feature: f, startMS: start, endMS: end, lateness: f.AllowedLatenessMS,
		})
	}
	if len(x.out.Windows) == 0 {
		return ErrUnselected
	}
	return nil
}

// keyOf reports whether what is asked for is a key of the feature.
func (x *explainer) keyOf(f *windowing.Feature, s reading.Series) bool {
	if f.Group != "" {
		return slices.Contains(x.groups, f)
	}
	if f.Select.Input != "" {
		s.Input = f.Select.Input // another input may have a sensor of that name too
	}
	return len(x.groups) == 0 && f.Selects(s)
}

// latest returns the event time and the series of the latest reading. It looks
// through the last blocks that may have one.
func (x *explainer) latest(ctx context.Context) (at int64, s reading.Series, err error) {
	at, s = reading.NoTime, reading.Series{Asset: x.q.Asset, Sensor: x.q.Sensor}
	var seqs []uint64 // a ring of the last candidates
	n := 0
	err = x.j.Headers(ctx, x.info.First, x.info.Next, x.show.walk(stepSurveying, x.info.First, x.info.Next, func(b buffer.Block) error {
		switch {
		case b.Readings == 0 || !x.mayHold(b.Index):
			return nil
		case len(seqs) < lookBack:
			seqs = append(seqs, b.Seq)
		default:
			seqs[n%lookBack] = b.Seq
		}
		n++
		return nil
	}))
	if err != nil {
		return at, s, err
	}
	slices.Sort(seqs)
	known := false
	for _, seq := range slices.Backward(seqs) {
		err := x.block(ctx, seq, func(_ *buffer.Block, b *reading.Batch) {
			for i := range b.Readings {
				r := &b.Readings[i]
				if of := r.Tag.Value(); x.takes(of) {
					known, s = true, of
					if r.Stamp.Disposition.Accepted() {
						at = max(at, reading.FloorMS(r.Stamp.EventNS))
					}
				}
			}
		})
		if err != nil || at != reading.NoTime {
			return at, s, err
		}
	}
	if !known && n <= lookBack {
		return at, s, ErrUnknownSensor
	}
	return at, s, nil
}

// block reads one block.
func (x *explainer) block(ctx context.Context, seq uint64, fn func(*buffer.Block, *reading.Batch)) error {
	return x.j.Blocks(ctx, seq, seq+1, func(blk buffer.Block) error {
		b, err := decode(&blk)
		if err == nil {
			fn(&blk, b)
		}
		return err
	})
}

// survey finds the blocks that may hold readings of the windows.
func (x *explainer) survey(ctx context.Context) error {
	var count int64
	err := x.j.Headers(ctx, x.info.First, x.info.Next, x.show.walk(stepSurveying, x.info.First, x.info.Next, func(b buffer.Block) error {
		if b.MinMS != reading.NoTime && b.MinMS < x.hi && b.MaxMS >= x.low && x.mayHold(b.Index) {
			if x.first == 0 {
				x.first, x.before = b.Seq, count
			}
			x.later = append(x.later, b.Seq)
		}
		count += int64(b.Readings)
		return nil
	}))
	if err != nil {
		return err
	}
	if x.first == 0 && !x.info.Complete() && x.info.OldestMS >= x.hi {
		return fmt.Errorf("%w: it reaches back to %s", ErrRetention, TimeMS(x.info.OldestMS))
	}
	x.out.Journal = Reach{First: x.info.First, Last: x.info.Next - 1, OldestAt: known(x.info.OldestMS), LatestAt: known(x.info.LatestMS)}
	return nil
}

// known is a wall time in milliseconds, of which 0 is none.
func known(ms int64) string {
	if ms == 0 {
		return ""
	}
	return TimeMS(ms)
}

// step steps the windows' life again.
func (x *explainer) step(ctx context.Context) error {
	if x.first == 0 {
		return nil
	}
	e, from, exact, err := engineBefore(ctx, x.j, x.info, x.first, x.before, x.warm)
	if err != nil {
		return err
	}
	reach := &x.out.Journal
	reach.From, reach.Exact = from, exact
	last := x.later[len(x.later)-1]
	err = x.j.Blocks(ctx, from, x.info.Next, x.show.walk(stepStepping, from, last+1, func(blk buffer.Block) error {
		b, err := decode(&blk)
		if err != nil {
			return err
		}
		out := e.Step(b)
		reach.To, reach.Readings = blk.Seq, reach.Readings+len(b.Readings)
		x.see(&blk, b, out)
		if blk.Seq >= x.first && x.closed() || reach.Readings > steppedAtMost {
			return errEnough
		}
		return nil
	}))
	if err != nil && !errors.Is(err, errEnough) {
		return err
	}
	for i := range x.out.Windows {
		x.out.Windows[i].wait(e, x.q.Asset, x.q.Sensor)
	}
	return nil
}

// closed reports whether every window that took a reading is closed, and one did.
func (x *explainer) closed() bool {
	some := false
	for i := range x.out.Windows {
		w := &x.out.Windows[i]
		if len(w.Revisions) > 0 || w.Counts[Accepted] > 0 {
			some = true
			if w.Closing == nil {
				return false
			}
		}
	}
	return some
}

// Names lists the sensors in the last blocks of a journal, as Name spells them.
func Names(ctx context.Context, j Journal) ([]string, error) {
	info, err := j.Info(ctx)
	if err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	from := max(info.First, info.Next-min(lookBack, info.Next))
	err = j.Blocks(ctx, from, info.Next, func(blk buffer.Block) error {
		b, err := decode(&blk)
		if err != nil {
			return err
		}
		for i := range b.Readings {
			s := b.Readings[i].Tag.Value()
			seen[Name(s.Asset, s.Sensor)] = true
		}
		return nil
	})
	return slices.Sorted(maps.Keys(seen)), err
}

// afterwards looks up what came when the engine had nothing more to say.
func (x *explainer) afterwards(ctx context.Context) error {
	to := x.out.Journal.To
	for _, seq := range x.later {
		if seq <= to {
			continue
		}
		err := x.block(ctx, seq, func(blk *buffer.Block, b *reading.Batch) {
			for i := range b.Readings {
				r := &b.Readings[i]
				v := Judged(r)
				if v == Accepted {
					v = Late
				}
				x.place(blk, b, r, v, "window_closed")
			}
		})
		if err != nil {
			return err
		}
	}
	return nil
}
