package mqtt

import (
	"errors"
	"math"
	"math/big"
	"math/bits"
	"strconv"

	"tidemark/reading"
)

// Waveform says that a value is an array of samples, evenly spaced in time from
// the element's time on. Exactly one of Rate and StepPath is given.
type Waveform struct {
	Rate     Origin // samples a second: a number, or the path of one
	StepPath string // path of the time between two samples, in StepUnit
	StepUnit reading.TimeUnit
}

func (s *subscription) declareWaveform() error {
	w := s.Waveform
	switch {
	case w.Rate.Given() == (w.StepPath != ""):
		return errors.New("waveform: give rate, in samples a second, or step, the time between two samples")
	case w.StepPath != "" && w.StepUnit == reading.UnitNone:
		return errors.New("waveform.step.unit: is it s, ms, us or ns?")
	case s.TimePath == "":
		return errors.New("waveform: samples are counted from the start, and time.path does not say where it is")
	}
	if w.Rate.Text != "" {
		if _, ok := positive(w.Rate.Text); !ok {
			return errors.New("waveform.rate: " + w.Rate.Text + " is no number of samples a second")
		}
	}
	return nil
}

// waveform appends a reading for each sample of an array. A sample's id is the
// element's with its index (SEMANTICS D1).
func (d *Decoder) waveform(id *series, rule *valueRule, unit string, v field) {
	step, ok := d.step()
	if !ok {
		d.reject(reading.Malformed, "no_rate", "the waveform of sensor "+id.name+" has no rate or step above 0; send it, or mend waveform", d.base.ID)
		return
	}
	start, event := d.base.Source, d.base.ID
	p := scanner{s: v.text} // checked already
	p.each(func(i int, _ string, _ bool) bool {
		sample, ok := p.any()
		d.base.Source = step.after(start, i)
		if event != "" {
			d.base.ID = event + "#" + strconv.Itoa(i)
		}
		d.sample(id, rule, unit, sample)
		d.breathe()
		return ok
	})
	d.base.Source, d.base.ID = start, event
}

// spacing is the time between two samples: num/den nanoseconds, exactly.
type spacing struct{ num, den uint64 }

// step returns the spacing; false if there is none above 0.
func (d *Decoder) step() (spacing, bool) {
	w := d.route.sub.Waveform
	if w.StepPath != "" {
		text, _ := d.meta(slotStep).word()
		step, ok := positive(text)
		if !ok {
			return spacing{}, false
		}
		return spaced(step.Mul(step, new(big.Rat).SetInt64(w.StepUnit.Nanos())))
	}
	text := w.Rate.Text
	if text == "" {
		text, _ = d.meta(slotRate).word()
	}
	rate, ok := positive(text)
	if !ok {
		return spacing{}, false
	}
	return spaced(rate.Quo(new(big.Rat).SetInt64(1e9), rate))
}

func spaced(ns *big.Rat) (spacing, bool) {
	return spacing{ns.Num().Uint64(), ns.Denom().Uint64()}, ns.Num().IsUint64() && ns.Denom().IsUint64()
}

// positive reads a number above 0, of a size that a rate or a step may have.
func positive(text string) (*big.Rat, bool) {
	d, ok := parseDecimal(text)
	if !ok || d.digits == 0 || d.neg || d.exp < -18 || d.exp > 18 {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

// after is the time of the i-th sample, to the nanosecond below. As sent is the
// start.
func (s spacing) after(start reading.SourceTime, i int) reading.SourceTime {
	if !start.Given() {
		return start
	}
	hi, lo := bits.Mul64(s.num, uint64(i))
	if hi < s.den {
		if ns, _ := bits.Div64(hi, lo, s.den); ns <= math.MaxInt64-uint64(max(start.NS, 0)) {
			start.NS += int64(ns)
			return start
		}
	}
	return reading.SourceTime{NS: reading.NoTime, Fault: reading.TimeRange, Raw: start.Raw}
}
