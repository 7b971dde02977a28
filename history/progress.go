package history

import "tidemark/buffer"

// ProgressFunc is told how far a step of long work is: in blocks, or in event time. nil
// stands for nobody who wants to know.
type ProgressFunc func(step string, done, total int64)

// The steps, as they are shown.
const (
	stepSurveying  = "surveying"  // the blocks' headers, for what is in question
	stepReading    = "reading"    // blocks
	stepStepping   = "stepping"   // blocks again
	stepRebuilding = "rebuilding" // windows
)

// walk has the visits to the blocks [from, to) told. What is visited beyond them,
// until a window is closed, counts as the end.
func (p ProgressFunc) walk(step string, from, to uint64, visit func(buffer.Block) error) func(buffer.Block) error {
	if p == nil {
		return visit
	}
	return func(b buffer.Block) error {
		p(step, int64(min(b.Seq, to)-from), int64(to-from))
		return visit(b)
	}
}
