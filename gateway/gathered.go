package gateway

import (
	"time"

	"tidemark/buffer"
	"tidemark/reading"
)

// gathered is what the next commit will hold: what has come since the last one.
type gathered struct {
	batch    reading.Batch
	pending  int           // readings of the batch that wait for a second verdict
	parcels  int           // that bring news
	since    time.Duration // arrival of the first of them
	stalled  bool          // a source waits for its acknowledgement
	rejects  []rejected
	events   []buffer.Record
	evidence []buffer.Evidence
	untimed  map[string]untimed // by input
	lists    map[string][]byte  // by input: the nodes that it knows
	memories map[string][]byte  // by input: what its reader must know after a restart
	acks     map[reading.Source]uint64
	dirty    bool // the ledger alone needs a commit
}

// untimed are an input's readings without the source time that is expected.
type untimed struct {
	n    uint64
	last reading.Tag // of the latest
}

// rejected is a Reject with its input.
type rejected struct {
	input string
	reading.Reject
}

func newGathered() gathered {
	return gathered{
		untimed: map[string]untimed{}, lists: map[string][]byte{}, memories: map[string][]byte{}, acks: map[reading.Source]uint64{},
	}
}

// empty reports whether there is nothing to commit.
func (g *gathered) empty() bool {
	return g.parcels == 0 && len(g.batch.Readings) == 0 && len(g.batch.Marks) == 0 && g.batch.Config == nil && len(g.events)+len(g.evidence) == 0 && !g.dirty
}

// batchFull bounds what is in memory at a time: readings, marks and rejects.
const batchFull = 32 << 10

// full reports whether the batch takes no more. Then it is committed at once:
// waiting would only hold the readers back.
func (g *gathered) full() bool {
	return len(g.batch.Readings)+len(g.batch.Marks)+len(g.rejects) >= batchFull
}

// reset empties it after it was stepped and encoded. What comes from here on
// belongs to the next commit, even while this one waits for room on the disk. The
// acknowledgements stay until it is written.
func (g *gathered) reset() {
	g.batch.Readings = g.batch.Readings[:0]
	g.batch.Marks = g.batch.Marks[:0]
	g.batch.Config = nil
	clear(g.untimed)
	clear(g.lists)
	clear(g.memories)
	g.rejects = g.rejects[:0]
	g.events, g.evidence = nil, nil
	g.parcels, g.pending, g.stalled, g.dirty = 0, 0, false, false
}

// saves says what a restart would find, and when it was written.
type saves struct {
	cost          int           // readings stepped since the last checkpoint
	checkpointLen int           // bytes of the last checkpoint
	saved         time.Duration // when anything was last written
	clockSaved    time.Duration // when the clock's anchors were
	sourcesSaved  time.Duration // when the source clocks were
	clockDirty    bool          // the clock's state or segment has changed since
}
