package history

import (
	"slices"
	"sync"

	"tidemark/buffer"
	"tidemark/reading"
	"tidemark/windowing"
)

// see takes from a step what belongs to the windows.
func (x *explainer) see(blk *buffer.Block, b *reading.Batch, out *windowing.Output) {
	late := map[*reading.Reading]string{}
	proved := sync.OnceValue(func() bool { return out.Digest() == blk.Digest })
	for i := range out.Emissions {
		e := &out.Emissions[i]
		switch {
		case e.Kind == windowing.EmitLate && x.is(e):
			late[e.Reading] = e.Reason.String()
		case e.Kind == windowing.EmitFeature && x.is(e):
			x.window(e).revise(e, blk, proved())
		case e.Kind == windowing.EmitClosed && x.is(e):
			x.window(e).close(e, blk, proved())
		}
	}
	for i := range b.Readings {
		r := &b.Readings[i]
		v := VerdictOf(out.Outcomes[i])
		reason, isLate := late[r]
		if isLate {
			v = Late
		}
		x.place(blk, b, r, v, reason)
	}
}

// is reports whether an emission is of one of the windows.
func (x *explainer) is(e *windowing.Emission) bool {
	return e.Asset == x.q.Asset && e.Sensor == x.q.Sensor && x.find(e) != nil
}

func (x *explainer) find(e *windowing.Emission) *Window {
	for i := range x.out.Windows {
		w := &x.out.Windows[i]
		if w.Feature == e.Feature.Name && w.Version == e.Feature.Version && w.startMS == e.StartMS && w.endMS == e.EndMS && w.Lifecycle == e.Lifecycle {
			return w
		}
	}
	for i := range x.out.Windows {
		if w := &x.out.Windows[i]; w.Feature == e.Feature.Name && w.Version == e.Feature.Version && w.startMS == e.StartMS && w.endMS == e.EndMS {
			return w
		}
	}
	return nil
}

// window returns the window of an emission. A specimen that was exchanged in the
// middle of a window makes a window of its own.
func (x *explainer) window(e *windowing.Emission) *Window {
	w := x.find(e)
	if w.Lifecycle == e.Lifecycle {
		return w
	}
	if len(w.Revisions) == 0 && w.Closing == nil {
		w.Lifecycle = e.Lifecycle
		return w
	}
	other := Window{
		Feature: w.Feature, Version: w.Version, Lifecycle: e.Lifecycle, Start: w.Start, End: w.End, State: WindowOpen,
		feature: w.feature, startMS: w.startMS, endMS: w.endMS, lateness: w.lateness,
	}
	x.out.Windows = append(x.out.Windows, other)
	return &x.out.Windows[len(x.out.Windows)-1]
}

func (w *Window) revise(e *windowing.Emission, blk *buffer.Block, proved bool) {
	r := Revision{
		Revision: e.Revision, Status: e.Status(), Cause: e.Cause.String(), KnownAt: materialized(e), Watermark: TimeMS(e.WatermarkMS),
		HeldBy: slices.Clone(e.Inputs.Active), Idle: slices.Clone(e.Inputs.Idle), Stalled: slices.Clone(e.Inputs.Stalled),
		Observed: e.Coverage.Observed, Bad: e.Quality.Bad, Partial: e.PartialStart, Block: blk.Seq, Proved: proved,
	}
	for _, v := range e.Values {
		r.Values = append(r.Values, Statistic{v.Name, v.Value, windowing.FunctionUnit(v.Name, e.Unit)})
	}
	w.Revisions = append(w.Revisions, r)
	w.State = WindowState(e.Status())
}

func (w *Window) close(e *windowing.Emission, blk *buffer.Block, proved bool) {
	w.Closing = &Closing{
		Revision: e.Revision, Reason: e.Reason.String(), KnownAt: materialized(e), Watermark: TimeMS(e.WatermarkMS),
		Block: blk.Seq, Proved: proved,
	}
	w.State = WindowClosed
}

func materialized(e *windowing.Emission) string {
	if e.MaterializedNS == 0 {
		return ""
	}
	return Time(e.MaterializedNS)
}

// place puts a reading into the windows to which its time belongs: the judged one,
// else the source's own, else that of its arrival.
func (x *explainer) place(blk *buffer.Block, b *reading.Batch, r *reading.Reading, v Verdict, reason string) {
	s := r.Tag.Value()
	if !x.takes(s) {
		return
	}
	ns := r.Stamp.EventNS
	if ns == reading.NoTime {
		ns = r.Source.NS
	}
	if ns == reading.NoTime {
		ns = r.IngestNS
	}
	ms := reading.FloorMS(ns)
	for i := range x.out.Windows {
		w := &x.out.Windows[i]
		if ms < w.startMS || ms >= w.endMS || !w.feature.Selects(s) || w.feature.Group == "" && w.Lifecycle != s.Lifecycle && w.contested(x.out.Windows, s.Lifecycle) {
			continue
		}
		if v == Accepted && w.feature.Excludes(r.Stamp.EventBound) {
			w.hold(blk, b, r, Excluded, reading.BoundTooWide.String())
			continue
		}
		w.hold(blk, b, r, v, reason)
	}
}

// contested reports whether another of the windows is the lifecycle's own.
func (w *Window) contested(all []Window, lifecycle string) bool {
	return slices.ContainsFunc(all, func(o Window) bool {
		return o.Feature == w.Feature && o.Version == w.Version && o.Lifecycle == lifecycle
	})
}

func (w *Window) hold(blk *buffer.Block, b *reading.Batch, r *reading.Reading, v Verdict, reason string) {
	if w.Counts == nil {
		w.Counts = map[Verdict]int{}
	}
	w.Counts[v]++
	w.vouch(r)
	if len(w.Readings) == listedReadings {
		w.Omitted++
		return
	}
	h := Held{Reading: Show(r, v), Block: blk.Seq, Committed: Time(b.WallNS)}
	if reason != "" {
		h.Reason = reason
	}
	w.Readings = append(w.Readings, h)
}

// clocksListed bounds what is listed of clocks.
const clocksListed = 16

// vouch notes what vouched for a reading's times.
func (w *Window) vouch(r *reading.Reading) {
	if seg := r.Stamp.Clock; seg != nil {
		ms := -1.0
		if r.Stamp.IngestBound.Known() {
			ms = float64(r.Stamp.IngestBound.NS()) / 1e6
		}
		at := slices.IndexFunc(w.Clocks, func(c ClockSeen) bool { return c.Segment == seg.ID })
		switch {
		case at >= 0:
			w.Clocks[at].Worst = max(w.Clocks[at].Worst, ms)
		case len(w.Clocks) < clocksListed:
			w.Clocks = append(w.Clocks, ClockSeen{seg.ID, seg.State.String(), seg.Method.String(), seg.Servers, ms})
		}
	}
	if src := r.Stamp.Source; src != nil && len(w.Sources) < clocksListed {
		seen := SourceSeen{r.Tag.Value().Device, src.Verdict.String(), float64(src.LoNS) / 1e6, float64(src.HiNS) / 1e6}
		if !slices.Contains(w.Sources, seen) {
			w.Sources = append(w.Sources, seen)
		}
	}
}

// wait says what an open window waits for. One that the watermark has passed and
// that took nothing waits for nothing.
func (w *Window) wait(e *windowing.Engine, asset, sensor string) {
	if w.Closing != nil {
		return
	}
	last := w.endMS - 1
	p := &Progress{ResultAt: TimeMS(last), ClosingAt: TimeMS(last + w.lateness)}
	if wm, inputs, ok := e.Progress(w.Feature, asset, w.Lifecycle, sensor); ok {
		if wm >= last && len(w.Revisions) == 0 && w.Counts[Accepted] == 0 {
			return
		}
		p.Watermark = TimeMS(wm)
		p.HeldBy, p.Idle, p.Stalled = slices.Clone(inputs.Active), slices.Clone(inputs.Idle), slices.Clone(inputs.Stalled)
	}
	w.Progress = p
}

// otherInputs takes out windows of features that read another input, in which there
// is no such sensor.
func (x *explainer) otherInputs() {
	kept := slices.DeleteFunc(slices.Clone(x.out.Windows), func(w Window) bool {
		return w.State == WindowEmpty && len(w.Counts) == 0 && w.feature.Group == "" && !w.feature.Selects(x.series)
	})
	if len(kept) > 0 {
		x.out.Windows = kept
	}
}

// finish draws together what was seen.
func (x *explainer) finish() {
	for i := range x.out.Windows {
		w := &x.out.Windows[i]
		w.Partial = !x.info.Complete() && (x.info.OldestMS == 0 || w.startMS < x.info.OldestMS)
		if len(w.Revisions) == 0 && w.Closing == nil && w.Counts[Accepted] == 0 {
			w.State = WindowEmpty
		}
		for k := range w.Readings {
			h := &w.Readings[k]
			if h.Verdict != Accepted {
				continue
			}
			at := slices.IndexFunc(w.Revisions, func(r Revision) bool { return r.Block >= h.Block })
			if at >= 0 {
				h.Revision = w.Revisions[at].Revision
			}
		}
	}
	x.otherInputs()
}
