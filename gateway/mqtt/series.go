package mqtt

import (
	"strings"
	"time"

	"tidemark/reading"
)

// series is a sensor that was met before, with what is known of it.
type series struct {
	name      string // of the sensor, as the source has it
	sensor    int    // in the subscription's Sensors; -1 if not listed
	tags      reading.Tags
	seen      int64 // epoch of the last reading
	forgotten bool  // no longer in the table: to be looked up anew
}

// seriesKey is a series as the source names it.
type seriesKey struct {
	sub                              *subscription
	asset, device, lifecycle, sensor string
}

// seriesTable has the series of an input. They are bounded, because everything
// behind the reader keeps state for each; one that is not heard of for forgetAfter
// makes room.
type seriesTable struct {
	input     string
	assets    map[string]reading.Asset
	maxSeries int
	known     map[seriesKey]*series
	epoch     int64 // forgetAfter each
	swept     int64 // epoch of the last sweep
}

// tooManySeries is the reason of a reading whose series has no room.
const tooManySeries = "too_many_series"

// forgetAfter is at least how long a series is remembered; at most twice that.
const forgetAfter = 24 * time.Hour

func newSeriesTable(cfg Config) seriesTable {
	return seriesTable{input: cfg.Input, assets: cfg.Assets, maxSeries: cfg.MaxSeries, known: map[seriesKey]*series{}}
}

// at tells the time, on the boot line.
func (t *seriesTable) at(bootNS int64) { t.epoch = bootNS / int64(forgetAfter) }

// series returns a series as named by the source, nil if there are too many; the
// strings of k may change afterwards.
func (t *seriesTable) series(k seriesKey) *series {
	if s, ok := t.known[k]; ok {
		return s
	}
	if len(t.known) >= t.maxSeries && !t.sweep() {
		return nil
	}
	k.asset, k.device = strings.Clone(k.asset), strings.Clone(k.device)
	k.lifecycle, k.sensor = strings.Clone(k.lifecycle), strings.Clone(k.sensor)
	s := t.newSeries(k)
	t.known[k] = s
	return s
}

// sweep forgets what was silent for two epochs, once in each, and reports whether
// there is room.
func (t *seriesTable) sweep() bool {
	if t.swept == t.epoch {
		return false
	}
	t.swept = t.epoch
	for k, s := range t.known {
		if s.seen < t.epoch-1 {
			s.forgotten = true
			delete(t.known, k)
		}
	}
	return len(t.known) < t.maxSeries
}

func (t *seriesTable) newSeries(k seriesKey) *series {
	asset := t.assets[k.asset]
	name := reading.Series{Input: t.input, Asset: k.asset, Device: k.device, Lifecycle: k.lifecycle, Sensor: k.sensor}
	s := &series{name: k.sensor, sensor: -1}
	if alias, ok := asset.Aliases[k.sensor]; ok {
		name.Sensor = alias
	}
	if i, ok := k.sub.byName[k.sensor]; ok {
		s.sensor = i
	} else if i, ok := k.sub.byName[name.Sensor]; ok {
		s.sensor = i
	}
	s.tags = reading.TagsOf(name, asset.Lifecycles)
	return s
}
