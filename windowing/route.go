package windowing

import (
	"cmp"
	"slices"

	"tidemark/reading"
)

// route is where the readings of one series go. It is derived from the state and
// found by the reading's tag, so that a reading costs one small map look-up.
type route struct {
	input     *input
	sensor    *sensor
	ends      []routeEnd
	inputHash uint64
	identity  bool
	selected  bool        // by any feature
	room      [1]routeEnd // for the ends, mostly enough
	retention retention
	series    reading.Series
}

// routeEnd is one feature that a series concerns: as part of a partition, and if
// selected as part of a key.
type routeEnd struct {
	f        *feature
	p        *partition
	k        *key // nil until the first reading of the series is assigned
	selected bool
	fed      bool // p has fed k
}

// sensor is what is known of a sensor across features: asset, lifecycle, sensor.
type sensor struct {
	// What every reading needs stands together.
	silent bool
	armed  bool   // in Engine.alarms
	quiet  bool   // in the input's quiet list
	input  *input // that brought its latest reading
	alarm  int64  // alarm_after, 0: silence is no matter
	seen   int64  // gateway time of its latest sign of life
	lastMS int64  // highest event time of an accepted reading
	// newestNS is the highest source time among the remembered readings.
	newestNS int64
	ids      idSet

	name     keyName
	keys     []*key   // that its readings go to
	inputs   []*input // that have brought any
	every    int64    // expect_every, 0 if not configured
	returned int64    // gateway time from which its input spoke again, when both had been silent
	serial   int      // place in Engine.sensorList, while a snapshot is written
}

// input is a source of readings as a whole.
type input struct {
	name   string
	seen   int64     // gateway time of the latest evidence of life
	quiet  []*sensor // whose silence cannot be judged before the input speaks
	serial int       // place in Engine.inputList, while a snapshot is written
}

func (e *Engine) route(tag reading.Tag) *route {
	if r := e.routes.Get(tag); r != nil {
		return r
	}
	s := tag.Value()
	r := &route{
		series: s, inputHash: hashText(s.Input), input: e.input(s.Input),
		identity: !slices.Contains(e.config.NoIdentity, s.Input),
	}
	r.sensor = e.sensor(s, r.input)
	r.ends = r.room[:0]
	for _, f := range e.features {
		if !glob(f.def.Select.Input, s.Input) {
			continue
		}
		end := routeEnd{f: f, p: f.partition(f.partitionKey(s)), selected: f.def.Select.selects(s)}
		r.ends = append(r.ends, end)
		r.selected = r.selected || end.selected
	}
	r.retention = e.retention(r.ends)
	e.routes.Set(tag, r)
	return r
}

// retention has a group last for about a third of the time that an identity is kept:
// few are looked through, and little is kept for longer. Its parts end where windows
// of all features do wherever sixteen parts suffice for that.
func (e *Engine) retention(ends []routeEnd) (r retention) {
	for i := range ends {
		if !ends[i].selected {
			continue
		}
		f := ends[i].f
		if r.width == 0 {
			r.offset = f.def.OffsetMS
		}
		r.part = gcd(gcd(r.part, f.every), f.def.OffsetMS-r.offset)
		kept := f.def.SizeMS + f.def.AllowedLatenessMS + e.config.DuplicateHorizonMS
		r.width = max(r.width, f.def.SizeMS, kept/3)
	}
	if r.width > 0 {
		r.part *= (r.width + 16*r.part - 1) / (16 * r.part)
		r.width += r.part - 1
		r.width -= r.width % r.part
	}
	return r
}

func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return max(a, -a)
}

// partition returns the end's partition, anew if it was forgotten.
func (n *routeEnd) partition(s *reading.Series) *partition {
	if n.p.removed {
		n.p = n.f.partition(n.f.partitionKey(*s))
		n.fed = false
	}
	return n.p
}

// key returns the end's key, fed by the end's partition.
func (n *routeEnd) key(r *route) *key {
	if n.k == nil {
		n.k = n.f.key(r.series)
		if !slices.Contains(r.sensor.keys, n.k) {
			r.sensor.keys = append(r.sensor.keys, n.k)
		}
	}
	if !n.fed {
		n.fed = true
		if !n.k.fedBy(n.p) {
			n.k.feed(n.p)
		}
	}
	return n.k
}

// sensor returns the sensor of a series that the input brings.
func (e *Engine) sensor(s reading.Series, in *input) *sensor {
	name := keyName{asset: s.Asset, sensor: s.Sensor, lifecycle: s.Lifecycle}
	x := e.sensors[name]
	if x == nil {
		x = e.addSensor(name)
	}
	if !slices.Contains(x.inputs, in) {
		x.inputs = append(x.inputs, in)
		before := x.alarm
		e.expectOf(x)
		if x.armed && x.alarm < before {
			e.arm(x) // the later deadline will find that it no longer holds
		}
	}
	return x
}

func (e *Engine) addSensor(name keyName) *sensor {
	x := &sensor{name: name, seen: reading.NoTime, returned: reading.NoTime, lastMS: reading.NoTime, newestNS: reading.NoTime}
	e.sensors[name] = x
	e.sensorList = append(e.sensorList, x)
	return x
}

func (e *Engine) input(name string) *input {
	if in := e.inputs[name]; in != nil {
		return in
	}
	in := &input{name: name, seen: reading.NoTime}
	e.inputs[name] = in
	e.inputList = append(e.inputList, in)
	return in
}

// name returns the one named of a keyName.
func (e *Engine) name(k keyName) *named {
	if n := e.names[k]; n != nil {
		return n
	}
	n := &named{keyName: k}
	e.names[k] = n
	e.unranked = append(e.unranked, n)
	return n
}

// rank brings the order of names up to date.
func (e *Engine) rank() {
	if len(e.unranked) == 0 {
		return
	}
	byName := func(a, b *named) int { return a.compare(b.keyName) }
	slices.SortFunc(e.unranked, byName)
	merged := make([]*named, 0, len(e.ranked)+len(e.unranked))
	old := e.ranked
	for _, n := range e.unranked {
		for len(old) > 0 && byName(old[0], n) < 0 {
			merged, old = append(merged, old[0]), old[1:]
		}
		merged = append(merged, n)
	}
	e.ranked = append(merged, old...)
	e.unranked = nil
	for i, n := range e.ranked {
		n.rank = uint32(i)
	}
}

// compareWindows orders windows by end, asset, sensor, lifecycle, feature.
func compareWindows(a, b *window) int {
	return cmp.Or(cmp.Compare(a.end, b.end), cmp.Compare(a.key.name.rank, b.key.name.rank),
		cmp.Compare(a.key.feature.index, b.key.feature.index))
}
