package clock

import "tidemark/reading"

// nextSteps says in words what is the matter and what a person can do about it.
var nextSteps = map[reading.Reason]string{
	reading.SourceDeclaredBad: "the source itself says that its clock has failed: repair it, or set `when_wrong: use_ingest`",
	reading.Frozen:            "the timestamp stands still while the value changes: repair the source, or set `when_wrong: use_ingest`",
	reading.UptimeCounter:     "the timestamp counts from the device's start: set `timestamps: {use: ingest}`, or `when_wrong: use_ingest`",
	reading.Regression:        "time ran backward in a stream that is in order: set the source's clock, or `ordered: false` if the stream is in no order",
	reading.UnitMismatch:      "the number is a time in another unit: set `time.unit`, or `when_wrong: correct_unit`",
	reading.TSUnparseable:     "the timestamp is no time: look at `time.path` and `time.unit`, or set `when_wrong: use_ingest`",
	reading.TSSentinel:        "the timestamp is no date from 1990 to 2100, as of a device that has not been told the time: set its clock, or `when_wrong: use_ingest`",
	reading.GWUnknown:         "it came in an earlier boot, under a clock that nobody ever checked: no release can decide it",
	reading.GWDisrupted:       "it came in an earlier boot, under a clock that was set and never checked again: no release can decide it",
	reading.GWUnreliable:      "it came in an earlier boot, when time servers contradicted each other: no release can decide it",
	reading.OffsetAhead:       "the source's clock is ahead: set it, or `when_wrong: correct_offset`",
	reading.OffsetBehind:      "the source's clock is behind: set it, or `when_wrong: correct_offset`",
	reading.TZShaped:          "the source sends local time for UTC: set its zone, or `when_wrong: correct_timezone`",
	reading.TAIShaped:         "the source sends TAI for UTC: set its time scale, or `when_wrong: correct_offset`",
	reading.GPSShaped:         "the source sends GPS time for UTC: set its time scale, or `when_wrong: correct_offset`",
	reading.Future:            "the time is ahead of the gateway's: set the source's clock, raise `max_ahead`, or set `when_wrong: use_ingest`",
	reading.TooOld:            "it is older than `max_behind`: if it is wanted, release it, and it counts as history",
	reading.BoundTooWide:      "its time is not known well enough for the largest window: better clocks, a larger window, or a shorter `max_delay`; then release it",
	reading.SourceTimeRange:   "the time leaves the range of the windows: set the source's clock",
	reading.EngineFault:       "the engine failed on it: please report it with the log",
}

// NextStep says in words what is the matter with a reading that is in quarantine for
// r, and what a person can do about it. What helps is done first and released
// after: a release judges by the configuration of then.
func NextStep(r reading.Reason) string { return nextSteps[r] }

// suggestedPolicy is the `when_wrong` that would let such readings in, as far as
// there is one.
func suggestedPolicy(r reading.Reason) (p reading.Policy, ok bool) {
	switch r {
	case reading.OffsetAhead, reading.OffsetBehind, reading.TAIShaped, reading.GPSShaped:
		return reading.PolicyCorrectOffset, true
	case reading.TZShaped:
		return reading.PolicyCorrectTimezone, true
	case reading.UnitMismatch:
		return reading.PolicyCorrectUnit, true
	case reading.SourceDeclaredBad, reading.Frozen, reading.UptimeCounter, reading.TSUnparseable, reading.TSSentinel, reading.Future:
		return reading.PolicyUseIngest, true
	}
	return reading.PolicyReject, false
}
