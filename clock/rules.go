package clock

import (
	"time"

	"tidemark/reading"
)

// Limits of the disposition (SEMANTICS part 2). Nanoseconds.
const (
	// DefaultFutureNS is F: how far ahead of the gateway a reading may claim to be.
	DefaultFutureNS = int64(2 * time.Second)
	// DefaultPastNS is P: how old a reading that is not historical may be.
	DefaultPastNS = int64(7 * 24 * time.Hour)
	// DefaultDelayNS is D_cap: how long a reading may travel where nothing else is
	// known.
	DefaultDelayNS = int64(time.Second)
	// offsetLimit is O: a source clock that is further off is wrong.
	offsetLimit = int64(time.Second)
	// leapAllowance is what a leap or smear window adds.
	leapAllowance = int64(time.Second)
	// regressionAbove is how far an ordered stream may run backward.
	regressionAbove = int64(time.Second)
	// frozenRun readings with one timestamp and changed values, and a lag above
	// frozenLag and the timestamps' resolution, are a clock that stands still.
	frozenRun = 3
	frozenLag = 2 * int64(time.Second)
	// clockFailure and clockNotSynchronized are bits of the IEC 61850-7-2 time
	// quality octet.
	clockFailure         = 0x40
	clockNotSynchronized = 0x20
)

// Years that bound what a timestamp can be, as Unix nanoseconds.
var (
	sentinelBelow = yearNS(1990)
	sentinelFrom  = yearNS(2100)
	plausibleFrom = yearNS(2015)
)

func yearNS(y int) int64 { return time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC).UnixNano() }

// Interval is where a source's clock minus the gateway's lies, in nanoseconds.
type Interval struct{ LoNS, HiNS int64 }

// Unmeasured is the interval of a source that nothing is known of yet.
var Unmeasured = Interval{-int64(time.Second), int64(time.Second)}

// reach returns the largest error of the source's time against true time, if the
// gateway's is within e of it.
func (i Interval) reach(e int64) int64 { return max(abs(i.LoNS-e), abs(i.HiNS+e)) }

// middle returns the middle of the interval, rounded down.
func (i Interval) middle() int64 { return i.LoNS + (i.HiNS-i.LoNS)/2 }

// less returns the interval after a correction by shift.
func (i Interval) less(shift int64) Interval { return Interval{i.LoNS - shift, i.HiNS - shift} }

// History is what a source's earlier readings say about this one's timestamp.
// The zero value says nothing.
type History struct {
	SameTimeRun     int   // readings in a row with this timestamp, this one included
	ValueChanged    bool  // the value changed while the timestamp stood
	ResolutionNS    int64 // of the source's timestamps
	StandstillNS    int64 // how long the timestamp has stood, if HasStandstill; else the lag decides
	HasStandstill   bool
	Ordered         bool  // PrevNS is the time of the reading before in the same ordered stream
	PrevNS          int64 // or reading.NoTime
	CounterSlopeOne bool  // the numbers grow with gateway time, slope 1 ± 0.01
	// Proven is the fault that the stream proved when the reading first came:
	// Frozen, UptimeCounter or Regression; on a second verdict nothing else is left
	// of its stream.
	Proven reading.Reason
}

// Given is all that Judge knows of one reading. Times are Unix nanoseconds.
type Given struct {
	IngestNS int64 // t_i, as recorded
	RetroNS  int64 // an epoch correction, added to t_i before all else
	State    reading.ClockState
	BoundNS  int64 // E, of t_i; -1 if none
	// LocalTrust accepts a clock of state unknown with BoundNS (clock.trust: local).
	LocalTrust bool
	LeapWindow bool

	SourceNS  int64             // t_s, or reading.NoTime
	Fault     reading.TimeFault // why there is no t_s
	Number    Number            // t_s as sent, where it was a number
	TZAssumed bool              // the text named no zone
	// TimeQuality is the IEC 61850 octet, if HasTimeQuality.
	TimeQuality    uint8
	HasTimeQuality bool

	Source        Interval // of the source's clock
	SourceVerdict reading.SourceVerdict
	ZoneMin       int16 // with SourceTZShaped

	ServerNS      int64 // the server's timestamp, or reading.NoTime
	Server        Interval
	ServerVerdict reading.SourceVerdict

	History    History
	Historical bool // of a source's history: never too old, moves no watermark
	Initial    bool // the state of things at arrival: never too old
	Policy     reading.Policy
	// WindowNS is the largest window that selects the reading; 0 if none.
	WindowNS int64
	FutureNS int64 // F
	PastNS   int64 // P
	DelayNS  int64 // D_cap
}

// Verdict is what Judge rules.
type Verdict struct {
	Disposition reading.Disposition
	Reason      reading.Reason
	Flags       reading.Flags
	Basis       reading.Basis
	EventNS     int64            // t_e, or reading.NoTime unless accepted
	EventBound  int64            // E_e; -1 if there is none
	WatermarkNS int64            // the highest time this reading can vouch for, or reading.NoTime
	FitsUnit    reading.TimeUnit // with UnitMismatch: the unit that would do
}
