package windowing

import (
	"tidemark/reading"
)

// feature is one definition at work.
type feature struct {
	engine *Engine
	index  int // in the configuration
	def    Feature

	// Derived from def.
	every    int64
	tumbling bool
	lo, hi   int64 // event times whose windows and cleanup stay in range (W4)
	holdNS   int64 // 0: nothing is carried in
	funcs    []function
	need     needs

	partitions map[partitionKey]*partition
	parts      []*partition // in order of coming into being
	all        *combiner    // scope input: of every key

	spoken, spokenSpare []*partition // to be settled at the next emission
	stale               []*combiner  // to be taken anew at the next emission
	urgent              []*combiner  // to be taken anew now
	idlers              deadlines[*partition]
	flushes             deadlines[*combiner]

	keys     map[keyName]*key
	list     []*key // in order of coming into being
	siblings map[[2]string][]*key

	windowed, late, excluded uint64
	retiredEnd               int64 // windows ending at or before it closed when the definition was retired once
}

func newFeature(e *Engine, def Feature) *feature {
	f := &feature{
		engine:     e,
		partitions: make(map[partitionKey]*partition),
		keys:       make(map[keyName]*key),
		retiredEnd: reading.NoTime,
	}
	f.tune(def)
	if f.holdNS > 0 {
		f.siblings = make(map[[2]string][]*key)
	}
	if def.Scope == ScopeInput {
		f.all = newCombiner(f, nil)
	}
	return f
}

// tune sets the definition; what differs from the one before is tuning.
func (f *feature) tune(def Feature) {
	f.def = def
	f.every = def.EveryMS
	if f.every == 0 {
		f.every = def.SizeMS
	}
	f.tumbling = f.every == def.SizeMS
	f.holdNS = def.MaxHoldMS * 1e6
	reach := def.SizeMS + def.AllowedLatenessMS + f.engine.config.DuplicateHorizonMS + def.OutOfOrdernessMS + def.MaxHoldMS + 1
	f.lo, f.hi = minTimeMS+reach, maxTimeMS-reach
	f.funcs, f.need = f.funcs[:0:0], needs{}
	for _, name := range def.Functions {
		fn, _ := parseFunction(name) // validated
		f.funcs = append(f.funcs, fn)
		f.need.add(fn)
	}
	if f.holdNS > 0 {
		f.need.samples, f.need.order = true, true
	}
}

// rewatch renews the deadlines after the tuning changed, and has the next emission
// look at every partition.
func (f *feature) rewatch() {
	f.idlers.reset()
	for _, p := range f.parts {
		p.waiting = false
		if !p.idle && p.seen != reading.NoTime {
			f.watch(p)
		}
		f.visit(p)
	}
	for _, c := range f.combiners() {
		f.retakeLater(c)
		c.changed()
	}
}

// combiners lists the feature's combiners.
func (f *feature) combiners() []*combiner {
	if f.all != nil {
		return []*combiner{f.all}
	}
	list := make([]*combiner, len(f.list))
	for i, k := range f.list {
		list[i] = k.comb
	}
	return list
}

// key returns the feature's key for a series, making it.
func (f *feature) key(s reading.Series) *key {
	name := f.keyName(s)
	if k := f.keys[name]; k != nil {
		return k
	}
	return f.addKey(name)
}

func (f *feature) keyName(s reading.Series) keyName {
	name := keyName{asset: s.Asset, sensor: s.Sensor, lifecycle: s.Lifecycle}
	if f.def.Group != "" {
		name.sensor = f.def.Group
		if !f.def.GroupPerAsset {
			name.asset, name.lifecycle = "", ""
		}
	}
	return name
}

func (f *feature) addKey(name keyName) *key {
	k := &key{feature: f, name: f.engine.name(name), comb: f.all, forced: reading.NoTime}
	if k.comb == nil {
		k.comb = newCombiner(f, k)
	}
	if f.def.Group == "" {
		k.sensor = f.engine.sensors[name]
	}
	f.keys[name] = k
	f.list = append(f.list, k)
	if f.siblings != nil && f.def.Group == "" {
		place := [2]string{name.asset, name.sensor}
		f.siblings[place] = append(f.siblings[place], k)
	}
	return k
}

// feed makes p one of the partitions of the key (C0).
func (k *key) feed(p *partition) {
	if k.feature.all == nil {
		k.comb.attach(p)
	} else if k.feature.holdNS > 0 {
		k.feeders = append(k.feeders, p)
	}
}

// fedBy reports whether p has fed the key.
func (k *key) fedBy(p *partition) bool {
	parts := k.feeders
	if k.feature.all == nil {
		parts = k.comb.parts
	} else if k.feature.holdNS == 0 {
		return true
	}
	for _, q := range parts {
		if p == q {
			return true
		}
	}
	return false
}
