package windowing

import (
	"cmp"
	"strings"

	"tidemark/reading"
)

// mark applies an event in the life of partitions to every feature that it
// concerns, and lets the watermarks follow where they may move at once (C11).
func (e *Engine) mark(m *reading.Mark) {
	if m.Kind == reading.MarkActive {
		e.inputAlive(m.Input)
	}
	for _, f := range e.features {
		if !glob(f.def.Select.Input, m.Input) {
			continue
		}
		for _, p := range f.named(m) {
			f.mark(p, m, e.now, e.config.Explicit)
		}
	}
	switch m.Kind {
	case reading.MarkWatermark, reading.MarkIdle, reading.MarkActive:
		e.correct()
		e.retake()
	}
}

// named returns the partitions that a mark is about. What names less than a
// partition, such as a device's will in scope input, is evidence of life only.
func (f *feature) named(m *reading.Mark) []*partition {
	narrow, exact := false, false
	switch f.def.Scope {
	case ScopeInput:
		narrow = m.Device != "" || m.Asset != "" || m.Sensor != ""
		exact = true
	case ScopeDevice:
		exact = m.Device != ""
		narrow = !exact && (m.Asset != "" || m.Sensor != "")
	case ScopeSensor:
		exact = m.Sensor != ""
	}
	if narrow && m.Kind != reading.MarkActive {
		return nil
	}
	if exact {
		return f.exactly(m)
	}
	var some []*partition
	for _, p := range f.parts {
		if p.input == m.Input && (m.Device == "" || p.via == m.Device) &&
			(m.Asset == "" || f.def.Scope != ScopeSensor || p.asset == m.Asset) {
			some = append(some, p)
		}
	}
	if len(some) == 0 && m.Device == "" && m.Asset == "" {
		switch m.Kind { // the operations of a trace that knows no devices
		case reading.MarkWatermark, reading.MarkIdle, reading.MarkActive:
			some = append(some, f.partition(partitionKey{input: m.Input}))
		}
	}
	return some
}

func (f *feature) exactly(m *reading.Mark) []*partition {
	k := f.partitionKey(reading.Series{Input: m.Input, Device: m.Device, Asset: m.Asset, Sensor: m.Sensor})
	p := f.partitions[k]
	if p == nil {
		if m.Kind == reading.MarkRemove {
			return nil
		}
		p = f.partition(k)
	}
	return []*partition{p}
}

// mark applies a mark to one partition.
func (f *feature) mark(p *partition, m *reading.Mark, now int64, explicit bool) {
	switch m.Kind {
	case reading.MarkRemove:
		f.drop(p)
	case reading.MarkWatermark:
		p.gone = false
		p.quietly(false)
		p.raise(min(m.TimeMS, maxTimeMS))
	case reading.MarkIdle:
		p.gone = !explicit
		p.setIdle(true, now)
		p.touch()
		f.lost(p, m.TimeMS)
	case reading.MarkActive:
		p.setIdle(false, now)
		p.touch()
		p.gone = false
		if !explicit {
			p.alive()
			if m.TimeMS != reading.NoTime && !p.catchUp && m.TimeMS <= maxTimeMS {
				p.vouch(m.TimeMS)
			}
		}
	case reading.MarkCatchUpBegin:
		p.setCatchUp(true)
		p.setIdle(false, now)
		p.alive()
	case reading.MarkCatchUpEnd:
		p.setCatchUp(false)
		p.alive()
	}
}

// quietly changes the status without taking the minimum anew: an explicit
// watermark that is not higher only makes its partition active (C11).
func (p *partition) quietly(idle bool) {
	if p.idle == idle {
		return
	}
	p.idle = idle
	p.settleLater()
}

// setCatchUp changes whether the partition catches up. Who catches up is not
// stalled (C10), so that the minimum is taken anew at the next emission.
func (p *partition) setCatchUp(on bool) {
	if p.catchUp == on {
		return
	}
	p.catchUp = on
	p.settleLater()
}

// settleLater has everything that was taken over the partition taken anew at the
// next emission.
func (p *partition) settleLater() {
	for _, c := range p.combiners {
		p.feature.retakeLater(c)
		c.changed()
	}
}

func comparePartitions(a, b *partition) int {
	return cmp.Or(cmp.Compare(a.wm, b.wm), strings.Compare(a.input, b.input), strings.Compare(a.device, b.device),
		strings.Compare(a.asset, b.asset), strings.Compare(a.sensor, b.sensor))
}

// Advances reports whether evidence of life up to ms (NoTime: of life alone) would
// change a partition's status, or take it past where a window may end or close,
// whether or not there is one. Evidence that does not may wait for whatever is
// stepped next.
func (e *Engine) Advances(input string, ms int64) bool {
	for _, f := range e.features {
		if !glob(f.def.Select.Input, input) {
			continue
		}
		for _, p := range f.parts {
			if p.input == input && (p.idle || p.gone || f.crosses(p, ms)) {
				return true
			}
		}
	}
	return false
}

// crosses reports whether a window ends or closes between what p has reached and
// ms.
func (f *feature) crosses(p *partition, ms int64) bool {
	if p.catchUp || ms == reading.NoTime || ms <= p.newest {
		return false
	}
	if p.newest == reading.NoTime {
		return true
	}
	for _, late := range [...]int64{0, f.def.AllowedLatenessMS} {
		// The watermark reaches a window at end − 1, and lies B + 1 behind the newest.
		first := f.def.OffsetMS + f.def.SizeMS + f.def.OutOfOrdernessMS + late
		if p.newest-floorMod(p.newest-first, f.every) < ms-floorMod(ms-first, f.every) {
			return true
		}
	}
	return false
}
