package windowing

import (
	"crypto/sha256"
	"fmt"

	"tidemark/reading"
)

// This file is for those who look at an engine from outside. Nothing in it changes
// one.

// Selects reports whether the feature takes readings of the series, whatever their
// values are.
func (f *Feature) Selects(s reading.Series) bool { return f.Select.selects(s) }

// Refuses says why the engine would not run the feature, empty if it would: its
// version has stood for another definition.
func (e *Engine) Refuses(def *Feature) string {
	d := e.knownAs(def.ID)
	if d == nil || d.definition == def.ID.Definition && (d.shape == 0 || d.shape == def.shape()) {
		return ""
	}
	return fmt.Sprintf("the definition of %s version %d has changed from %08x to %08x: raise its version to %d",
		d.name, d.version, d.definition, def.ID.Definition, e.nextVersion(d.name))
}

// Excludes reports whether a reading's time is too uncertain for the feature's
// windows (part 2, Disposition 7). A stored bound is up to √2 of the exact one: what
// may still be sure enough is let in, as it was by the clock, which knew the exact
// one, where this is the largest window.
func (f *Feature) Excludes(b reading.Bound) bool {
	return b.Known() && (b-1).NS() >= (f.SizeMS*1e6+1)/2
}

// Every is the distance of window starts.
func (f *Feature) Every() int64 {
	if f.EveryMS == 0 {
		return f.SizeMS
	}
	return f.EveryMS
}

// WindowAt returns the latest window [start, end) that holds the event time t.
func (f *Feature) WindowAt(t int64) (start, end int64) {
	start = t - floorMod(t-f.OffsetMS, f.Every())
	return start, start + f.SizeMS
}

// Progress is how far a key of a feature has come: its combined watermark, NoTime
// before the first, and the partitions that it is taken over. It reports false for
// a feature that is not in force, or a key that has none of its own yet.
func (e *Engine) Progress(feature, asset, lifecycle, sensor string) (watermarkMS int64, inputs InputSummary, ok bool) {
	for _, f := range e.features {
		if f.def.ID.Name != feature {
			continue
		}
		c := f.all
		if c == nil {
			k := f.keys[keyName{asset: asset, lifecycle: lifecycle, sensor: sensor}]
			if k == nil {
				return reading.NoTime, InputSummary{}, false
			}
			c = k.comb
		}
		return c.wm, c.summary(), true
	}
	return reading.NoTime, InputSummary{}, false
}

// OpenWindow is a window that still takes readings.
type OpenWindow struct {
	StartMS, EndMS int64
	Results        uint32 // so far; 0: it waits for its watermark
}

// Open calls fn with the open windows of each key, by their start, until it returns
// false. The slice is fn's until it returns.
func (e *Engine) Open(fn func(feature FeatureID, asset, lifecycle, sensor string, open []OpenWindow) bool) {
	var open []OpenWindow
	for _, f := range e.features {
		for _, k := range f.list {
			open = open[:0]
			for _, w := range k.windows {
				open = append(open, OpenWindow{w.start, w.end, w.rev})
			}
			if len(open) > 0 && !fn(f.def.ID, k.name.asset, k.name.lifecycle, k.name.sensor, open) {
				return
			}
		}
	}
}

// Silent calls fn with every sensor that has fallen silent: the input that brought its
// latest reading, its name, and for how long nothing has come by gateway time.
func (e *Engine) Silent(fn func(input, asset, lifecycle, sensor string, quietMS int64)) {
	for _, s := range e.sensorList {
		if s.silent {
			fn(s.input.name, s.name.asset, s.name.lifecycle, s.name.sensor, e.now-s.seen)
		}
	}
}

// Digest is what the journal keeps of a step's emissions (law 2).
func (o *Output) Digest() [8]byte {
	h := sha256.New()
	var buf []byte
	for i := range o.Emissions {
		buf = AppendEmission(buf[:0], &o.Emissions[i])
		h.Write(buf)
	}
	return [8]byte(h.Sum(nil))
}
