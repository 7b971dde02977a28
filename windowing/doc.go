// Package windowing is the engine: it turns judged readings into revisions of
// windows. SEMANTICS part 1 is its contract; tests cite the rules by number.
//
// An Engine is a pure, deterministic state machine. [Engine.Step] takes one
// [tidemark/reading.Batch] and returns everything that follows from it; time
// enters as data, nothing leaves but the [Output]. There is no clock, no
// goroutine, no context, no I/O and no logger in this package, and no map is
// iterated on a way that reaches the output. So re-stepping a journal gives the
// same emissions, byte for byte (law 2), and a snapshot restored and continued
// equals never having stopped.
//
// A replay and a running gateway differ in configuration only: spacing of
// corrections, lag limit, idle flush and how long the identity of late evidence
// is remembered.
//
// # What the functions cost
//
// count, sum, mean, min, max, range, first, last, delta, stddev, variance, rms
// and slope are kept incrementally: an open window costs 300 to 400 bytes
// however many readings it has (slope about 200 more). Sums are exact, so the
// order of arrival cannot show.
//
// Percentiles, time_weighted_mean, integral, state_duration_s.*, state_share.*
// and transitions keep the key's readings from the oldest open window on, once
// for all its windows: 14 bytes each, and the event id where a source sends one and
// the order matters.
//
// # Definitions
//
// Percentiles are exact, by nearest rank: p of n readings is the ⌈p·n/100⌉-th
// smallest. variance and stddev are those of the readings as a whole population
// (divided by n). slope is least squares, per second. delta is last − first,
// range is max − min. time_weighted_mean integrates the held value over the
// covered part of the window; integral is value·seconds over it. transitions
// counts changes between neighbouring readings, the carried-in one included;
// nothing is compared across a bad reading. first and last go by (event time,
// id, value). count counts good and uncertain readings of any type, all other
// statistics numbers alone (the state functions take any value).
package windowing
