package gateway

import (
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"time"

	"tidemark/buffer"
	"tidemark/reading"
)

// metric is one row of what /metrics shows: its name and meaning, and how its
// samples come from a scrape.
type metric struct {
	name, kind, help string
	write            func(x *exposition, name string, s *scrape)
}

// Kinds of metrics, as the format spells them.
const (
	counter = "counter"
	gauge   = "gauge"
	buckets = "histogram"
)

// scrape is everything at one moment.
type scrape struct {
	*Status
	*measures
	now     reading.Instant
	waiting map[string]buffer.Waiting // by uplink
}

// metrics are the contract's, in its order.
var metrics = []metric{
	{"tidemark_readings_total", counter, "Readings received, by what became of them; quarantined and pending count what went in, accepted and duplicate also what came out again.", writeReadings},
	{"tidemark_quarantine_readings", gauge, "Readings in quarantine now.", sumOf(func(in *InputStatus) int64 { return in.QuarantinedNow })},
	{"tidemark_pending_readings", gauge, "Readings that wait for the gateway's clock to be trusted.", sumOf(func(in *InputStatus) int64 { return in.PendingNow })},
	{"tidemark_feature_assignments_total", counter, "Pairs of a reading and a window that it belongs to, by what became of them.", writeAssignments},
	{"tidemark_source_delay_seconds", buckets, "Time of arrival less source time, of readings that came as they were measured; below 0 the source's clock is ahead.", writeDelays},
	{"tidemark_watermark_lag_seconds", gauge, "Wall time less the highest source time of the input, which its watermarks follow.", writeLags},
	{"tidemark_feature_age_seconds", gauge, "Wall time less the end of the feature's newest window that has a result.", eachFeature(func(s *scrape, f *featureMeasures) float64 { return float64(s.now.WallNS)/1e9 - float64(f.endMS)/1e3 })},
	{"tidemark_features_total", counter, "Results of windows since the gateway started, first ones and corrections.", writeFeatures},
	{"tidemark_coverage_ratio", gauge, "Readings seen per reading expected, over the sensors of the feature's newest window.", eachFeature(func(_ *scrape, f *featureMeasures) float64 { return f.coverage() })},
	{"tidemark_input_up", gauge, "1 if the input's source is connected.", writeUp},
	{"tidemark_input_idle", gauge, "1 if the input is idle for some feature, and holds no watermark back.", writeIdle},
	{"tidemark_last_data_seconds", gauge, "Seconds since the input's latest reading was committed.", writeHeard},
	{"tidemark_clock_error_bound_seconds", gauge, "The largest error of the gateway's clock. Absent while none is known.", single(func(s *scrape) float64 { return known(s.now.BoundNS >= 0, s.now.BoundNS) })},
	{"tidemark_clock_offset_seconds", gauge, "True time less the gateway's clock, the middle of what its servers allow.", single(func(s *scrape) float64 { return known(s.Clock.HasOffset, (s.Clock.OffsetLoNS+s.Clock.OffsetHiNS)/2) })},
	{"tidemark_clock_state", gauge, "1 for the state that the gateway's clock is in.", writeClockStates},
	{"tidemark_source_clock_offset_seconds", gauge, "A source's clock less the gateway's: the end of what is possible that is nearest to 0. The worst of the sources.", writeSources},
	{"tidemark_buffer_bytes", gauge, "Bytes of the store in use.", single(func(s *scrape) float64 { return float64(s.Store.UsedBytes) })},
	{"tidemark_buffer_quota_bytes", gauge, "Bytes that the store may use.", single(func(s *scrape) float64 { return float64(s.Store.QuotaBytes) })},
	{"tidemark_outbox_records", gauge, "Records that the uplink has not delivered.", eachUplink(func(_ *scrape, w buffer.Waiting) float64 { return float64(w.Records) })},
	{"tidemark_outbox_oldest_seconds", gauge, "Age of the oldest record that the uplink has not delivered, 0 if there is none.", eachUplink((*scrape).age)},
	{"tidemark_commit_seconds", buckets, "How long commits take, with their fsync.", func(x *exposition, name string, s *scrape) { x.histogram(name, s.commit) }},
	{"tidemark_evidence_store_failures_total", counter, "Commits that the store refused for want of room, or that failed.", single(func(s *scrape) float64 { return float64(s.failures) })},
	{"tidemark_lost_readings_total", counter, "What had to be dropped, by kind: readings, records or evidence.", writeLost},
	{"tidemark_disk_free_bytes", gauge, "Bytes that are free on the store's file system.", single(func(s *scrape) float64 {
		if s.Store.FreeBytes < 0 {
			return math.NaN()
		}
		return float64(s.Store.FreeBytes)
	})},
	{"tidemark_certificate_end_timestamp_seconds", gauge, "When the certificate of the other end or the one that is shown to it ends, whichever is first, as Unix time. Absent without any.", writeCertificates},
}

// single is a metric of one sample.
func single(value func(*scrape) float64) func(*exposition, string, *scrape) {
	return func(x *exposition, name string, s *scrape) { x.sample(name, value(s)) }
}

// known is nanoseconds in seconds, and not a number where they are not known.
func known(ok bool, ns int64) float64 {
	if !ok {
		return math.NaN()
	}
	return float64(ns) / 1e9
}

func sumOf(value func(*InputStatus) int64) func(*exposition, string, *scrape) {
	return single(func(s *scrape) (sum float64) {
		for i := range s.Inputs {
			sum += float64(value(&s.Inputs[i]))
		}
		return sum
	})
}

func writeReadings(x *exposition, name string, s *scrape) {
	for i := range s.Inputs {
		c := &s.Inputs[i].Counts
		for _, o := range [...]struct {
			outcome string
			n       uint64
		}{
			{"accepted", c.Accepted + c.PendingAccepted + c.ReleasedAccepted},
			{"duplicate", c.Duplicate + c.PendingDuplicate + c.ReleasedDuplicate},
			{"malformed", c.Malformed}, {"unmatched", c.Unmatched},
			{"quarantined", c.Quarantined + c.PendingQuarantined}, {"pending", c.Pending},
		} {
			x.sample(name, float64(o.n), "input", s.Inputs[i].Name, "outcome", o.outcome)
		}
	}
}

func writeAssignments(x *exposition, name string, s *scrape) {
	for i := range s.Features {
		f := &s.Features[i]
		x.sample(name, float64(f.Windowed), "feature", f.Name, "outcome", "windowed")
		x.sample(name, float64(f.Late), "feature", f.Name, "outcome", "late")
		x.sample(name, float64(f.Excluded), "feature", f.Name, "outcome", "excluded")
	}
}

// measured calls f with the inputs that readings came from.
func (s *scrape) measured(f func(name string, in *inputMeasures)) {
	for i := range s.Inputs {
		if in := s.inputs[s.Inputs[i].Name]; in != nil && in.heardMS != reading.NoTime {
			f(s.Inputs[i].Name, in)
		}
	}
}

func writeDelays(x *exposition, name string, s *scrape) {
	s.measured(func(input string, in *inputMeasures) { x.histogram(name, in.delay, "input", input) })
}

func writeLags(x *exposition, name string, s *scrape) {
	s.measured(func(input string, in *inputMeasures) {
		x.sample(name, known(in.newestNS != reading.NoTime, s.now.WallNS-in.newestNS), "input", input)
	})
}

func writeHeard(x *exposition, name string, s *scrape) {
	s.measured(func(input string, in *inputMeasures) {
		x.sample(name, float64(s.now.GatewayMS-in.heardMS)/1e3, "input", input)
	})
}

func writeUp(x *exposition, name string, s *scrape) {
	for i := range s.Inputs {
		if r := s.Inputs[i].Reader; r != nil {
			x.sample(name, truth(r.State == "connected"), "input", s.Inputs[i].Name)
		}
	}
}

func writeCertificates(x *exposition, name string, s *scrape) {
	for i := range s.Inputs {
		if r := s.Inputs[i].Reader; r != nil {
			x.sample(name, unix(r.CertificateEnds), "input", s.Inputs[i].Name)
		}
	}
	for i := range s.Uplinks {
		x.sample(name, unix(s.Uplinks[i].CertificateEnds), "uplink", s.Uplinks[i].Name)
	}
}

// unix is a time in seconds, and not a number where there is none.
func unix(text string) float64 {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return math.NaN()
	}
	return float64(t.Unix())
}

func writeIdle(x *exposition, name string, s *scrape) {
	for i := range s.Inputs {
		input := s.Inputs[i].Name
		idle := slices.ContainsFunc(s.Features, func(f FeatureStatus) bool { return slices.Contains(f.Idle, input) })
		x.sample(name, truth(idle), "input", input)
	}
}

func truth(v bool) float64 {
	if v {
		return 1
	}
	return 0
}

// eachFeature is a metric of the features that have given a result.
func eachFeature(value func(*scrape, *featureMeasures) float64) func(*exposition, string, *scrape) {
	return func(x *exposition, name string, s *scrape) {
		for _, feature := range slices.Sorted(maps.Keys(s.features)) {
			f := s.features[feature]
			x.sample(name, value(s, &f), "feature", feature)
		}
	}
}

func writeFeatures(x *exposition, name string, s *scrape) {
	for _, feature := range slices.Sorted(maps.Keys(s.features)) {
		f := s.features[feature]
		x.sample(name, float64(f.provisional), "feature", feature, "status", "provisional")
		x.sample(name, float64(f.corrected), "feature", feature, "status", "corrected")
	}
}

func writeClockStates(x *exposition, name string, s *scrape) {
	for state := reading.ClockUnknown; state <= reading.ClockUnreliable; state++ {
		x.sample(name, truth(s.Clock.State == state.String()), "state", state.String())
	}
}

// sourcesMax bounds the series of sources' clocks, which are as many as devices.
const sourcesMax = 20

func writeSources(x *exposition, name string, s *scrape) {
	for i, src := range s.Clock.Sources {
		if i == sourcesMax {
			return
		}
		nearest := int64(0) // as long as none is proved
		if src.OffsetLoNS > 0 {
			nearest = src.OffsetLoNS
		} else if src.OffsetHiNS < 0 {
			nearest = src.OffsetHiNS
		}
		x.sample(name, float64(nearest)/1e9, "input", src.Input, "device", src.Device)
	}
}

func eachUplink(value func(*scrape, buffer.Waiting) float64) func(*exposition, string, *scrape) {
	return func(x *exposition, name string, s *scrape) {
		for _, uplink := range slices.Sorted(maps.Keys(s.waiting)) {
			x.sample(name, value(s, s.waiting[uplink]), "uplink", uplink)
		}
	}
}

// age is that of the oldest record, 0 if none waits or its time is not known.
func (s *scrape) age(w buffer.Waiting) float64 {
	if w.Records == 0 || w.OldestMS == 0 {
		return 0
	}
	return max(0, float64(s.now.WallNS)/1e9-float64(w.OldestMS)/1e3)
}

func writeLost(x *exposition, name string, s *scrape) {
	for _, kind := range lostKinds {
		x.sample(name, float64(s.Lost[kind]), "reason", kind)
	}
}

// Metrics returns what /metrics shows.
func (s *session) Metrics(ctx context.Context) ([]byte, error) {
	st, err := s.status(ctx)
	if err != nil {
		return nil, err
	}
	c := &scrape{Status: st, now: s.clk.Now(), waiting: map[string]buffer.Waiting{}}
	if err := s.pipe.ask(ctx, func() { c.measures = s.pipe.measures.clone() }); err != nil {
		return nil, err
	}
	for _, u := range s.uplinks {
		if c.waiting[u.name], err = s.store.Outbox(u.name).Waiting(); err != nil {
			return nil, err
		}
	}
	x := &exposition{}
	for i := range metrics {
		x.family(&metrics[i])
		metrics[i].write(x, metrics[i].name, c)
	}
	return x.b, nil
}

// Alive returns nil if the pipeline answers.
func (s *session) Alive(ctx context.Context) error { return s.pipe.ask(ctx, func() {}) }

// Ready returns nil if what arrives is stored and windowed: the store takes it, and
// the gateway's clock was trusted once.
func (s *session) Ready(ctx context.Context) error {
	generation := uint64(0)
	if err := s.pipe.ask(ctx, func() { generation = s.pipe.ledger.Generation }); err != nil {
		return err
	}
	if generation == 0 {
		return errors.New("the gateway's clock was not trusted yet: readings are stored and wait")
	}
	for _, f := range s.health.list() {
		if f.Name == "disk" {
			return errors.New(f.Detail)
		}
	}
	return nil
}
