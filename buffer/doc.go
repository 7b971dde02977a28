// Package buffer is the gateway's store: one bbolt file that holds the journal,
// the outbox, checkpoints, evidence and small named values, so that one
// transaction covers whatever follows from a batch. It knows nothing of what it
// keeps: opaque bytes go in and come out.
//
// # Promises
//
//   - What Commit returned nil for is on disk, all of it: a power cut afterwards
//     loses nothing, a power cut before leaves nothing of it.
//   - What is read is what was written, or an error says that the file is damaged.
//     Every value carries a CRC32C that covers its place too.
//   - Nothing is dropped in silence: what the quota pushes out stands in Losses
//     until the caller has reported it, across crashes.
//   - A fault inside the file's pages becomes an error, never a crash.
//
// # Who may call what when
//
// Commit and FlushCursors exclude each other and may be called from any
// goroutine; everything else may run beside them and beside itself. An Outbox
// belongs to one goroutine, but what says or asks how much is delivered may be called
// by any.
//
// Reads are short transactions that copy out, since a long one pins every page
// that is freed meanwhile. Memory does not depend on how much is stored.
//
// Time enters as data: the store reads no clock. See DESIGN.md for the bytes on
// disk, what is assumed of the disk, and what happens when something breaks.
package buffer
