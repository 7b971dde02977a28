package windowing_test

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tidemark/reading"
	"tidemark/windowing"
)

// twinDefinition is a version of a feature that was in force at some time.
type twinDefinition struct {
	id, shape string
	retired   int64
	counts    [3]int
}

// twinSensor is what is known of a sensor apart from windows.
type twinSensor struct {
	name           [3]string // asset, sensor, lifecycle
	input          string
	inputs         map[string]bool
	seen, returned int64
	last           int64
	silent, quiet  bool
}

func (w *twin) reconfigure(encoded []byte) {
	if bytes.Equal(encoded, w.encoded) {
		return
	}
	c, err := windowing.DecodeConfig(encoded)
	if err != nil {
		panic(err)
	}
	w.configure(*c)
}

// configure puts c in force: unchanged definitions go on, others retire.
func (w *twin) configure(c windowing.Config) {
	old := w.features
	w.config, w.encoded, w.features, w.disabled = c, windowing.AppendConfig(nil, &c), nil, 0
	fresh := map[*twinFeature]*twinDefinition{}
	for i, def := range c.Features {
		d, ok := w.define(def)
		if !ok {
			w.disabled++
			w.faults = append(w.faults, def.ID.Name)
			continue
		}
		at := slices.IndexFunc(old, func(f *twinFeature) bool {
			return f.def.ID.Name == def.ID.Name && f.def.ID.Version == def.ID.Version && f.def.Scope == def.Scope
		})
		var f *twinFeature
		if at >= 0 {
			f = old[at]
			old = slices.Delete(slices.Clone(old), at, at+1)
		} else {
			f = &twinFeature{}
			fresh[f] = d
			f.all = f.newKey()
		}
		f.index, f.def = i, def
		if def.EveryMS == 0 {
			f.def.EveryMS = def.SizeMS
		}
		w.features = append(w.features, f)
	}
	w.retire(old)
	for f, d := range fresh {
		f.retired, f.counts = d.retired, d.counts
	}
	w.fall() // what a shorter lateness closes
}

func shapeOf(f windowing.Feature) string {
	f.ID.Tuning, f.ID.Definition = 0, 0
	f.OutOfOrdernessMS, f.AllowedLatenessMS, f.IdleAfterMS, f.FlushAfterMS, f.CorrectEveryMS, f.MaxLagMS, f.Scope = 0, 0, 0, 0, 0, 0, 0
	return fmt.Sprint(f)
}

func (w *twin) define(def windowing.Feature) (*twinDefinition, bool) {
	id, shape := fmt.Sprint(def.ID.Name, "@", def.ID.Version), shapeOf(def)
	for _, d := range w.known {
		if d.id == id {
			return d, d.shape == shape
		}
	}
	d := &twinDefinition{id: id, shape: shape, retired: reading.NoTime}
	w.known = append(w.known, d)
	return d, true
}

func (w *twin) retire(old []*twinFeature) {
	var open []*twinWindow
	for _, f := range old {
		d := w.known[slices.IndexFunc(w.known, func(d *twinDefinition) bool { return d.id == fmt.Sprint(f.def.ID.Name, "@", f.def.ID.Version) })]
		d.counts, d.retired = f.counts, max(d.retired, f.retired)
		for _, k := range f.keys {
			if k.state().closed != reading.NoTime {
				d.retired = max(d.retired, k.state().closed+1)
			}
		}
		for _, win := range f.windows {
			if !win.closed {
				open = append(open, win)
				d.retired = max(d.retired, win.end)
			}
		}
	}
	slices.SortStableFunc(open, func(a, b *twinWindow) int {
		switch {
		case windowBefore(a, b):
			return -1
		case windowBefore(b, a):
			return 1
		}
		return 0
	})
	for _, win := range open {
		w.close(win, "retired")
	}
}

func (w *twin) sensor(s reading.Series) *twinSensor {
	name := [3]string{s.Asset, s.Sensor, s.Lifecycle}
	for _, x := range w.sensors {
		if x.name == name {
			return x
		}
	}
	x := &twinSensor{name: name, inputs: map[string]bool{}, seen: reading.NoTime, returned: reading.NoTime, last: reading.NoTime}
	w.sensors = append(w.sensors, x)
	return x
}

func (w *twin) expectation(s *twinSensor) windowing.Expectation {
	for _, x := range w.config.Expectations {
		if (x.Select.Input == "" || s.inputs[x.Select.Input]) && (x.Select.Sensor == "" || x.Select.Sensor == s.name[1]) {
			return x
		}
	}
	return windowing.Expectation{}
}

// alive notes that an input spoke: whoever was silent together with it has its
// alarm_after anew.
func (w *twin) alive(input string) {
	w.inputs[input] = w.now
	for _, s := range w.sensors {
		if s.quiet && s.input == input {
			s.quiet, s.returned = false, w.now
		}
	}
}

func (w *twin) speaks(s *twinSensor, input string) {
	if s.silent {
		s.silent = false
		w.say("resumed %v last %d quiet %d clock %v", s.name, s.last, w.now-s.seen, w.clock)
	}
	s.seen, s.input, s.quiet, s.inputs[input] = w.now, input, false, true
}

// silences says who has been silent for too long although its input is alive.
func (w *twin) silences() {
	sensors := slices.Clone(w.sensors)
	slices.SortFunc(sensors, func(a, b *twinSensor) int {
		return cmp.Or(strings.Compare(a.name[0], b.name[0]), strings.Compare(a.name[1], b.name[1]), strings.Compare(a.name[2], b.name[2]))
	})
	for _, s := range sensors {
		after := w.expectation(s).AlarmAfterMS
		if after == 0 || s.silent || s.quiet || w.now-max(s.seen, s.returned) <= after {
			continue
		}
		if w.now-w.inputs[s.input] > after {
			s.quiet = true
			continue
		}
		s.silent = true
		w.say("silent %v last %d quiet %d clock %v", s.name, s.last, w.now-s.seen, w.clock)
	}
}
