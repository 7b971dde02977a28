package windowing

import "tidemark/reading"

// take steps one reading; rt is its route, nil if it has none yet.
func (e *Engine) take(r *reading.Reading, rt *route) Outcome {
	d := r.Stamp.Disposition
	if d == reading.Unjudged || d > reading.Pending {
		return OutcomeUnjudged
	}
	if rt == nil {
		rt = e.route(r.Tag)
	}
	rt.hear(e)
	switch {
	case d == reading.Pending:
		return OutcomePending
	case d == reading.Quarantine:
		return e.quarantine(r)
	}
	t := reading.FloorMS(r.Stamp.EventNS)
	if !rt.inRange(t) {
		return e.quarantine(e.outOfRange(r))
	}
	if r.Delivery.Has(reading.Initial) {
		rt.carryIn(r, t)
		return OutcomeInitial
	}
	var id identity
	known := false
	if rt.identity && rt.selected {
		if id, known = identify(r, rt.inputHash); known {
			if found, conflict := rt.repeated(e, id, r, t); found {
				e.emit(Emission{Kind: EmitDuplicate, Conflict: conflict, Reading: r})
				return OutcomeDuplicate
			}
		}
	}
	rt.sensor.lastMS = max(rt.sensor.lastMS, t)
	late := rt.assign(r, t)
	if known {
		rt.sensor.newestNS = max(rt.sensor.newestNS, r.Source.NS)
		rt.sensor.remember(id, t, &rt.retention, e.config.DuplicateHorizonMS)
		if late {
			rt.sensor.ids.addLate(id, e.gatewayMS(), e.config.LateIdentityMS)
		}
	}
	return OutcomeAccepted
}

// hear takes the reading as evidence of life (I7).
func (rt *route) hear(e *Engine) {
	e.alive(rt.input)
	e.speaks(rt.sensor, rt.input)
	for i := range rt.ends {
		p := rt.ends[i].partition(&rt.series)
		if rt.series.Device != p.via {
			p.via = rt.series.Device
		}
		p.alive()
	}
}

// inRange is W4, for every feature that selects the series.
func (rt *route) inRange(t int64) bool {
	if t < minTimeMS || t > maxTimeMS {
		return false
	}
	for i := range rt.ends {
		if n := &rt.ends[i]; n.selected && (t < n.f.lo || t > n.f.hi) {
			return false
		}
	}
	return true
}

// repeated looks for the identity among what is remembered (D2, D3).
func (rt *route) repeated(e *Engine, id identity, r *reading.Reading, t int64) (found, conflict bool) {
	s := &rt.sensor.ids
	if len(s.late) > 0 {
		if found, conflict = s.findLate(id, e.gatewayMS(), e.config.LateIdentityMS); found {
			return found, conflict
		}
	}
	if r.ID == "" && r.Source.NS > rt.sensor.newestNS {
		return false, false // the time is part of the identity, and is new
	}
	for i := len(s.groups) - 1; i >= 0; i-- {
		g := &s.groups[i]
		if r.ID == "" && (t < g.lo || t >= g.hi) {
			continue // the time is part of the identity
		}
		b := g.table.find(id)
		if b == 0 {
			continue
		}
		if !rt.sensor.forgets(g.time(b, id, t), r.Value.Kind(), e.config.DuplicateHorizonMS) {
			return true, id.conflicts(b)
		}
	}
	return false, false
}

// forgets is rule D3 for a reading of event time t.
func (s *sensor) forgets(t int64, kind reading.Kind, horizon int64) bool {
	for _, k := range s.keys {
		if k.feature.def.Select.Type.Takes(kind) && !k.comb.forgets(t, horizon) {
			return false
		}
	}
	return true
}

// forgets reports whether the last window that holds t closed at least horizon
// ago in watermark time.
func (c *combiner) forgets(t, horizon int64) bool {
	f := c.feature
	last := f.lastStart(t) + f.def.SizeMS - 1
	return c.closed != reading.NoTime && c.closed >= last+horizon
}

// assign puts the reading into the windows of every feature and lets it vouch for
// the partitions' progress (G1). It reports whether any window was closed.
func (rt *route) assign(r *reading.Reading, t int64) (late bool) {
	s := newSample(r, t)
	vouched := r.Stamp.WatermarkMS
	if vouched > maxTimeMS || r.Delivery.Has(reading.Historical|reading.Rejudged) {
		vouched = reading.NoTime
	}
	for i := range rt.ends {
		n := &rt.ends[i]
		n.p.vouch(vouched)
		if !n.selected || !n.f.def.Select.Type.Takes(r.Value.Kind()) {
			continue
		}
		if n.key(rt).assign(&s) {
			late = true
		}
	}
	return late
}

// assign puts the sample into the key's windows; each pair of reading and window
// counts as windowed, late or excluded (law 5).
func (k *key) assign(s *sample) (late bool) {
	f := k.feature
	if f.def.Excludes(s.r.Stamp.EventBound) {
		f.excluded += uint64((f.lastStart(s.ms)-f.firstStart(s.ms))/f.every) + 1
		return false
	}
	if w := k.cur; w != nil && f.tumbling && w.start <= s.ms && s.ms < w.end && s.ms >= f.engine.config.FloorMS {
		k.add(w, s)
		k.keep(s, true)
		return false
	}
	windowed := false
	last := f.lastStart(s.ms)
	for start := f.firstStart(s.ms); start <= last; start += f.every {
		if reason := k.fate(s.r, s.ms, start+f.def.SizeMS); reason != ReasonNone {
			late = true
			k.late(s, start, reason)
			continue
		}
		windowed = true
		k.cur = k.window(start)
		k.add(k.cur, s)
	}
	k.keep(s, windowed)
	return late
}

// add puts the sample into an open window; a window whose end the watermark has
// passed is corrected at the end of the batch (F2, F7).
func (k *key) add(w *window, s *sample) {
	f := k.feature
	w.accumulator.add(f, s, w.start)
	f.windowed++
	w.dirty, w.carried = true, false
	if !s.r.Delivery.Has(reading.Historical | reading.Rejudged) {
		w.live = true
	} else if s.r.Stamp.Flags&reading.RetroCorrected != 0 {
		w.stepped = true
	}
	if w.end-1 <= k.comb.wm {
		f.engine.touch(w)
	}
	if k.comb.flushAt != never {
		k.comb.flushLater()
	}
}

// late makes late evidence of the pair of sample and window (L4).
func (k *key) late(s *sample, start int64, reason Reason) {
	f := k.feature
	f.late++
	f.engine.emit(Emission{
		Kind: EmitLate, Feature: f.def.ID, Asset: k.name.asset, Lifecycle: k.name.lifecycle, Sensor: k.name.sensor,
		StartMS: start, EndMS: start + f.def.SizeMS, WatermarkMS: k.comb.wm, Reason: reason, Reading: s.r,
	})
}

// quarantine makes evidence of a reading that is kept out.
func (e *Engine) quarantine(r *reading.Reading) Outcome {
	e.emit(Emission{Kind: EmitQuarantine, Reading: r})
	return OutcomeQuarantined
}

// outOfRange is the reading with the verdict of W4.
func (e *Engine) outOfRange(r *reading.Reading) *reading.Reading {
	q := *r
	q.Stamp.Disposition, q.Stamp.Reason = reading.Quarantine, reading.SourceTimeRange
	q.Stamp.EventNS, q.Stamp.WatermarkMS = reading.NoTime, reading.NoTime
	return &q
}
