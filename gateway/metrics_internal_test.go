package gateway

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tidemark/reading"
	"tidemark/windowing"
)

// scraped are the samples of an exposition, by what stands before the value. It is
// held to the text format: each metric begins with its help and its type, and its
// samples follow.
func scraped(t *testing.T, text []byte) (samples map[string]float64, kinds map[string]string) {
	t.Helper()
	samples, kinds = map[string]float64{}, map[string]string{}
	sample := regexp.MustCompile(`^([a-z_]+)(\{[a-z]+="(?:[^"\\\n]|\\["\\n])*"(?:,[a-z]+="(?:[^"\\\n]|\\["\\n])*")*\})? (\S+)$`)
	current := ""
	for _, line := range strings.Split(strings.TrimSuffix(string(text), "\n"), "\n") {
		if name, ok := strings.CutPrefix(line, "# HELP "); ok {
			current, _, _ = strings.Cut(name, " ")
			continue
		}
		if rest, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, kind, _ := strings.Cut(rest, " ")
			if name != current || kinds[name] != "" {
				t.Errorf("%s stands under %s, or came before", line, current)
			}
			kinds[name] = kind
			continue
		}
		m := sample.FindStringSubmatch(line)
		if m == nil {
			t.Fatalf("%q is no sample", line)
		}
		if of := m[1]; of != current && (kinds[current] != "histogram" || !slices.Contains([]string{"_bucket", "_sum", "_count"}, strings.TrimPrefix(of, current))) {
			t.Errorf("%q stands under %s", line, current)
		}
		v, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			t.Errorf("%q: %v", line, err)
		}
		if _, twice := samples[m[1]+m[2]]; twice {
			t.Errorf("%s%s comes twice", m[1], m[2])
		}
		samples[m[1]+m[2]] = v
	}
	return samples, kinds
}

// The metrics are those that users were promised, no more and no less, and the
// shipped alerts ask for nothing else.
func TestMetricsAreTheContracts(t *testing.T) {
	contract, err := os.ReadFile("../docs/CONTRACT.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(contract), "## Metrics")
	name := regexp.MustCompile(`tidemark_[a-z_]+`)
	var got []string
	for _, m := range metrics {
		got = append(got, m.name)
	}
	if want := name.FindAllString(section, -1); !slices.Equal(got, want) {
		t.Errorf("metrics\n%q, want\n%q", got, want)
	}
	alerts, err := os.ReadFile("../configs/alerts.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range name.FindAllString(string(alerts), -1) {
		if !slices.Contains(got, n) {
			t.Errorf("an alert asks for %s", n)
		}
	}
	tried, err := os.ReadFile("../configs/testdata/alerts_test.yaml")
	if err != nil {
		t.Fatal(err)
	}
	rules := strings.Split(string(alerts), "- alert: ")[1:]
	for _, r := range rules {
		if alert, _, _ := strings.Cut(r, "\n"); !strings.Contains(r, "action: ") || !strings.Contains(string(tried), `alertname="`+alert+`"`) {
			t.Errorf("%s says nothing to do, or is not tried", alert)
		}
	}
	for _, states := range regexp.MustCompile(`state=~"([^"]*)"`).FindAllStringSubmatch(string(alerts), -1) {
		for _, s := range strings.Split(states[1], "|") {
			known := false
			for c := reading.ClockUnknown; c <= reading.ClockUnreliable; c++ {
				known = known || c.String() == s
			}
			if !known {
				t.Errorf("an alert asks for the clock's state %s", s)
			}
		}
	}
}

// What a running gateway shows after some readings.
func TestMetricsOfAGateway(t *testing.T) {
	b := start(t, filepath.Join(t.TempDir(), "t.db"), "local")
	now := b.clk.Now().WallNS
	for i := range int64(10) { // before the store's birth: late
		b.bring(now + (i-10)*5e9)
	}
	text, err := b.Metrics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	samples, kinds := scraped(t, text)
	if len(kinds) != len(metrics) {
		t.Errorf("%d metrics of %d", len(kinds), len(metrics))
	}
	for name, want := range map[string]float64{
		`tidemark_readings_total{input="in",outcome="accepted"}`:         10,
		`tidemark_readings_total{input="in",outcome="quarantined"}`:      0,
		`tidemark_pending_readings`:                                      0,
		`tidemark_feature_assignments_total{feature="f",outcome="late"}`: 10,
		`tidemark_source_delay_seconds_count{input="in"}`:                10,
		`tidemark_source_delay_seconds_bucket{input="in",le="+Inf"}`:     10,
		`tidemark_clock_state{state="unknown"}`:                          1,
		`tidemark_clock_state{state="synchronized"}`:                     0,
		`tidemark_input_idle{input="in"}`:                                0,
		`tidemark_buffer_quota_bytes`:                                    64 << 20,
		`tidemark_evidence_store_failures_total`:                         0,
		`tidemark_lost_readings_total{reason="raw"}`:                     0,
	} {
		if got, there := samples[name]; got != want || !there {
			t.Errorf("%s is %v (%t), want %v", name, got, there, want)
		}
	}
	for _, name := range []string{
		`tidemark_commit_seconds_count`, `tidemark_buffer_bytes`, `tidemark_disk_free_bytes`,
		`tidemark_outbox_records{uplink="up"}`, `tidemark_watermark_lag_seconds{input="in"}`,
	} {
		if samples[name] <= 0 {
			t.Errorf("%s is %v", name, samples[name])
		}
	}
	if err := b.Ready(t.Context()); err != nil {
		t.Errorf("not ready: %v", err)
	}
	b.health.full(fmt.Errorf("no room"))
	if err := b.Ready(t.Context()); err == nil {
		t.Error("ready with a full disk")
	}
	if err := b.Alive(t.Context()); err != nil {
		t.Errorf("not alive: %v", err)
	}
}

func TestHistogram(t *testing.T) {
	h := newHistogram([]float64{0, 1, 10})
	for _, v := range []float64{-5, 0, 0.5, 1, 9, 11, 1e9} {
		h.observe(v)
	}
	x := &exposition{}
	x.histogram("h", h, "a", "b\"\\\n")
	want := `h_bucket{a="b\"\\\n",le="0"} 2
h_bucket{a="b\"\\\n",le="1"} 4
h_bucket{a="b\"\\\n",le="10"} 5
h_bucket{a="b\"\\\n",le="+Inf"} 7
h_sum{a="b\"\\\n"} 1.0000000165e+09
h_count{a="b\"\\\n"} 7
`
	if string(x.b) != want {
		t.Errorf("got\n%s", x.b)
	}
}

// Coverage is that of the newest window's first results, delay that of what came as
// it was measured.
func TestMeasures(t *testing.T) {
	m := newMeasures()
	result := func(end int64, revision uint32, observed int64) {
		m.emission(&windowing.Emission{
			Kind: windowing.EmitFeature, Feature: windowing.FeatureID{Name: "f"}, EndMS: end, Revision: revision,
			Coverage: windowing.Coverage{Expected: 10, Observed: observed},
		})
	}
	result(1000, 1, 1)
	result(2000, 1, 5)
	result(2000, 1, 10)
	result(1000, 2, 10)
	result(2000, 2, 10)
	f := m.features["f"]
	if f.endMS != 2000 || f.coverage() != 0.75 || f.provisional != 3 || f.corrected != 2 {
		t.Errorf("%+v, coverage %v", f, f.coverage())
	}
	r := reading.Reading{Tag: reading.MakeTag(reading.Series{Input: "a"}), IngestNS: 5e9, Source: reading.SourceTime{NS: 3e9}}
	r.Stamp.Disposition, r.Stamp.EventNS = reading.Accept, 3e9
	m.input("a").reading(&r, 7)
	r.Delivery, r.Stamp.EventNS = reading.Historical, 4e9
	m.input("a").reading(&r, 8)
	in := m.clone().inputs["a"]
	if in.newestNS != 3e9 || in.heardMS != 8 || in.delay.sum != 2 {
		t.Errorf("%+v", in)
	}
	if names := slices.Collect(maps.Keys(m.inputs)); len(names) != 1 {
		t.Errorf("inputs %q", names)
	}
}

// A certificate's end is told of both ends, and of no one without a certificate.
func TestMetricsOfCertificates(t *testing.T) {
	x := &exposition{}
	writeCertificates(x, "m", &scrape{Status: &Status{
		Inputs:  []InputStatus{{Name: "a", Reader: &ReaderStatus{CertificateEnds: "2026-01-01T00:00:00Z"}}, {Name: "b", Reader: &ReaderStatus{}}, {Name: "c"}},
		Uplinks: []UplinkStatus{{Name: "u", CertificateEnds: "2026-01-01T00:00:10.5Z"}, {Name: "v"}},
	}})
	if want := "m{input=\"a\"} 1.7672256e+09\nm{uplink=\"u\"} 1.76722561e+09\n"; string(x.b) != want {
		t.Errorf("%s", x.b)
	}
}

// A gateway is alive while its pipeline answers, and ready once what arrives is stored
// and windowed, whoever is away.
func TestReadiness(t *testing.T) {
	is := func(b *bench, state string, alive, ready bool) {
		t.Helper()
		if err := b.Alive(t.Context()); (err == nil) != alive {
			t.Errorf("%s: alive: %v", state, err)
		}
		if err := b.Ready(t.Context()); (err == nil) != ready {
			t.Errorf("%s: ready: %v", state, err)
		}
	}
	waits := start(t, filepath.Join(t.TempDir(), "t.db"), "checked")
	is(waits, "the clock was never trusted", true, false)
	b := start(t, filepath.Join(t.TempDir(), "t.db"), "local")
	is(b, "all is well", true, true)
	b.health.set("input in", "the broker is away")
	b.health.set("uplink up", "the broker is away")
	b.health.set("clock", "no server answers")
	is(b, "what is outside is away", true, true)
	b.health.full(fmt.Errorf("no room"))
	is(b, "the disk is full", true, false)
	b.health.full(nil)
	is(b, "there is room again", true, true)
	b.end()
	is(b, "it has stopped", false, false)
}
