package disorder

import "tidemark/reading"

// MaxPartitions is how many partitions of a scope are measured, the first that
// come.
const MaxPartitions = 20_000

// maxRoutes bounds what is remembered of series for the sake of speed.
const maxRoutes = 1 << 16

// Scope says what a partition is, as the engine has it (SEMANTICS C0).
type Scope string

// The scopes, in the order of a report.
const (
	ScopeInput  Scope = "input"  // every input
	ScopeDevice Scope = "device" // every (input, device)
	ScopeSensor Scope = "sensor" // every (input, asset, sensor)
)

var scopes = [...]Scope{ScopeInput, ScopeDevice, ScopeSensor}

// Name names a partition; what its scope does not use, or the source does not
// have, is empty.
type Name struct {
	Input  string `json:"input"`
	Device string `json:"device,omitempty"`
	Asset  string `json:"asset,omitempty"`
	Sensor string `json:"sensor,omitempty"`
}

func (s Scope) name(of reading.Series) Name {
	switch s {
	case ScopeDevice:
		return Name{Input: of.Input, Device: of.Device}
	case ScopeSensor:
		return Name{Input: of.Input, Asset: of.Asset, Sensor: of.Sensor}
	}
	return Name{Input: of.Input}
}

// Meter measures readings. It is for one goroutine.
type Meter struct {
	budgets []Budget
	scopes  [len(scopes)]scopeMeter
	routes  map[reading.Tag]route

	readings, outOfRange, withoutIngest, ahead uint64
}

// route is where a series is measured; nil in a scope that had no room.
type route [len(scopes)]*partition

type scopeMeter struct {
	scope      Scope
	partitions map[Name]*partition

	disorder, delay histogram // over all partitions that are measured
	behind          tally
	unmeasured      uint64
}

type partition struct {
	name            Name
	highMS          int64 // NoTime before the first
	disorder, delay histogram
}

// New returns a meter that says what the budgets would have cost. Their durations
// must not be negative.
func New(budgets []Budget) *Meter {
	m := &Meter{budgets: budgets, routes: make(map[reading.Tag]route)}
	asked := thresholds(budgets)
	for i, s := range scopes {
		m.scopes[i] = scopeMeter{scope: s, partitions: make(map[Name]*partition), behind: newTally(asked)}
	}
	return m
}

// Add measures the next reading to arrive. One whose verdict is not to accept it
// has no event time that counts: it is counted as out of range and moves nothing.
func (m *Meter) Add(r *reading.Reading) {
	m.readings++
	if !r.Stamp.Disposition.Accepted() {
		m.outOfRange++
		return
	}
	event := reading.FloorMS(r.Stamp.EventNS)
	delay, timed := delayMS(r)
	switch {
	case !timed:
		m.withoutIngest++
	case delay < 0:
		m.ahead++
	}
	ps := m.route(r.Tag)
	for i := range m.scopes {
		s, p := &m.scopes[i], ps[i]
		if p == nil {
			s.unmeasured++
			continue
		}
		p.highMS = max(p.highMS, event)
		d := p.highMS - event
		p.disorder.add(d)
		s.disorder.add(d)
		s.behind.add(d)
		if timed {
			p.delay.add(delay)
			s.delay.add(delay)
		}
	}
}

// delayMS is ingest − source, rounded down. The difference in nanoseconds need not
// fit into 64 bits.
func delayMS(r *reading.Reading) (ms int64, ok bool) {
	if r.IngestNS == reading.NoTime || !r.Source.Given() {
		return 0, false
	}
	ingest, source := reading.FloorMS(r.IngestNS), reading.FloorMS(r.Source.NS)
	ms = ingest - source
	if r.IngestNS-ingest*1e6 < r.Source.NS-source*1e6 {
		ms--
	}
	return ms, true
}

func (m *Meter) route(tag reading.Tag) route {
	ps, ok := m.routes[tag]
	if ok {
		return ps
	}
	for i := range m.scopes {
		ps[i] = m.scopes[i].partition(tag.Value())
	}
	if len(m.routes) >= maxRoutes {
		clear(m.routes)
	}
	m.routes[tag] = ps
	return ps
}

// partition returns the series' partition, nil if there is no room for another.
func (s *scopeMeter) partition(of reading.Series) *partition {
	name := s.scope.name(of)
	p := s.partitions[name]
	if p == nil && len(s.partitions) < MaxPartitions {
		p = &partition{name: name, highMS: reading.NoTime}
		s.partitions[name] = p
	}
	return p
}
