package disorder_test

import (
	"encoding/json"
	"fmt"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidemark/reading"
	"tidemark/windowing/disorder"
)

// arrive makes an accepted reading; ingest may be reading.NoTime.
func arrive(s reading.Series, sourceNS, ingestNS int64) *reading.Reading {
	return &reading.Reading{
		Tag: reading.MakeTag(s), Source: reading.SourceTime{NS: sourceNS}, IngestNS: ingestNS,
		Stamp: reading.Stamp{Disposition: reading.Accept, EventNS: sourceNS},
	}
}

func series(device, sensor string) reading.Series {
	return reading.Series{Input: "A", Device: device, Asset: "m", Sensor: sensor}
}

const ms = 1_000_000 // nanoseconds

// Five readings by hand:
//
//	device sensor  event   ingest    input d1/d2 s1/s2  delay
//	d1     s1      10000   10100         0     0     0    100
//	d2     s2       4000   10200      6000     0     0   6200
//	d2     s1       9000   none       1000     0  1000      –
//	d1     s1       9999.9 9999.8        1     1     1     -1
//	d1     s1      out of range
func fiveByHand() *disorder.Meter {
	m := disorder.New([]disorder.Budget{
		{OutOfOrdernessMS: 0, AllowedLatenessMS: 999}, {OutOfOrdernessMS: 1, AllowedLatenessMS: 999},
		{OutOfOrdernessMS: 1000, AllowedLatenessMS: 4999, Names: []string{"f"}}, {OutOfOrdernessMS: 5999, AllowedLatenessMS: math.MaxInt64},
	})
	m.Add(arrive(series("d1", "s1"), 10000*ms, 10100*ms))
	m.Add(arrive(series("d2", "s2"), 4000*ms, 10200*ms))
	m.Add(arrive(series("d2", "s1"), 9000*ms, reading.NoTime))
	m.Add(arrive(series("d1", "s1"), 9999*ms+900_000, 9999*ms+800_000))
	bad := arrive(series("d1", "s1"), reading.NoTime, 10300*ms)
	bad.Source.Fault, bad.Stamp.Disposition = reading.TimeRange, reading.Quarantine
	m.Add(bad)
	return m
}

func TestByHand(t *testing.T) {
	r := fiveByHand().Report(1)
	if r.Readings != 5 || r.OutOfRange != 1 || r.WithoutIngest != 1 || r.StampedAhead != 1 {
		t.Errorf("counts: %+v", r)
	}
	input, device, sensor := r.Scopes[0], r.Scopes[1], r.Scopes[2]
	sum := func(n uint64, lo, p50, hi int64) *disorder.Summary {
		return &disorder.Summary{Count: n, MinMS: lo, P50MS: p50, P90MS: hi, P99MS: hi, P999MS: hi, MaxMS: hi}
	}
	for _, c := range []struct {
		name      string
		got, want any
	}{
		{"input partitions", input.Partitions, 1},
		{"device partitions", device.Partitions, 2},
		{"sensor partitions", sensor.Partitions, 2},
		{"input disorder", input.Disorder.All, sum(4, 0, 1, 6000)},
		{"device disorder", device.Disorder.All, sum(4, 0, 0, 1)},
		{"sensor disorder", sensor.Disorder.All, sum(4, 0, 0, 1000)},
		{"delay", input.Delay.All, sum(3, -1, 101, 6200)}, // 100 lies in the bucket of 100 and 101
		{"worst device by disorder", device.Disorder.Worst, []disorder.Row{{Name: disorder.Name{Input: "A", Device: "d1"}, Summary: *sum(2, 0, 0, 1)}}},
		{"devices not shown", device.Disorder.NotShown, 1},
		{"worst device by delay", device.Delay.Worst, []disorder.Row{{Name: disorder.Name{Input: "A", Device: "d2"}, Summary: *sum(1, 6200, 6200, 6200)}}},
		{"worst sensor by delay", sensor.Delay.Worst[0].Name, disorder.Name{Input: "A", Asset: "m", Sensor: "s2"}},
		{"input costs", costs(input), []string{"0+999: 1 2", "1+999: 1 1", "1000+4999: 0 1", "5999+9223372036854775807: 1 0"}},
		{"sensor costs", costs(sensor), []string{"0+999: 1 1", "1+999: 1 0", "1000+4999: 0 0", "5999+9223372036854775807: 0 0"}},
		{"input recommended", *input.Recommended, disorder.Cost{Budget: disorder.Budget{OutOfOrdernessMS: 10_000}}},
		{"device recommended", *device.Recommended, disorder.Cost{Budget: disorder.Budget{OutOfOrdernessMS: 10}}},
		{"input bins", binCounts(input), []uint64{1, 1, 0, 1, 0, 1}},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

func costs(s disorder.ScopeReport) (all []string) {
	for _, c := range s.Budgets {
		all = append(all, fmt.Sprintf("%d+%d: %d %d", c.OutOfOrdernessMS, c.AllowedLatenessMS, c.CorrectedReadings, c.TooLateReadings))
	}
	return all
}

func binCounts(s disorder.ScopeReport) (all []uint64) {
	for _, b := range s.Bins {
		all = append(all, b.Readings)
	}
	return all
}

// JSON is part of what users build on.
func TestJSON(t *testing.T) {
	m := disorder.New([]disorder.Budget{{OutOfOrdernessMS: 100, AllowedLatenessMS: 50, Names: []string{"f"}}})
	m.Add(arrive(reading.Series{Input: "A", Sensor: "s"}, 0, 20*ms))
	m.Add(arrive(reading.Series{Input: "A", Sensor: "s"}, -120*ms, reading.NoTime))
	got, err := json.Marshal(m.Report(1).Scopes[2])
	if err != nil {
		t.Fatal(err)
	}
	want := `{"scope":"sensor","partitions":1,"measured_readings":2,"unmeasured_readings":0,` +
		`"disorder":{"all":{"count":2,"min_ms":0,"p50_ms":0,"p90_ms":120,"p99_ms":120,"p99_9_ms":120,"max_ms":120},` +
		`"worst":[{"input":"A","sensor":"s","count":2,"min_ms":0,"p50_ms":0,"p90_ms":120,"p99_ms":120,"p99_9_ms":120,"max_ms":120}],"not_shown":0},` +
		`"delay":{"all":{"count":1,"min_ms":20,"p50_ms":20,"p90_ms":20,"p99_ms":20,"p99_9_ms":20,"max_ms":20},` +
		`"worst":[{"input":"A","sensor":"s","count":1,"min_ms":20,"p50_ms":20,"p90_ms":20,"p99_ms":20,"p99_9_ms":20,"max_ms":20}],"not_shown":0},` +
		`"disorder_bins":[{"up_to_ms":0,"readings":1},{"up_to_ms":10,"readings":0},{"up_to_ms":100,"readings":0},{"up_to_ms":1000,"readings":1}],` +
		`"budgets":[{"out_of_orderness_ms":100,"allowed_lateness_ms":50,"names":["f"],"corrected":0.5,"corrected_readings":1,"too_late":0,"too_late_readings":0}],` +
		`"recommended":{"out_of_orderness_ms":200,"allowed_lateness_ms":0,"corrected":0,"corrected_readings":0,"too_late":0,"too_late_readings":0}}`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestNothing(t *testing.T) {
	for _, s := range disorder.New(disorder.Candidates()).Report(5).Scopes {
		if s.Disorder.All != nil || s.Delay.All != nil || s.Recommended != nil || len(s.Bins) > 0 || len(s.Budgets) != len(disorder.Candidates()) {
			t.Errorf("of nothing: %+v", s)
		}
	}
}

// The ends of time are 584 years apart, which is more than int64 nanoseconds hold.
func TestEndsOfTime(t *testing.T) {
	m := disorder.New(nil)
	m.Add(arrive(series("d", "s"), math.MaxInt64, math.MinInt64+1))
	m.Add(arrive(series("d", "s"), math.MinInt64+1, math.MaxInt64))
	s := m.Report(1).Scopes[0]
	const apart = 18_446_744_073_709 // ms
	if d := s.Disorder.All.MaxMS; d != apart {
		t.Errorf("disorder %d", d)
	}
	if lo, hi := s.Delay.All.MinMS, s.Delay.All.MaxMS; lo != -apart-1 || hi != apart {
		t.Errorf("delays %d and %d", lo, hi)
	}
	if s.Recommended != nil {
		t.Errorf("recommended %+v", s.Recommended)
	}
}

// Of 20,000 readings 20 may be behind and 2 too late, not one more.
func TestRecommendationKeepsToTheGoals(t *testing.T) {
	for _, c := range []struct {
		name        string
		behind      map[int64]int // readings by their disorder in ms
		bound, late int64
	}{
		{"all in order", nil, 0, 0},
		{"20 behind by 2 s", map[int64]int{2000: 20}, 0, 2000},
		{"21 behind by 2 s", map[int64]int{2000: 21}, 2000, 0},
		{"21 behind by 2001 ms", map[int64]int{2001: 21}, 3000, 0},
		{"2 very late", map[int64]int{2000: 18, 86_400_000: 2}, 0, 2000},
		{"3 very late", map[int64]int{2000: 18, 86_400_000: 3}, 2000, 86_400_000},
		{"sum of both counts", map[int64]int{1000: 30, 31_000: 3}, 1000, 30_000},
	} {
		m := disorder.New(nil)
		const start = 1_767_225_600_000 * ms
		for n := 20_000; n > 0; n-- {
			at := int64(start)
			for d, left := range c.behind {
				if left > 0 && n < 20_000 {
					c.behind[d]--
					at -= d * ms
					break
				}
			}
			m.Add(arrive(series("d", "s"), at, reading.NoTime))
		}
		if got := m.Report(0).Scopes[0].Recommended; got == nil || got.OutOfOrdernessMS != c.bound || got.AllowedLatenessMS != c.late {
			t.Errorf("%s: recommended %+v, want %d and %d", c.name, got, c.bound, c.late)
		}
	}
}

// Partitions beyond the bound are counted and left out; those within go on.
func TestMorePartitionsThanMeasured(t *testing.T) {
	m := disorder.New(nil)
	for range 2 {
		for i := range disorder.MaxPartitions + 7 {
			m.Add(arrive(series("d", fmt.Sprint(i)), int64(i)*ms, int64(i)*ms))
		}
	}
	r := m.Report(3)
	if s := r.Scopes[1]; s.Partitions != 1 || s.Unmeasured != 0 || s.Measured != 2*(disorder.MaxPartitions+7) {
		t.Errorf("devices: %+v", s)
	}
	s := r.Scopes[2]
	if s.Partitions != disorder.MaxPartitions || s.Unmeasured != 14 || s.Measured != 2*disorder.MaxPartitions ||
		len(s.Disorder.Worst) != 3 || s.Disorder.NotShown != disorder.MaxPartitions-3 {
		t.Errorf("sensors: %d partitions, %d measured, %d not, %d shown, %d not shown",
			s.Partitions, s.Measured, s.Unmeasured, len(s.Disorder.Worst), s.Disorder.NotShown)
	}
}

func TestUseMergesEqualBudgets(t *testing.T) {
	b := func(outOfOrderness, lateness int64, names ...string) disorder.Budget {
		return disorder.Budget{OutOfOrdernessMS: outOfOrderness, AllowedLatenessMS: lateness, Names: names}
	}
	all := []disorder.Budget{b(0, 10), b(5, 10)}
	all = disorder.Use(all, b(5, 10), "x")
	all = disorder.Use(all, b(0, 20), "y")
	all = disorder.Use(all, b(5, 10), "z")
	all = disorder.Use(all, b(9, 0), "w")
	want := []disorder.Budget{b(0, 10), b(0, 20, "y"), b(5, 10, "x", "z"), b(9, 0, "w")}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Error(diff)
	}
}
