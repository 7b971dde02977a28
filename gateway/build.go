package gateway

import (
	"cmp"
	"slices"
	"time"
	"unicode/utf8"

	"tidemark/buffer"
	"tidemark/clock"
	"tidemark/configs"
	"tidemark/gateway/mqtt"
	"tidemark/reading"
	"tidemark/uplink"
	"tidemark/windowing"
)

// This file turns the configuration into what each room calls its own.

func clockConfig(c *configs.Config) clock.Config {
	out := clock.Config{
		Servers: c.Clock.Servers, LocalBound: time.Duration(c.Clock.LocalBound),
		PollMin: time.Duration(c.Clock.PollMin), PollMax: time.Duration(c.Clock.PollMax),
	}
	if c.Clock.Trust == configs.TrustLocal {
		out.Trust = clock.TrustLocal
	}
	return out
}

// mqttConfig is what an MQTT input is to its reader, without what is remembered of it.
func mqttConfig(c *configs.Config, in *configs.Input) mqtt.Config {
	m := in.MQTT
	target := m.URL.URL
	out := mqtt.Config{
		Input: in.Name, URL: &target, ClientID: m.ClientID, Login: login(m.Login),
		ReceiveMaximum: uint16(m.ReceiveMaximum), KeepAlive: m.KeepAlive.Std(), SessionExpiry: m.SessionExpiry.Std(),
		MaxPayload: int(m.MaxPayload), MaxSeries: m.MaxSeries, CatchUpMax: c.Limits.CatchupMax.Std(),
		Zone: in.Timestamps.Zone.Location, Assets: assets(c),
		TLS: m.TLS.Load, SparkplugHost: m.SparkplugHost,
	}
	for i := range m.Subscribe {
		out.Subscriptions = append(out.Subscriptions, subscription(&m.Subscribe[i]))
	}
	for _, p := range m.Presence {
		out.Presence = append(out.Presence, mqtt.Presence{Topic: p.Topic, QoS: byte(p.QoS), Device: p.Device, Path: p.Path, Gone: p.Gone})
	}
	return out
}

func login(l configs.Login) func() (string, []byte, error) {
	if l.User == "" {
		return nil
	}
	return func() (string, []byte, error) {
		password, err := l.Password.Read()
		return l.User, password, err
	}
}

func assets(c *configs.Config) map[string]reading.Asset {
	out := map[string]reading.Asset{}
	for _, a := range c.Assets {
		as := reading.Asset{Aliases: a.Aliases}
		for _, l := range a.Lifecycles {
			as.Lifecycles = append(as.Lifecycles, reading.Lifecycle{ID: l.ID, FromNS: int64(l.From)})
		}
		out[a.Name] = as
	}
	return out
}

func origin(o configs.Origin) mqtt.Origin { return mqtt.Origin{Path: o.Path, Text: o.Text} }

var valueTypes = map[configs.ValueType]mqtt.Type{
	"": mqtt.AnyType, configs.TypeNumber: mqtt.Number, configs.TypeBool: mqtt.Bool, configs.TypeText: mqtt.Text,
}

var formats = map[configs.Format]mqtt.Format{
	configs.FormatJSON: mqtt.JSON, configs.FormatPlain: mqtt.Plain, configs.FormatCSV: mqtt.CSV,
	configs.FormatInflux: mqtt.Influx, configs.FormatSenML: mqtt.SenML, configs.FormatSparkplug: mqtt.Sparkplug,
}

func subscription(s *configs.Subscribe) mqtt.Subscription {
	out := mqtt.Subscription{
		Topic: s.Topic, Share: s.Share, QoS: byte(s.QoS), Format: formats[s.Format], Gzip: s.Gzip, Each: s.Each, Columns: s.CSV.Columns,
		TimePath: s.Time.Path, TimeUnit: s.Time.Unit, IDPath: s.ID.Path, SeqPath: s.Seq.Path,
		QualityPath: s.Quality.Path, QualityMap: s.Quality.Map,
		Asset: origin(s.Asset), Device: origin(s.Device), Lifecycle: origin(s.Lifecycle), Sensor: origin(s.Sensor),
		Value: mqtt.Value{Path: s.Value.Path, Type: valueTypes[s.Value.Type], Unit: origin(s.Value.Unit), Map: s.Value.Map},
	}
	out.Separator, _ = utf8.DecodeRuneInString(s.CSV.Separator)
	if w := s.Waveform; w != nil {
		out.Waveform = &mqtt.Waveform{Rate: origin(w.Rate), StepPath: w.Step.Path, StepUnit: w.Step.Unit}
	}
	for _, f := range s.Sensors {
		sensor := mqtt.Sensor{
			Name: f.Name, Path: f.Path, Unit: f.Unit, Type: valueTypes[f.Type], Map: f.Map, Scale: f.Scale, Offset: f.Offset,
		}
		if f.Range != nil {
			sensor.Range = &[2]float64{f.Range.Low, f.Range.High}
		}
		out.Sensors = append(out.Sensors, sensor)
	}
	return out
}

func uplinkConfig(u *configs.Uplink, clk *clock.Clock) uplink.Config {
	t, target := u.MQTT.TLS, u.MQTT.URL.URL
	out := uplink.Config{
		Name: u.Name, URL: &target, ClientID: u.MQTT.ClientID, Login: login(u.MQTT.Login),
		TLS: t.Load, RetainFeatures: u.Retain, Batch: u.Batch, BacklogRate: u.Backlog.Rate,
		Clock: func() (int64, reading.ClockState) {
			now := clk.Now()
			return now.WallNS, now.State
		},
	}
	for _, name := range u.Records {
		out.Types = append(out.Types, string(name))
	}
	return out
}

// rawFilter returns what tells the readings that an uplink takes; nil if it takes
// none.
func rawFilter(selects []configs.Select) func(*reading.Reading) bool {
	if len(selects) == 0 {
		return nil
	}
	known := map[reading.Tag][]configs.ValueType{} // the types that are taken of a series
	return func(r *reading.Reading) bool {
		types, ok := known[r.Tag]
		if !ok {
			s := r.Tag.Value()
			for i := range selects {
				if c := &selects[i]; c.Input.Match(s.Input) && c.Asset.Match(s.Asset) && c.Sensor.Match(s.Sensor) {
					types = append(types, c.Type)
				}
			}
			known[r.Tag] = types
		}
		return slices.ContainsFunc(types, func(t configs.ValueType) bool { return engineTypes[t].Takes(r.Value.Kind()) })
	}
}

func storeOptions(c *configs.Config, wallNS int64) buffer.Options {
	o := buffer.Options{
		Quota: int64(c.Store.Quota), RetainMS: c.Store.Retain.MS(), NowMS: reading.FloorMS(wallNS), Compact: true,
	}
	if c.Store.WhenFull == configs.HoldSources {
		o.WhenFull = buffer.HoldSources
	}
	for i := range c.Uplinks {
		o.Uplinks = append(o.Uplinks, c.Uplinks[i].Name)
		if len(c.Uplinks[i].Raw) > 0 {
			o.Raw = append(o.Raw, c.Uplinks[i].Name)
		}
	}
	return o
}

// inputPolicy says how an input's times are judged.
func inputPolicy(c *configs.Config, in *configs.Input) clock.InputPolicy {
	t := &in.Timestamps
	p := clock.InputPolicy{
		WhenWrong: t.WhenWrong, Ordered: t.Ordered,
		Future: t.MaxAhead.Std(), Past: t.MaxBehind.Std(), Delay: t.MaxDelay.Std(),
	}
	if o := in.OPCUA; o != nil { // a value waits so long for its notification (SEMANTICS S2)
		p.Delay = max(p.Delay, o.Publishing.Std()+o.Sampling.Std())
	}
	switch t.Use {
	case configs.UseServer:
		p.Use = reading.BasisServer
	case configs.UseIngest:
		p.Use = reading.BasisIngest
	}
	var widest time.Duration
	for i := range c.Features {
		if f := &c.Features[i]; f.Select.Input.Match(in.Name) {
			widest = max(widest, f.Window.Std())
		}
	}
	p.Window = func(reading.Tag) time.Duration { return widest }
	return p
}

// EngineConfig is the engine's configuration without the generation's floor.
func EngineConfig(c *configs.Config) (windowing.Config, error) {
	out := windowing.Config{
		FloorMS: reading.NoTime, DuplicateHorizonMS: c.Limits.DuplicateHorizon.MS(),
		LateIdentityMS: c.Store.Retain.MS(), MaxOpenWindows: c.Limits.MaxOpenWindows, ForgetAfterMS: c.Limits.ForgetAfter.MS(),
	}
	for i := range c.Inputs {
		in := &c.Inputs[i]
		if in.Identity == configs.IdentityNone {
			out.NoIdentity = append(out.NoIdentity, in.Name)
		}
		if in.MQTT != nil {
			out.Expectations = append(out.Expectations, expectations(in)...)
		}
		if in.OPCUA != nil {
			out.Expectations = append(out.Expectations, tagExpectations(c, in)...)
		}
	}
	for i := range c.Features {
		out.Features = append(out.Features, engineFeature(&c.Features[i]))
	}
	for i := range c.Uplinks {
		out.Finals = out.Finals || c.Uplinks[i].Publish == configs.PublishFinal
	}
	return out, out.Validate()
}

func expectations(in *configs.Input) (out []windowing.Expectation) {
	for i := range in.MQTT.Subscribe {
		for _, s := range in.MQTT.Subscribe[i].Sensors {
			if s.ExpectEvery > 0 || s.AlarmAfter > 0 {
				out = append(out, windowing.Expectation{
					Select: windowing.Selector{Input: in.Name, Sensor: s.Name}, EveryMS: s.ExpectEvery.MS(), AlarmAfterMS: s.AlarmAfter.MS(),
				})
			}
		}
	}
	return out
}

// tagExpectations is what tag files expect, by the names that the sensors go by.
func tagExpectations(c *configs.Config, in *configs.Input) (out []windowing.Expectation) {
	aliases := map[string]map[string]string{}
	for _, a := range c.Assets {
		aliases[a.Name] = a.Aliases
	}
	for i := range in.OPCUA.Nodes {
		tags, _ := in.OPCUA.Nodes[i].TagList() // the reader tells what is wrong with it
		for _, t := range tags {
			if t.ExpectEvery == 0 && t.AlarmAfter == 0 {
				continue
			}
			out = append(out, windowing.Expectation{
				Select:  windowing.Selector{Input: in.Name, Asset: t.Asset, Sensor: cmp.Or(aliases[t.Asset][t.Sensor], t.Sensor)},
				EveryMS: t.ExpectEvery.MS(), AlarmAfterMS: t.AlarmAfter.MS(),
			})
		}
	}
	return out
}

var scopes = map[configs.Scope]windowing.Scope{
	configs.ScopeInput: windowing.ScopeInput, configs.ScopeDevice: windowing.ScopeDevice, configs.ScopeSensor: windowing.ScopeSensor,
}

var engineTypes = map[configs.ValueType]windowing.ValueType{
	"": windowing.AnyValue, configs.TypeNumber: windowing.NumberValue, configs.TypeBool: windowing.BoolValue, configs.TypeText: windowing.TextValue,
}

func engineFeature(f *configs.Feature) windowing.Feature {
	out := windowing.Feature{
		ID: windowing.FeatureID{Name: f.Name, Version: f.Version, Definition: f.Definition(), Tuning: f.Tuning()},
		Select: windowing.Selector{
			Input: string(f.Select.Input), Asset: string(f.Select.Asset), Type: engineTypes[f.Select.Type],
		},
		Group: f.Group, GroupPerAsset: f.GroupPerAsset, SizeMS: f.Window.MS(), EveryMS: f.Every.MS(), OffsetMS: f.Offset.MS(),
		OutOfOrdernessMS: f.OutOfOrderness.MS(), AllowedLatenessMS: f.AllowedLateness.MS(), Scope: scopes[f.Scope],
		IdleAfterMS: f.IdleAfter.MS(), FlushAfterMS: f.FlushAfter.MS(), CorrectEveryMS: f.CorrectEvery.MS(),
		MaxLagMS: f.MaxWatermarkLag.MS(), MaxHoldMS: f.Hold.Max.MS(), EmitEmpty: f.EmitEmpty,
		GoodOnly: f.Quality == configs.QualityGoodOnly, Functions: f.Functions,
	}
	for _, s := range f.Select.Sensor {
		out.Select.Sensors = append(out.Select.Sensors, string(s))
	}
	return out
}
