package windowing

import (
	"errors"
	"fmt"
)

// configVersion is the first byte of an encoded Config.
const configVersion = 2

// AppendConfig appends the canonical binary form of c: equal configurations have
// equal bytes.
func AppendConfig(dst []byte, c *Config) []byte {
	w := wire{buf: append(dst, configVersion), version: configVersion}
	copied := *c
	w.config(&copied)
	return w.buf
}

// DecodeConfig reads what AppendConfig wrote and validates it. It fails on a form
// of a newer version, on damage and on what is left over.
func DecodeConfig(src []byte) (*Config, error) {
	if len(src) == 0 {
		return nil, errors.New("engine configuration: it is empty")
	}
	if src[0] == 0 || src[0] > configVersion {
		return nil, fmt.Errorf("engine configuration: version %d, known here is %d: %w", src[0], configVersion, ErrNewer)
	}
	w := wire{buf: src, at: 1, reading: true, version: src[0]}
	c := new(Config)
	w.config(c)
	if w.left() > 0 {
		w.fail(fmt.Errorf("%d bytes are left over", w.left()))
	}
	if w.err != nil {
		return nil, fmt.Errorf("engine configuration: %w", w.err)
	}
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("engine configuration: %w", err)
	}
	return c, nil
}

func (w *wire) config(c *Config) {
	list(w, &c.Features, (*wire).feature)
	list(w, &c.Expectations, func(w *wire, x *Expectation) {
		w.selector(&x.Select)
		w.i64(&x.EveryMS)
		w.i64(&x.AlarmAfterMS)
	})
	w.strings(&c.NoIdentity)
	w.i64(&c.FloorMS)
	w.i64(&c.DuplicateHorizonMS)
	w.i64(&c.LateIdentityMS)
	w.integer(&c.MaxOpenWindows)
	w.i64(&c.ForgetAfterMS)
	w.flag(&c.Explicit)
	if w.version > 1 {
		w.flag(&c.Finals)
	}
}

func (w *wire) feature(f *Feature) {
	w.featureID(&f.ID)
	w.selector(&f.Select)
	w.str(&f.Group)
	w.flag(&f.GroupPerAsset)
	for _, p := range [...]*int64{
		&f.SizeMS, &f.EveryMS, &f.OffsetMS, &f.OutOfOrdernessMS, &f.AllowedLatenessMS,
		&f.IdleAfterMS, &f.FlushAfterMS, &f.CorrectEveryMS, &f.MaxLagMS, &f.MaxHoldMS,
	} {
		w.i64(p)
	}
	code(w, &f.Scope, ScopeSensor)
	w.flag(&f.EmitEmpty)
	w.flag(&f.GoodOnly)
	w.strings(&f.Functions)
}

func (w *wire) featureID(id *FeatureID) {
	w.str(&id.Name)
	w.integer(&id.Version)
	w.u32(&id.Definition)
	w.u32(&id.Tuning)
}

func (w *wire) selector(s *Selector) {
	w.str(&s.Input)
	w.str(&s.Asset)
	w.str(&s.Sensor)
	w.strings(&s.Sensors)
	code(w, &s.Type, TextValue)
}
