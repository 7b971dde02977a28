// Package reading is the vocabulary that every room of Tidemark shares: what a
// sensor said (Reading), who said it (Series), how far its times can be trusted
// (Stamp), what a source handed over in one piece (Parcel), and the unit that
// is written to the journal and stepped through the engine (Batch).
//
// It knows no clock, no file and no network; everything in it is data.
//
// Times are int64 with the unit in the name: NS is nanoseconds, MS milliseconds,
// both since 1970-01-01T00:00:00Z unless the name says gateway time, which is a
// duration line of its own. NoTime stands for "there is none".
package reading
