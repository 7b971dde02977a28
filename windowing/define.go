package windowing

import (
	"bytes"
	"slices"

	"tidemark/reading"
)

// definition is one that was in force at some time. A version's definition never
// changes: what was published under it would mean two things.
type definition struct {
	name       string
	version    int
	definition uint32
	shape      uint64 // hash of everything here that is not tuning; 0 if not known
	// retiredEnd is the highest end of a window it had when it was last retired:
	// brought back, it does not count revisions of those windows anew.
	retiredEnd               int64
	windowed, late, excluded uint64
}

// reconfigure applies an encoded configuration.
func (e *Engine) reconfigure(encoded []byte) {
	if bytes.Equal(encoded, e.encoded) {
		return
	}
	c, err := DecodeConfig(encoded)
	if err != nil {
		e.out.Faults = append(e.out.Faults, Fault{Reason: err.Error()})
		return
	}
	e.configure(c)
}

// configure puts c in force: unchanged definitions go on with their state, others
// retire.
func (e *Engine) configure(c *Config) {
	old := e.features
	e.config, e.encoded = *c, AppendConfig(nil, c)
	e.features, e.disabled = nil, nil
	e.routes.Clear()
	var fresh []*feature
	for i := range c.Features {
		def := c.Features[i]
		fault := e.define(&def)
		if fault != "" {
			e.disabled = append(e.disabled, Fault{Feature: def.ID, Reason: fault})
			continue
		}
		f := e.adopt(&old, &def)
		if f == nil {
			f = newFeature(e, def)
			fresh = append(fresh, f)
		}
		f.index = i
		e.features = append(e.features, f)
	}
	e.retire(old)
	for _, f := range fresh {
		d := e.knownAs(f.def.ID)
		f.retiredEnd, f.windowed, f.late, f.excluded = d.retiredEnd, d.windowed, d.late, d.excluded
	}
	e.retune()
	e.expect()
	e.out.Faults = append(e.out.Faults, e.disabled...)
}

// adopt takes the feature of the same definition out of old and gives it its new
// tuning; nil if there is none. Of another scope its state is of no use: what spoke
// for progress then does not now.
func (e *Engine) adopt(old *[]*feature, def *Feature) *feature {
	i := slices.IndexFunc(*old, func(f *feature) bool {
		return f.def.ID.Name == def.ID.Name && f.def.ID.Version == def.ID.Version && f.def.Scope == def.Scope
	})
	if i < 0 {
		return nil
	}
	f := (*old)[i]
	*old = slices.Delete(slices.Clone(*old), i, i+1)
	f.tune(*def)
	f.rewatch()
	return f
}

// define looks the definition up among the known ones, and adds it.
func (e *Engine) define(def *Feature) (fault string) {
	d := e.knownAs(def.ID)
	if d == nil {
		e.known = append(e.known, definition{
			name: def.ID.Name, version: def.ID.Version, definition: def.ID.Definition, shape: def.shape(), retiredEnd: reading.NoTime,
		})
		return ""
	}
	if d.shape == 0 {
		d.shape = def.shape()
	}
	return e.Refuses(def)
}

// knownAs is the definition that bears the name and version of id; nil if none does.
func (e *Engine) knownAs(id FeatureID) *definition {
	i := slices.IndexFunc(e.known, func(d definition) bool { return d.name == id.Name && d.version == id.Version })
	if i < 0 {
		return nil
	}
	return &e.known[i]
}

func (e *Engine) nextVersion(name string) int {
	next := 1
	for i := range e.known {
		if e.known[i].name == name {
			next = max(next, e.known[i].version+1)
		}
	}
	return next
}

// shape hashes what is not tuning.
func (f *Feature) shape() uint64 {
	s := *f
	s.ID = FeatureID{}
	s.OutOfOrdernessMS, s.AllowedLatenessMS, s.IdleAfterMS = 0, 0, 0
	s.FlushAfterMS, s.CorrectEveryMS, s.MaxLagMS, s.Scope = 0, 0, 0, ScopeInput
	var w wire
	w.feature(&s)
	return hashText(string(w.buf))
}

// retune lets what follows from other tuning happen at once: windows that a
// shorter lateness closes (L1), corrections that correct_every no longer puts off.
func (e *Engine) retune() {
	e.advanced = e.advanced[:0]
	for _, f := range e.features {
		for _, c := range f.combiners() {
			if c.wm != reading.NoTime {
				e.advanced = append(e.advanced, c)
			}
		}
	}
	e.fall()
	clear(e.advanced)
	for e.spaced.first() != nil {
		w := e.spaced.pop()
		w.until = reading.NoTime
		if w.dirty && !w.closed {
			e.touch(w)
		}
	}
}

// retire closes the windows of definitions that are no longer in force.
func (e *Engine) retire(old []*feature) {
	if len(old) == 0 {
		return
	}
	e.rank()
	var windows []*window
	for _, f := range old {
		d := e.knownAs(f.def.ID)
		d.windowed, d.late, d.excluded = f.windowed, f.late, f.excluded
		d.retiredEnd = max(d.retiredEnd, f.retiredEnd)
		for _, k := range f.list {
			d.retiredEnd = max(d.retiredEnd, k.forced)
			if k.comb.closed != reading.NoTime {
				d.retiredEnd = max(d.retiredEnd, k.comb.closed+1)
			}
			for _, w := range k.windows {
				d.retiredEnd = max(d.retiredEnd, w.end)
			}
			windows = append(windows, k.windows...)
		}
		for _, x := range e.sensorList {
			x.keys = slices.DeleteFunc(x.keys, func(k *key) bool { return k.feature == f })
		}
	}
	slices.SortFunc(windows, compareWindows)
	for _, w := range windows {
		e.closing(w, ReasonRetired)
	}
	for _, w := range windows {
		w.dirty = false
	}
}

// expect renews what is expected of the known sensors.
func (e *Engine) expect() {
	e.alarms.reset()
	for _, s := range e.sensorList {
		e.expectOf(s)
		s.armed = false
		if !s.quiet {
			e.arm(s)
		}
	}
}

// expectOf looks up what is expected of a sensor: the first expectation that
// selects it by any of the inputs that have brought its readings, so that their
// order does not matter.
func (e *Engine) expectOf(s *sensor) {
	s.every, s.alarm = 0, 0
	for i := range e.config.Expectations {
		x := &e.config.Expectations[i]
		for _, in := range s.inputs {
			if x.Select.selects(reading.Series{Input: in.name, Asset: s.name.asset, Sensor: s.name.sensor, Lifecycle: s.name.lifecycle}) {
				s.every, s.alarm = x.EveryMS, x.AlarmAfterMS
				return
			}
		}
	}
}

// tidyMS is how often, in gateway time, the engine looks for what it can forget.
const tidyMS = 60_000

// tidy forgets identities whose time has come and partitions that have not been
// heard of for forget_after. When it does so cannot be seen from outside: what is
// out of date counts as forgotten before.
func (e *Engine) tidy() {
	if e.now == reading.NoTime || e.now < e.tidyAt {
		return
	}
	e.tidyAt = e.now + tidyMS
	for _, s := range e.sensorList {
		s.ids.dropGroups(s.outdated(e.config.DuplicateHorizonMS))
		s.ids.dropLate(e.gatewayMS(), e.config.LateIdentityMS)
	}
	if e.config.ForgetAfterMS == 0 {
		return
	}
	for _, f := range e.features {
		if f.def.Scope == ScopeInput {
			continue
		}
		for _, p := range slices.Clone(f.parts) {
			if p.seen != reading.NoTime && e.now-p.seen > e.config.ForgetAfterMS && !p.spoke && !p.catchUp {
				f.drop(p)
			}
		}
	}
}

// outdated tells which groups of the sensor's identities all its keys have
// forgotten (D3).
func (s *sensor) outdated(horizon int64) func(*idGroup) bool {
	return func(g *idGroup) bool {
		return !slices.ContainsFunc(s.keys, func(k *key) bool { return !k.comb.forgets(g.hi-1, horizon) })
	}
}
