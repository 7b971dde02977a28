package disorder

import (
	"cmp"
	"slices"
)

// Report is what a meter has measured. Its JSON is part of what users build on.
type Report struct {
	Readings uint64 `json:"readings"`
	// OutOfRange readings have no event time that counts and are in nothing below;
	// WithoutIngest readings have no delay; StampedAhead readings have one below 0.
	OutOfRange    uint64 `json:"out_of_range_readings"`
	WithoutIngest uint64 `json:"without_ingest_time_readings"`
	StampedAhead  uint64 `json:"stamped_ahead_readings"`

	RelativeError float64 `json:"percentile_relative_error"` // upwards only
	GoalBehind    float64 `json:"goal_behind"`
	GoalTooLate   float64 `json:"goal_too_late"`

	Scopes []ScopeReport `json:"scopes"` // input, device, sensor
}

// ScopeReport is what was measured with one kind of partition.
type ScopeReport struct {
	Scope      Scope `json:"scope"`
	Partitions int   `json:"partitions"`
	// Measured readings are what shares are of; Unmeasured are of partitions
	// beyond MaxPartitions.
	Measured   uint64 `json:"measured_readings"`
	Unmeasured uint64 `json:"unmeasured_readings"`

	Disorder Distribution `json:"disorder"`
	Delay    Distribution `json:"delay"`
	Bins     []Bin        `json:"disorder_bins"`
	Budgets  []Cost       `json:"budgets"`
	// Recommended is nil if nothing up to LongestRungMS keeps to the goals.
	Recommended *Cost `json:"recommended"`
}

// Distribution is of all partitions together, nil if there is nothing, and of the
// worst: by p99.9, then maximum, then name.
type Distribution struct {
	All      *Summary `json:"all"`
	Worst    []Row    `json:"worst"`
	NotShown int      `json:"not_shown"` // partitions that have values, beyond the worst
}

// Row is of one partition.
type Row struct {
	Name
	Summary
}

// Bin counts disorders above the bin before, up to and with UpToMS, or without
// end if that is nil.
type Bin struct {
	UpToMS   *int64 `json:"up_to_ms"`
	Readings uint64 `json:"readings"`
}

// Cost is what a budget would have cost, as shares of the measured readings and in
// readings.
type Cost struct {
	Budget
	Corrected         float64 `json:"corrected"`
	CorrectedReadings uint64  `json:"corrected_readings"`
	TooLate           float64 `json:"too_late"`
	TooLateReadings   uint64  `json:"too_late_readings"`
}

// Report returns what was measured so far, with at most top partitions in each
// list of the worst.
func (m *Meter) Report(top int) *Report {
	r := &Report{
		Readings: m.readings, OutOfRange: m.outOfRange, WithoutIngest: m.withoutIngest, StampedAhead: m.ahead,
		RelativeError: RelativeError, GoalBehind: GoalBehind, GoalTooLate: GoalTooLate,
	}
	for i := range m.scopes {
		r.Scopes = append(r.Scopes, m.scopes[i].report(m.budgets, top))
	}
	return r
}

func (s *scopeMeter) report(budgets []Budget, top int) ScopeReport {
	r := ScopeReport{
		Scope: s.scope, Partitions: len(s.partitions), Measured: s.behind.n, Unmeasured: s.unmeasured,
		Disorder:    s.distribution(&s.disorder, func(p *partition) *histogram { return &p.disorder }, top),
		Delay:       s.distribution(&s.delay, func(p *partition) *histogram { return &p.delay }, top),
		Bins:        s.behind.bins(),
		Budgets:     []Cost{},
		Recommended: s.behind.recommend(),
	}
	for _, b := range budgets {
		r.Budgets = append(r.Budgets, s.behind.cost(b))
	}
	return r
}

func (s *scopeMeter) distribution(all *histogram, of func(*partition) *histogram, top int) Distribution {
	rows := []Row{}
	for _, p := range s.partitions {
		if sum := of(p).summary(); sum != nil {
			rows = append(rows, Row{p.name, *sum})
		}
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.P999MS, a.P999MS), cmp.Compare(b.MaxMS, a.MaxMS), a.compare(b.Name))
	})
	shown := min(top, len(rows))
	return Distribution{All: all.summary(), Worst: rows[:shown:shown], NotShown: len(rows) - shown}
}

func (n Name) compare(o Name) int {
	return cmp.Or(cmp.Compare(n.Input, o.Input), cmp.Compare(n.Device, o.Device), cmp.Compare(n.Asset, o.Asset), cmp.Compare(n.Sensor, o.Sensor))
}
