// Package history is what a person sees when looking inside a gateway: readings
// as they were taken, a window's life, a trace for replay, features as they
// should have been. It is made of journal blocks, by a private engine where that
// is the only true way (law 2), and changes nothing.
//
// The work is done wherever the caller runs, mostly in a command beside the
// gateway: the gateway only hands blocks out, in short read transactions. Memory
// is bounded by the windows of an engine, never by the journal.
package history
