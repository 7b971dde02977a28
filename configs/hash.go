package configs

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"slices"
	"strings"
)

// Definition returns the first 8 hex digits of the SHA-256 of what determines a
// feature's values. It is 0 for a Feature that no configuration gave.
//
// Hashed are the selection rule, window, functions, hold, group, quality policy,
// and of the selected inputs the set of time policies and the sensors' scales. A
// sensor that is added with a scale of 1 changes nothing: which sensors there are
// belongs to no definition.
func (f Feature) Definition() uint32 { return f.definition }

// Spec returns the canonical JSON that Definition is the hash of.
func (f Feature) Spec() string { return f.spec }

// Tuning returns the like of out-of-orderness, lateness, idleness and what else
// decides when results come, not what they are.
func (f Feature) Tuning() uint32 { return f.tuning }

// definition is what is hashed. Its JSON is canonical: keys in the order of the
// fields, lists sorted where their order means nothing. Fields may be added only
// with omitempty, so that hashes of older files stay.
type definition struct {
	Input      Pattern      `json:"input"`
	Asset      Pattern      `json:"asset"`
	Sensor     []Pattern    `json:"sensor"`
	Type       ValueType    `json:"type"`
	WindowMS   int64        `json:"window_ms"`
	EveryMS    int64        `json:"every_ms"`
	OffsetMS   int64        `json:"offset_ms"`
	Functions  []string     `json:"functions"`
	Group      string       `json:"group"`
	PerAsset   bool         `json:"group_per_asset,omitempty"`
	HoldMS     int64        `json:"hold_ms"`
	Quality    string       `json:"quality"`
	EmitEmpty  bool         `json:"emit_empty"`
	Times      []timePolicy `json:"times"`
	Conversion []conversion `json:"conversion,omitempty"`
}

// timePolicy is how an input's times and repetitions are judged. Inputs that
// share one count once, and their names don't.
type timePolicy struct {
	Use       string `json:"use"`
	WhenWrong string `json:"when_wrong"`
	Ordered   bool   `json:"ordered"`
	Zone      string `json:"zone"`
	AheadMS   int64  `json:"max_ahead_ms"`
	BehindMS  int64  `json:"max_behind_ms"`
	Identity  string `json:"identity"`
}

// conversion is a sensor whose value is not taken as it comes.
type conversion struct {
	Input  string  `json:"input"`
	Sensor string  `json:"sensor"`
	Unit   string  `json:"unit"`
	Scale  float64 `json:"scale"`
	Offset float64 `json:"offset"`

	Map map[string]string `json:"map,omitempty"`
}

type tuningOf struct {
	Scope             string `json:"scope"`
	OutOfOrdernessMS  int64  `json:"out_of_orderness_ms"`
	AllowedLatenessMS int64  `json:"allowed_lateness_ms"`
	IdleAfterMS       int64  `json:"idle_after_ms"`
	CorrectEveryMS    int64  `json:"correct_every_ms"`
	FlushAfterMS      int64  `json:"flush_after_ms"`
	MaxWatermarkLagMS int64  `json:"max_watermark_lag_ms"`
}

// hash sets the feature's definition and tuning from itself and its inputs.
func (f *Feature) hash(c *Config) {
	d := definition{
		Input: f.Select.Input, Asset: f.Select.Asset, Sensor: sorted(f.Select.Sensor),
		Type: f.Select.Type, WindowMS: f.Window.MS(), EveryMS: f.Every.MS(), OffsetMS: f.Offset.MS(),
		Functions: sorted(f.Functions), Group: f.Group, PerAsset: f.GroupPerAsset, HoldMS: f.Hold.Max.MS(), Quality: string(f.Quality), EmitEmpty: f.EmitEmpty,
		Times: []timePolicy{},
	}
	for _, in := range c.Inputs {
		if f.Select.Input.Match(in.Name) {
			d.Times = append(d.Times, in.timePolicy())
			d.Conversion = append(d.Conversion, in.conversions(&f.Select)...)
		}
	}
	slices.SortFunc(d.Times, func(a, b timePolicy) int { return strings.Compare(asJSON(a), asJSON(b)) })
	d.Times = slices.Compact(d.Times)
	slices.SortFunc(d.Conversion, func(a, b conversion) int {
		return cmp.Or(strings.Compare(a.Input, b.Input), strings.Compare(a.Sensor, b.Sensor), strings.Compare(asJSON(a), asJSON(b)))
	})
	f.spec = asJSON(d)
	f.definition = digest(d)
	f.tuning = digest(tuningOf{string(f.Scope), f.OutOfOrderness.MS(), f.AllowedLateness.MS(), f.IdleAfter.MS(),
		f.CorrectEvery.MS(), f.FlushAfter.MS(), f.MaxWatermarkLag.MS()})
}

func (in *Input) timePolicy() timePolicy {
	t := in.Timestamps
	zone := ""
	if t.Zone.Location != nil {
		zone = t.Zone.String()
	}
	return timePolicy{string(t.Use), t.WhenWrong.String(), t.Ordered, zone, t.MaxAhead.MS(), t.MaxBehind.MS(), string(in.Identity)}
}

func (in *Input) conversions(s *Select) (list []conversion) {
	if in.MQTT == nil {
		return nil
	}
	for _, sub := range in.MQTT.Subscribe {
		if len(sub.Value.Map) > 0 {
			list = append(list, conversion{Input: in.Name, Sensor: "*", Scale: 1, Map: sub.Value.Map})
		}
		for _, x := range sub.Sensors {
			if (x.Scale != 1 || x.Offset != 0 || len(x.Map) > 0) && s.Sensor.Match(x.Name) {
				list = append(list, conversion{in.Name, x.Name, x.Unit, x.Scale, x.Offset, x.Map})
			}
		}
	}
	return list
}

// sorted returns a sorted copy that is never nil, so that it is [] in JSON.
func sorted[T ~string](list []T) []T {
	out := append([]T{}, list...)
	slices.Sort(out)
	return out
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic("configs: " + err.Error()) // plain structs of finite numbers
	}
	return string(b)
}

func digest(v any) uint32 {
	sum := sha256.Sum256([]byte(asJSON(v)))
	return binary.BigEndian.Uint32(sum[:4])
}
