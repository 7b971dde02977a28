package clock

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"tidemark/reading"
)

// The operations on a source's clock and on one reading.

type cristianGiven struct {
	EgNS      int64 `json:"E_g_ns"`
	Exchanges []struct {
		T1NS  *int64 `json:"T1_ns"`
		T4NS  *int64 `json:"T4_ns"`
		VNS   *int64 `json:"V_ns"`
		ResNS int64  `json:"res_ns"`
	} `json:"exchanges"`
}

// offsetResult is what a measurement of a source's clock gives.
type offsetResult struct {
	LoNS      *int64 `json:"theta_lo_ns"`
	HiNS      *int64 `json:"theta_hi_ns"`
	Verdict   string `json:"verdict"`
	TZMinutes *int16 `json:"tz_minutes,omitempty"`
	DriftPPB  *int64 `json:"drift_ppb,omitempty"`
	DriftHigh *bool  `json:"drift_high,omitempty"`
}

func newOffsetResult(i Interval, v reading.SourceVerdict, zone int16) offsetResult {
	r := offsetResult{LoNS: &i.LoNS, HiNS: &i.HiNS, Verdict: v.String()}
	if v == reading.SourceTZShaped {
		r.TZMinutes = &zone
	}
	return r
}

func (g cristianGiven) result() (any, error) {
	if len(g.Exchanges) == 0 {
		return nil, errors.New("needs exchanges")
	}
	var xs []Exchange
	for i, x := range g.Exchanges {
		if x.T1NS == nil || x.T4NS == nil || x.VNS == nil || *x.T4NS < *x.T1NS || x.ResNS < 0 {
			return nil, fmt.Errorf("exchange %d needs T1_ns ≤ T4_ns and V_ns", i)
		}
		xs = append(xs, Exchange{*x.T1NS, *x.T4NS, *x.VNS, x.ResNS})
	}
	i, ok := intersectExchanges(xs)
	if !ok {
		return offsetResult{Verdict: reading.SourceStep.String()}, nil
	}
	v, zone := verdictTwoWay(i, g.EgNS)
	return newOffsetResult(i, v, zone), nil
}

type onewayGiven struct {
	EgNS    int64      `json:"E_g_ns"`
	DCapNS  *int64     `json:"D_cap_ns"`
	Fit     bool       `json:"fit"`
	Samples [][2]int64 `json:"samples"`
}

func (g onewayGiven) result() (any, error) {
	if len(g.Samples) == 0 {
		return nil, errors.New("needs samples")
	}
	var points []point
	for _, s := range g.Samples {
		points = append(points, point{s[0], s[1]})
	}
	slices.SortStableFunc(points, func(a, b point) int { return cmp.Compare(a.atNS, b.atNS) })
	i := oneWay(points, orElse(g.DCapNS, DefaultDelayNS))
	v, zone := verdictOneWay(i, g.EgNS)
	res := newOffsetResult(i, v, zone)
	if ppb, ok := drift(points); g.Fit && ok {
		rounded, high := int64(math.Round(ppb)), math.Abs(ppb) > driftAbove
		res.DriftPPB, res.DriftHigh = &rounded, &high
	}
	return res, nil
}

type readingGiven struct {
	TI         json.RawMessage `json:"t_i"`
	RetroNS    int64           `json:"retro_ns"`
	State      string          `json:"gw_state"`
	EgNS       *int64          `json:"E_g_ns"`
	TrustLocal bool            `json:"trust_local"`
	Trust      string          `json:"trust"` // as clock.trust has it
	TS         json.RawMessage `json:"t_s"`
	Raw        json.RawMessage `json:"raw"`
	Unit       string          `json:"unit"`
	TZAssumed  bool            `json:"tz_assumed"`
	TQ         *uint8          `json:"tq"`

	ThetaLoNS *int64 `json:"theta_lo_ns"`
	ThetaHiNS *int64 `json:"theta_hi_ns"`
	Verdict   string `json:"source_verdict"`
	TZMinutes int16  `json:"tz_minutes"`

	ServerTS        json.RawMessage `json:"server_ts"`
	ServerThetaLoNS *int64          `json:"server_theta_lo_ns"`
	ServerThetaHiNS *int64          `json:"server_theta_hi_ns"`
	ServerVerdict   string          `json:"server_verdict"`

	History struct {
		ValueChanged    bool            `json:"value_changed"`
		SameTSRun       int             `json:"same_ts_run"`
		ResolutionNS    int64           `json:"resolution_ns"`
		PrevTS          json.RawMessage `json:"prev_t_s"`
		Ordered         bool            `json:"ordered"`
		CounterSlopeOne bool            `json:"counter_slope_one"`
	} `json:"history"`
	Historical bool   `json:"historical"`
	Initial    bool   `json:"initial"`
	LeapWindow bool   `json:"leap_window"`
	Policy     string `json:"policy"`
	WindowNS   int64  `json:"window_ns"`
	FutureNS   *int64 `json:"F_ns"`
	PastNS     *int64 `json:"P_ns"`
	DCapNS     *int64 `json:"D_cap_ns"`
}

// policyAliases are the spellings of policies in scenarios.
var policyAliases = map[string]reading.Policy{
	"": reading.PolicyReject, "REJECT": reading.PolicyReject, "DEFAULT": reading.PolicyReject,
	"USE_SERVER": reading.PolicyUseServer, "USE_INGEST": reading.PolicyUseIngest,
	"CORRECT_OFFSET": reading.PolicyCorrectOffset, "CORRECT_TZ": reading.PolicyCorrectTimezone,
	"CORRECT_TIMEZONE": reading.PolicyCorrectTimezone, "CORRECT_UNIT": reading.PolicyCorrectUnit, "TRUSTED": reading.PolicyTrusted,
}

func (g readingGiven) result() (any, error) {
	given, err := g.given()
	if err != nil {
		return nil, err
	}
	v := Judge(given)
	res := struct {
		Disposition string   `json:"disposition"`
		Reason      string   `json:"reason"`
		Flags       []string `json:"flags"`
		EventTime   *string  `json:"event_time"`
		EeNS        *int64   `json:"E_e_ns"`
		WMMax       *string  `json:"wm_max"`
		FitsUnit    *string  `json:"fits_unit,omitempty"`
	}{Disposition: v.Disposition.String(), Reason: v.Reason.String(), Flags: []string{},
		EventTime: timeOrNull(v.EventNS), EeNS: orNull(v.EventBound), WMMax: timeOrNull(v.WatermarkNS)}
	res.Flags = append(res.Flags, v.Flags.Names()...)
	if v.FitsUnit != reading.UnitNone {
		u := v.FitsUnit.String()
		res.FitsUnit = &u
	}
	return res, nil
}

func timeOrNull(ns int64) *string {
	if ns == reading.NoTime {
		return nil
	}
	s := time.Unix(0, ns).UTC().Format(time.RFC3339Nano)
	return &s
}

func (g readingGiven) given() (out Given, err error) {
	fail := func(key string, err error) (Given, error) { return Given{}, fmt.Errorf("%s: %w", key, err) }
	ti, err := scenarioTime(g.TI)
	if err != nil || !ti.Given() {
		return fail("t_i", errors.Join(errors.New("needs a time"), err))
	}
	out = Given{
		IngestNS: ti.NS, RetroNS: g.RetroNS, BoundNS: orElse(g.EgNS, noBound), LocalTrust: g.TrustLocal || g.Trust == "local", LeapWindow: g.LeapWindow,
		TZAssumed: g.TZAssumed, ZoneMin: g.TZMinutes,
		Source: Interval{orElse(g.ThetaLoNS, Unmeasured.LoNS), orElse(g.ThetaHiNS, Unmeasured.HiNS)},
		Server: Interval{orElse(g.ServerThetaLoNS, Unmeasured.LoNS), orElse(g.ServerThetaHiNS, Unmeasured.HiNS)},
		History: History{SameTimeRun: g.History.SameTSRun, ValueChanged: g.History.ValueChanged, ResolutionNS: g.History.ResolutionNS,
			Ordered: g.History.Ordered, CounterSlopeOne: g.History.CounterSlopeOne},
		Historical: g.Historical, Initial: g.Initial, WindowNS: g.WindowNS,
		FutureNS: orElse(g.FutureNS, DefaultFutureNS), PastNS: orElse(g.PastNS, DefaultPastNS), DelayNS: orElse(g.DCapNS, DefaultDelayNS),
	}
	if out.State, err = parseState(g.State); err != nil {
		return fail("gw_state", err)
	}
	var ok bool
	if out.Policy, ok = policyAliases[strings.ToUpper(g.Policy)]; !ok {
		return fail("policy", fmt.Errorf("%q is unknown", g.Policy))
	}
	if out.SourceVerdict, err = scenarioVerdict(g.Verdict); err != nil {
		return fail("source_verdict", err)
	}
	if out.ServerVerdict, err = scenarioVerdict(g.ServerVerdict); err != nil {
		return fail("server_verdict", err)
	}
	if g.TQ != nil {
		out.TimeQuality, out.HasTimeQuality = *g.TQ, true
	}
	return out, g.times(&out)
}

// times fills in the source's, the server's and the previous time.
func (g readingGiven) times(out *Given) error {
	ts, err := scenarioTime(g.TS)
	if err != nil {
		return fmt.Errorf("t_s: %w", err)
	}
	out.SourceNS, out.Fault = ts.NS, ts.Fault
	out.TZAssumed = out.TZAssumed || ts.Given() && !ts.Zoned
	if len(g.Raw) > 0 && string(g.Raw) != "null" {
		if err := g.number(out); err != nil {
			return err
		}
	}
	server, err := scenarioTime(g.ServerTS)
	if err != nil {
		return fmt.Errorf("server_ts: %w", err)
	}
	out.ServerNS = server.NS
	prev, err := scenarioTime(g.History.PrevTS)
	if err != nil {
		return fmt.Errorf("prev_t_s: %w", err)
	}
	out.History.PrevNS = prev.NS
	return nil
}

func (g readingGiven) number(out *Given) error {
	var unit reading.TimeUnit
	for _, u := range units {
		if u.String() == strings.Replace(g.Unit, "µ", "u", 1) {
			unit = u
		}
	}
	if unit == reading.UnitNone {
		return fmt.Errorf("unit: %q is none of s, ms, us, ns", g.Unit)
	}
	text := strings.Trim(string(g.Raw), `"`)
	n, ok := ParseNumber(text, unit)
	if !ok {
		out.SourceNS, out.Fault = reading.NoTime, reading.TimeUnparseable
		return nil
	}
	out.Number, out.SourceNS, out.Fault = n, n.NS, reading.TimeOK
	if n.NS == reading.NoTime {
		out.Fault = reading.TimeRange
	}
	return nil
}

func scenarioVerdict(s string) (reading.SourceVerdict, error) {
	if s == "" {
		return reading.SourceOK, nil
	}
	v, ok := reading.ParseSourceVerdict(s)
	if !ok {
		return 0, fmt.Errorf("%q is no verdict", s)
	}
	return v, nil
}

// opcNull is OPC UA's time zero, which means none.
var opcNull = time.Date(1601, 1, 1, 0, 0, 0, 0, time.UTC)

// scenarioTime reads a time of a scenario: RFC 3339 text, with or without a
// zone, or integer Unix milliseconds. Absent, null and 1601 are none. Text that
// is no time is a fault of the source, not of the file.
func scenarioTime(raw json.RawMessage) (reading.SourceTime, error) {
	none := reading.SourceTime{NS: reading.NoTime, Fault: reading.TimeNull}
	if len(raw) == 0 || string(raw) == "null" {
		return none, nil
	}
	var ms int64
	if json.Unmarshal(raw, &ms) == nil {
		return fromTime(time.UnixMilli(ms), true), nil
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return none, errors.New("is neither text nor an integer of milliseconds")
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		return fromTime(t, true), nil
	}
	if t, err := time.Parse("2006-01-02T15:04:05.999999999", text); err == nil {
		return fromTime(t, false), nil
	}
	return reading.SourceTime{NS: reading.NoTime, Fault: reading.TimeUnparseable, Raw: text}, nil
}

func fromTime(t time.Time, zoned bool) reading.SourceTime {
	switch {
	case t.Equal(opcNull):
		return reading.SourceTime{NS: reading.NoTime, Fault: reading.TimeNull}
	case t.Year() < 1678 || t.Year() > 2261:
		return reading.SourceTime{NS: reading.NoTime, Fault: reading.TimeRange}
	}
	return reading.SourceTime{NS: t.UnixNano(), Zoned: zoned}
}
