package gateway

import (
	"maps"
	"math"

	"tidemark/reading"
	"tidemark/windowing"
	"tidemark/windowing/disorder"
)

// measures are what the metrics show beyond the status: since the session's begin,
// gathered by the pipeline's goroutine.
type measures struct {
	commit   *histogram // seconds
	failures uint64     // commits that the store refused, or that failed
	inputs   map[string]*inputMeasures
	features map[string]featureMeasures
}

type inputMeasures struct {
	delay    *histogram // seconds from the source's time to arrival
	heardMS  int64      // gateway time of the latest reading; reading.NoTime before the first
	newestNS int64      // highest event time; reading.NoTime before the first
	order    disorder.Gauge
}

type featureMeasures struct {
	provisional, corrected uint64
	endMS                  int64 // of the newest window with a result
	ratios                 float64
	covered                int // first results of that window, of which ratios is the sum
}

var (
	delayBounds  = []float64{0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}
	commitBounds = []float64{0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5}
)

func newMeasures() *measures {
	return &measures{commit: newHistogram(commitBounds), inputs: map[string]*inputMeasures{}, features: map[string]featureMeasures{}}
}

// clone is for another goroutine.
func (m *measures) clone() *measures {
	c := &measures{commit: m.commit.clone(), failures: m.failures, inputs: map[string]*inputMeasures{}, features: maps.Clone(m.features)}
	for name, in := range m.inputs {
		c.inputs[name] = &inputMeasures{delay: in.delay.clone(), heardMS: in.heardMS, newestNS: in.newestNS}
	}
	return c
}

// input returns the measures of an input, making them.
func (m *measures) input(name string) *inputMeasures {
	in := m.inputs[name]
	if in == nil {
		in = &inputMeasures{delay: newHistogram(delayBounds), heardMS: reading.NoTime, newestNS: reading.NoTime}
		m.inputs[name] = in
	}
	return in
}

// reading notes a reading that was brought at that gateway time. Only what came as
// it was measured tells of delay.
func (in *inputMeasures) reading(r *reading.Reading, gatewayMS int64) {
	if r.Delivery.Has(reading.Rejudged) {
		return
	}
	in.heardMS = gatewayMS
	if r.Delivery != 0 {
		return
	}
	in.order.Add(r)
	if r.Source.Given() {
		in.delay.observe(float64(r.IngestNS-r.Source.NS) / 1e9)
	}
	if r.Stamp.Disposition.Accepted() {
		in.newestNS = max(in.newestNS, r.Stamp.EventNS)
	}
}

// emission notes a result.
func (m *measures) emission(e *windowing.Emission) {
	if e.Kind != windowing.EmitFeature {
		return
	}
	f := m.features[e.Feature.Name]
	if e.Revision > 1 {
		f.corrected++
	} else {
		f.provisional++
	}
	if e.EndMS > f.endMS || f.provisional+f.corrected == 1 {
		f.endMS, f.ratios, f.covered = e.EndMS, 0, 0
	}
	if e.EndMS == f.endMS && e.Revision == 1 && e.Coverage.Expected > 0 {
		f.ratios += float64(e.Coverage.Observed) / float64(e.Coverage.Expected)
		f.covered++
	}
	m.features[e.Feature.Name] = f
}

// coverage is the mean over the sensors of the newest window, NaN if nobody said
// what to expect.
func (f *featureMeasures) coverage() float64 {
	if f.covered == 0 {
		return math.NaN()
	}
	return f.ratios / float64(f.covered)
}
