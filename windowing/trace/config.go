package trace

import (
	"encoding/json"
	"fmt"
	"strconv"

	"tidemark/reading"
	"tidemark/windowing"
)

// The operation config in JSON. Durations are whole milliseconds; what is off or
// empty is left out. Its names are those of the configuration file.
type (
	configJSON struct {
		Features         []featureJSON     `json:"features,omitempty"`
		Expect           []expectationJSON `json:"expect,omitempty"`
		IdentityNone     []string          `json:"identity_none,omitempty"`
		Floor            json.RawMessage   `json:"floor,omitempty"`
		DuplicateHorizon int64             `json:"duplicate_horizon,omitempty"`
		LateIdentity     int64             `json:"late_identity,omitempty"`
		MaxOpenWindows   int               `json:"max_open_windows,omitempty"`
		ForgetAfter      int64             `json:"forget_after,omitempty"`
		Finals           bool              `json:"finals,omitempty"`
		Watermarks       string            `json:"watermarks,omitempty"`
	}
	featureJSON struct {
		Name            string       `json:"name"`
		Version         int          `json:"version"`
		Definition      hash         `json:"definition,omitempty"`
		Tuning          hash         `json:"tuning,omitempty"`
		Select          selectorJSON `json:"select,omitzero"`
		Group           string       `json:"group,omitempty"`
		GroupPerAsset   bool         `json:"group_per_asset,omitempty"`
		Window          int64        `json:"window"`
		Every           int64        `json:"every,omitempty"`
		Offset          int64        `json:"offset,omitempty"`
		OutOfOrderness  int64        `json:"out_of_orderness"`
		AllowedLateness int64        `json:"allowed_lateness"`
		Scope           string       `json:"scope,omitempty"`
		IdleAfter       int64        `json:"idle_after,omitempty"`
		FlushAfter      int64        `json:"flush_after,omitempty"`
		CorrectEvery    int64        `json:"correct_every,omitempty"`
		MaxWatermarkLag int64        `json:"max_watermark_lag,omitempty"`
		Hold            int64        `json:"hold,omitempty"`
		EmitEmpty       bool         `json:"emit_empty,omitempty"`
		GoodOnly        bool         `json:"good_only,omitempty"`
		Functions       []string     `json:"functions,omitempty"`
	}
	selectorJSON struct {
		Input   string   `json:"input,omitempty"`
		Asset   string   `json:"asset,omitempty"`
		Sensor  string   `json:"sensor,omitempty"`
		Sensors []string `json:"sensors,omitempty"`
		Type    string   `json:"type,omitempty"`
	}
	expectationJSON struct {
		Select     selectorJSON `json:"select,omitzero"`
		Every      int64        `json:"every,omitempty"`
		AlarmAfter int64        `json:"alarm_after,omitempty"`
	}
)

// hash is eight hexadecimal digits.
type hash uint32

func (h hash) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%08x", uint32(h)), nil }

func (h *hash) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 16, 32)
	if err != nil {
		return fmt.Errorf("%q is no hash of eight hexadecimal digits", text)
	}
	*h = hash(n)
	return nil
}

var typeNames = [...]string{
	windowing.AnyValue: "", windowing.NumberValue: "number", windowing.BoolValue: "bool", windowing.TextValue: "text",
}

const explicitName = "explicit"

// appendConfig appends c as a JSON object.
func appendConfig(b []byte, c *windowing.Config) []byte {
	j := configJSON{
		IdentityNone: c.NoIdentity, DuplicateHorizon: c.DuplicateHorizonMS, LateIdentity: c.LateIdentityMS,
		MaxOpenWindows: c.MaxOpenWindows, ForgetAfter: c.ForgetAfterMS, Finals: c.Finals,
	}
	if c.FloorMS != reading.NoTime {
		j.Floor = reading.AppendJSONTimeMS(nil, c.FloorMS)
	}
	if c.Explicit {
		j.Watermarks = explicitName
	}
	for i := range c.Expectations {
		x := &c.Expectations[i]
		j.Expect = append(j.Expect, expectationJSON{writeSelector(&x.Select), x.EveryMS, x.AlarmAfterMS})
	}
	for i := range c.Features {
		j.Features = append(j.Features, writeFeature(&c.Features[i]))
	}
	text, err := json.Marshal(&j)
	if err != nil {
		panic(err) // nothing in it can fail
	}
	return append(b, text...)
}

func writeFeature(f *windowing.Feature) featureJSON {
	j := featureJSON{
		Name: f.ID.Name, Version: f.ID.Version, Definition: hash(f.ID.Definition), Tuning: hash(f.ID.Tuning),
		Select: writeSelector(&f.Select), Group: f.Group, GroupPerAsset: f.GroupPerAsset,
		Window: f.SizeMS, Every: f.EveryMS, Offset: f.OffsetMS, OutOfOrderness: f.OutOfOrdernessMS, AllowedLateness: f.AllowedLatenessMS,
		IdleAfter: f.IdleAfterMS, FlushAfter: f.FlushAfterMS, CorrectEvery: f.CorrectEveryMS, MaxWatermarkLag: f.MaxLagMS,
		Hold: f.MaxHoldMS, EmitEmpty: f.EmitEmpty, GoodOnly: f.GoodOnly, Functions: f.Functions,
	}
	if f.Scope != windowing.ScopeInput {
		j.Scope = f.Scope.String()
	}
	return j
}

func writeSelector(s *windowing.Selector) selectorJSON {
	return selectorJSON{Input: s.Input, Asset: s.Asset, Sensor: s.Sensor, Sensors: s.Sensors, Type: typeNames[min(s.Type, windowing.TextValue)]}
}

// parseConfig reads the operation config, or the member of a batch.
func parseConfig(text token) (*windowing.Config, error) {
	var j configJSON
	if err := json.Unmarshal(text, &j); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	c := &windowing.Config{
		NoIdentity: j.IdentityNone, DuplicateHorizonMS: j.DuplicateHorizon, LateIdentityMS: j.LateIdentity,
		MaxOpenWindows: j.MaxOpenWindows, ForgetAfterMS: j.ForgetAfter, FloorMS: reading.NoTime,
		Finals: j.Finals,
	}
	switch j.Watermarks {
	case "", "generated":
	case explicitName:
		c.Explicit = true
	default:
		return nil, fmt.Errorf("config: watermarks %q are neither generated nor explicit", j.Watermarks)
	}
	if j.Floor != nil && string(j.Floor) != "null" {
		ms, err := millis("floor", token(j.Floor))
		if err != nil {
			return nil, fmt.Errorf("config: %w", err)
		}
		c.FloorMS = ms
	}
	for i := range j.Expect {
		s, err := readSelector(&j.Expect[i].Select)
		if err != nil {
			return nil, fmt.Errorf("config: expect[%d]: %w", i, err)
		}
		c.Expectations = append(c.Expectations, windowing.Expectation{Select: s, EveryMS: j.Expect[i].Every, AlarmAfterMS: j.Expect[i].AlarmAfter})
	}
	for i := range j.Features {
		f, err := readFeature(&j.Features[i])
		if err != nil {
			return nil, fmt.Errorf("config: features[%d]: %w", i, err)
		}
		c.Features = append(c.Features, f)
	}
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("config: %w", err)
	}
	return c, nil
}

func readFeature(j *featureJSON) (f windowing.Feature, err error) {
	f = windowing.Feature{
		ID:    windowing.FeatureID{Name: j.Name, Version: j.Version, Definition: uint32(j.Definition), Tuning: uint32(j.Tuning)},
		Group: j.Group, GroupPerAsset: j.GroupPerAsset,
		SizeMS: j.Window, EveryMS: j.Every, OffsetMS: j.Offset, OutOfOrdernessMS: j.OutOfOrderness, AllowedLatenessMS: j.AllowedLateness,
		IdleAfterMS: j.IdleAfter, FlushAfterMS: j.FlushAfter, CorrectEveryMS: j.CorrectEvery, MaxLagMS: j.MaxWatermarkLag,
		MaxHoldMS: j.Hold, EmitEmpty: j.EmitEmpty, GoodOnly: j.GoodOnly, Functions: j.Functions,
	}
	if f.Select, err = readSelector(&j.Select); err != nil {
		return f, err
	}
	if j.Scope != "" {
		scope, ok := windowing.ParseScope(j.Scope)
		if !ok {
			return f, fmt.Errorf("scope %q is none of input, device, sensor", j.Scope)
		}
		f.Scope = scope
	}
	return f, nil
}

func readSelector(j *selectorJSON) (windowing.Selector, error) {
	s := windowing.Selector{Input: j.Input, Asset: j.Asset, Sensor: j.Sensor, Sensors: j.Sensors}
	for t, name := range typeNames {
		if name == j.Type {
			s.Type = windowing.ValueType(t)
			return s, nil
		}
	}
	return s, fmt.Errorf("type %q is none of number, bool, text", j.Type)
}
