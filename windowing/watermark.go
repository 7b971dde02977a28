package windowing

import (
	"math"
	"slices"

	"tidemark/reading"
)

// never is a time that does not come.
const never int64 = math.MaxInt64

// partitionKey names a partition within its feature's scope: input, input and
// device, or input, asset and sensor.
type partitionKey struct{ input, device, asset, sensor string }

func (f *feature) partitionKey(s reading.Series) partitionKey {
	switch f.def.Scope {
	case ScopeDevice:
		return partitionKey{input: s.Input, device: s.Device}
	case ScopeSensor:
		return partitionKey{input: s.Input, asset: s.Asset, sensor: s.Sensor}
	}
	return partitionKey{input: s.Input}
}

// partition is a source of progress (C0). All times are milliseconds.
type partition struct {
	partitionKey
	feature *feature
	via     string // device of the latest reading, for wills in scope sensor
	serial  int    // place in feature.parts, while a snapshot is written

	wm     int64 // emitted watermark; NoTime is minus infinity (C2)
	newest int64 // highest event time that it may vouch for
	seen   int64 // gateway time of the last emission that found it alive; NoTime before the first (I1)
	since  int64 // gateway time from which it is idle

	idle    bool
	gone    bool // evidence that it is gone, until it speaks (I7)
	spoke   bool // since the last emission
	catchUp bool // G4
	removed bool // a route that holds it must find another
	queued  bool // in feature.spoken
	waiting bool // in feature.idlers

	combiners []*combiner
}

// partition returns the feature's partition of that name, making it (C8).
func (f *feature) partition(k partitionKey) *partition {
	if p := f.partitions[k]; p != nil {
		return p
	}
	p := &partition{partitionKey: k, feature: f, wm: reading.NoTime, newest: reading.NoTime, seen: reading.NoTime, since: reading.NoTime}
	f.partitions[k] = p
	f.parts = append(f.parts, p)
	if f.def.Scope == ScopeInput {
		f.all.attach(p)
	}
	f.visit(p)
	return p
}

// drop forgets a partition; the minimum is taken anew at the next emission (C8).
func (f *feature) drop(p *partition) {
	p.removed = true
	delete(f.partitions, p.partitionKey)
	f.parts = slices.DeleteFunc(f.parts, func(q *partition) bool { return q == p })
	for _, c := range p.combiners {
		c.detach(p)
	}
	p.combiners = nil
	if f.all != nil && f.holdNS > 0 {
		for _, k := range f.list {
			k.forget(p)
		}
	}
}

// visit has the next emission look at p.
func (f *feature) visit(p *partition) {
	if !p.queued {
		p.queued = true
		f.spoken = append(f.spoken, p)
	}
}

// retakeLater has the minimum taken anew at the next emission.
func (f *feature) retakeLater(c *combiner) {
	if !c.queued {
		c.queued = true
		f.stale = append(f.stale, c)
	}
}

// retakeNow has the minimum taken anew at the end of the mark or emission (C11).
func (f *feature) retakeNow(c *combiner) {
	if !c.urgent {
		c.urgent = true
		f.urgent = append(f.urgent, c)
	}
}

// alive takes evidence of life (I7); the status changes at the next emission (C5).
func (p *partition) alive() {
	p.spoke, p.gone = true, false
	if !p.queued {
		p.feature.visit(p)
	}
}

// vouch takes an event time up to which the partition is complete but for its
// disorder (G1).
func (p *partition) vouch(ms int64) {
	if ms > p.newest {
		p.newest = ms
	}
}

// setIdle changes the status; since is the gateway time from which it holds.
func (p *partition) setIdle(idle bool, since int64) {
	if idle == p.idle {
		return
	}
	p.idle, p.since = idle, since
	p.touch()
}

// raise sets a watermark if it is strictly higher (C1).
func (p *partition) raise(ms int64) {
	if ms > p.wm {
		p.wm = ms
		p.touch()
	}
}

func (p *partition) touch() {
	for _, c := range p.combiners {
		p.feature.retakeNow(c)
		c.changed()
	}
}

// emit is the periodic emission (G2): what was seen moves the partitions'
// watermarks, silence makes them idle. It reads gateway time now, NoTime if there
// is none yet: then nothing is idle.
func (f *feature) emit(now int64, explicit bool) {
	if explicit {
		f.clearSpoken()
		return // only marks move watermarks and status (I5)
	}
	waiting := f.spoken
	f.spoken = f.spokenSpare[:0]
	for _, p := range waiting {
		p.queued = false
		if !p.removed {
			f.settle(p, now)
		}
	}
	clear(waiting)
	f.spokenSpare = waiting
	f.expire(now)
}

func (f *feature) clearSpoken() {
	for _, p := range f.spoken {
		p.queued, p.spoke = false, false
	}
	clear(f.spoken)
	f.spoken = f.spoken[:0]
}

// settle brings one partition up to date at an emission.
func (f *feature) settle(p *partition, now int64) {
	if now == reading.NoTime {
		f.visit(p) // whether it lives is asked again once there is a time
	} else if p.spoke || p.seen == reading.NoTime {
		p.seen, p.spoke = now, false
		f.watch(p)
	}
	if !p.gone {
		idle := f.silent(p, now)
		if p.idle && !idle && p.seen != reading.NoTime {
			f.watch(p)
		}
		p.setIdle(idle, p.seen+f.def.IdleAfterMS+1)
	}
	if !p.catchUp && p.newest != reading.NoTime {
		p.raise(p.newest - f.def.OutOfOrdernessMS - 1)
	}
}

// silent is rule I1.
func (f *feature) silent(p *partition, now int64) bool {
	return f.def.IdleAfterMS > 0 && !p.catchUp && now != reading.NoTime && p.seen != reading.NoTime &&
		now-p.seen > f.def.IdleAfterMS
}

// watch has the partition looked at when it will have been silent for too long.
func (f *feature) watch(p *partition) {
	if f.def.IdleAfterMS > 0 && !p.waiting {
		p.waiting = true
		f.idlers.push(f.idleAt(p), p)
	}
}

func (f *feature) idleAt(p *partition) int64 { return p.seen + f.def.IdleAfterMS + 1 }

// expire makes idle whoever has been silent for too long.
func (f *feature) expire(now int64) {
	if now == reading.NoTime {
		return
	}
	for d := f.idlers.first(); d != nil && d.at <= now; d = f.idlers.first() {
		p := d.item
		if at := f.idleAt(p); !p.removed && !p.idle && at > now {
			f.idlers.postpone(at)
			continue
		}
		f.idlers.pop()
		p.waiting = false
		if !p.removed && !p.idle {
			if p.catchUp {
				continue // it is watched again when it has caught up
			}
			p.setIdle(true, f.idleAt(p))
		}
	}
}

// nextIdle returns the gateway time at which silence next makes a partition idle.
func (f *feature) nextIdle() int64 {
	for d := f.idlers.first(); d != nil; d = f.idlers.first() {
		p := d.item
		switch at := f.idleAt(p); {
		case p.removed || p.idle || p.catchUp:
			f.idlers.pop()
			p.waiting = false
		case at > d.at:
			f.idlers.postpone(at)
		default:
			return at
		}
	}
	return never
}
