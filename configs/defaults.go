package configs

import (
	"slices"
	"strconv"
	"time"

	"tidemark/reading"
)

// A type with setDefaults has values where the file says nothing. The tree so far
// is handed in, because features take theirs from `defaults`. A struct sets its
// own fields only, never those of a struct inside it that sets defaults too.
type defaulter interface{ setDefaults(*Config) }

func (c *Clock) setDefaults(*Config) {
	c.Trust = TrustChecked
	c.LocalBound = Duration(time.Second)
	c.PollMin, c.PollMax = Duration(64*time.Second), Duration(1024*time.Second)
}

// maxQuota is what a store may grow to at most; on 32 bits the file no longer
// fits into the address space beyond it.
const maxQuota = Bytes(1) << (29 + 11*(strconv.IntSize/64))

func (s *Store) setDefaults(*Config) {
	*s = Store{
		Path:           ServiceDir + "/tidemark.db",
		Quota:          min(2<<30, maxQuota),
		Retain:         7 * Day,
		WhenFull:       DropOldestRaw,
		CommitInterval: Duration(time.Second),
		CommitBytes:    256000,
		CommitMinGap:   Duration(20 * time.Millisecond),
		DailyBudget:    40e9,
	}
}

func (w *Web) setDefaults(*Config) { w.Listen = "127.0.0.1:8080" }

func (l *Limits) setDefaults(*Config) {
	*l = Limits{MaxOpenWindows: 1_000_000, ForgetAfter: Day, CatchupMax: Duration(10 * time.Minute)}
}

func (d *Defaults) setDefaults(*Config) {
	*d = Defaults{
		Window:          Duration(5 * time.Minute),
		OutOfOrderness:  Duration(20 * time.Second),
		AllowedLateness: Duration(10 * time.Minute),
		IdleAfter:       Duration(time.Minute),
		CorrectEvery:    Duration(10 * time.Second),
		FlushAfter:      Duration(15 * time.Minute),
		MaxWatermarkLag: Duration(time.Hour),
		Functions:       []string{"count", "mean", "min", "max"},
	}
}

func (l *Lifecycle) setDefaults(*Config) { l.From = Time(reading.NoTime) }

func (f *Feature) setDefaults(c *Config) {
	d := c.Defaults
	*f = Feature{
		Version: 1, Scope: ScopeInput, Quality: QualityAll,
		Functions: slices.Clone(d.Functions), Window: d.Window, OutOfOrderness: d.OutOfOrderness,
		AllowedLateness: d.AllowedLateness, IdleAfter: d.IdleAfter, CorrectEvery: d.CorrectEvery,
		FlushAfter: d.FlushAfter, MaxWatermarkLag: d.MaxWatermarkLag,
	}
}

func (u *Uplink) setDefaults(*Config) { u.Prefix, u.Publish = "tidemark", PublishAll }

func (b *Backlog) setDefaults(*Config) { b.Order = LiveFirst }

func (t *Timestamps) setDefaults(*Config) {
	*t = Timestamps{Use: UseSource, WhenWrong: reading.PolicyReject, Zone: UTC(),
		MaxAhead: Duration(2 * time.Second), MaxBehind: 7 * Day, MaxDelay: Duration(time.Second)}
}

func (in *Input) setDefaults(*Config) { in.Identity = IdentityAuto }

func (m *MQTTInput) setDefaults(*Config) {
	m.ReceiveMaximum, m.MaxPayload, m.MaxSeries = 2048, 1<<20, 20_000
	m.KeepAlive, m.SessionExpiry = Duration(30*time.Second), Day
}

func (s *Subscribe) setDefaults(*Config) { s.QoS, s.Format = 1, FormatJSON }

func (c *CSV) setDefaults(*Config) { c.Separator = "," }

func (p *Presence) setDefaults(*Config) { p.QoS, p.Gone = 1, []string{"offline"} }

func (s *Sensor) setDefaults(*Config) { s.Type, s.Scale = TypeNumber, 1 }

func (o *OPCUA) setDefaults(*Config) {
	o.Security = "Basic256Sha256/SignAndEncrypt"
	o.Sampling, o.Publishing = Duration(time.Second), Duration(time.Second)
}

func (b *Backfill) setDefaults(*Config) { b.Max = Day }

func (n *Nodes) setDefaults(*Config) { n.NewTags, n.Trigger = NewTagsReport, TriggerStatusValue }

// defaultFeature is what a file without the key `features` gets: one feature over
// every number, with the window and the functions of `defaults`.
func defaultFeature(c *Config) Feature {
	var f Feature
	f.setDefaults(c)
	f.Name, f.Select.Type, f.Every = "default", TypeNumber, f.Window
	return f
}
