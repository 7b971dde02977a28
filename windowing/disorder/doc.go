// Package disorder measures how late and in which order readings arrive, for
// `tidemark advise`: it says what a budget of out-of-orderness and lateness would
// have cost on what was recorded, and which budget to take.
//
// A [Meter] takes readings in their order of arrival, judged by the clock rules,
// and holds none of them. Per partition of each scope it measures
//
//   - disorder, the partition's highest event time on arrival, this reading's
//     included, less the reading's event time: 0 for a reading that is not behind;
//   - delay, ingest time less source time, for readings that have both. It is
//     negative where a source stamps ahead of the gateway.
//
// Both are whole milliseconds, rounded down; event times are floored to
// milliseconds first, as the engine does.
//
// # The model behind shares and recommendations
//
// A reading of disorder d is behind the watermark of its partition when d > B, the
// out-of-orderness (SEMANTICS G1: wm = highest − B − 1 ms). It is too late when
// d > B + L, L being the allowed lateness, and corrected when it is behind and not
// too late. That is exact for an engine with one partition, windows of 1 ms, and a
// watermark emitted after every reading. Otherwise it is an estimate:
//
//   - Longer windows are kinder: a reading has until its window's end. So are
//     watermarks emitted once a batch.
//   - A feature over several partitions is judged by the lowest watermark of those
//     that are active, which is kinder, until one goes idle: then the others go on
//     without it, and what it brings on its return may be later than here.
//   - Repeated readings count as often as they come; the engine drops them.
//
// # What is exact
//
// Counts, minima, maxima, shares and recommendations are exact. Percentiles are by
// nearest rank over buckets, 32 to a doubling: never below the true value, and
// above it by less than 1/32 of its magnitude ([RelativeError]); up to 63 ms they
// are exact.
//
// # Memory
//
// Each scope measures the first [MaxPartitions] partitions and counts the readings
// of any further ones. A partition takes some 300 bytes and ten for each bucket in
// use: of disorder at most 1,300, of delay twice as many, and around a hundred
// where delays are of one order of magnitude.
package disorder
