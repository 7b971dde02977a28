package history

import (
	"context"
	"io"
	"slices"

	"tidemark/buffer"
	"tidemark/reading"
	"tidemark/windowing/trace"
)

// Selection chooses what of a journal is looked at. The zero Selection but for its
// times, which are reading.NoTime for no limit, is everything.
type Selection struct {
	FromMS, ToMS int64    // wall times of the commits, ToMS excluded
	Inputs       []string // any of these; none: all
	Sensors      []Sensor // likewise
}

// Sensor names a sensor of an asset.
type Sensor struct{ Asset, Sensor string }

// Partial reports whether readings are left out of the blocks.
func (s *Selection) Partial() bool { return len(s.Inputs)+len(s.Sensors) > 0 }

func (s *Selection) covers(atMS int64) bool {
	return (s.FromMS == reading.NoTime || atMS >= s.FromMS) && (s.ToMS == reading.NoTime || atMS < s.ToMS)
}

func (s *Selection) input(name string) bool {
	return len(s.Inputs) == 0 || slices.Contains(s.Inputs, name)
}

func (s *Selection) takes(of reading.Series) bool {
	return s.input(of.Input) && (len(s.Sensors) == 0 || slices.Contains(s.Sensors, Sensor{of.Asset, of.Sensor}))
}

// narrow leaves in b what is selected.
func (s *Selection) narrow(b *reading.Batch) {
	if !s.Partial() {
		return
	}
	kept, at := b.Readings[:0], make([]int, len(b.Readings)+1)
	for i := range b.Readings {
		if s.takes(b.Readings[i].Tag.Value()) {
			kept = append(kept, b.Readings[i])
		}
		at[i+1] = len(kept)
	}
	b.Readings = kept
	marks := b.Marks[:0]
	for _, m := range b.Marks {
		if s.input(m.Input) {
			m.At = at[min(m.At, len(at)-1)]
			marks = append(marks, m)
		}
	}
	b.Marks = marks
}

// span returns the blocks [from, to) in which the selection's times lie.
func (s *Selection) span(ctx context.Context, j Journal, info *Info, progress ProgressFunc) (from, to uint64, err error) {
	from, to = info.First, info.Next
	if s.FromMS == reading.NoTime && s.ToMS == reading.NoTime {
		return from, to, nil
	}
	found := false
	err = j.Headers(ctx, from, info.Next, progress.walk(stepSurveying, from, info.Next, func(b buffer.Block) error {
		switch {
		case !s.covers(b.AtMS):
		case !found:
			from, to, found = b.Seq, b.Seq+1, true
		default:
			to = b.Seq + 1
		}
		return nil
	}))
	if !found {
		to = from
	}
	return from, to, err
}

// Batches calls fn with every batch that is selected, in order.
func Batches(ctx context.Context, j Journal, s Selection, progress ProgressFunc, fn func(*reading.Batch) error) error {
	info, err := j.Info(ctx)
	if err != nil {
		return err
	}
	from, to, err := s.span(ctx, j, info, progress)
	if err != nil {
		return err
	}
	return j.Blocks(ctx, from, to, progress.walk(stepReading, from, to, func(blk buffer.Block) error {
		b, err := decode(&blk)
		if err != nil {
			return err
		}
		s.narrow(b)
		return fn(b)
	}))
}

// Recorded says what a trace holds.
type Recorded struct {
	Blocks   int
	Readings int
	// Begins reports that the trace begins in the middle of the journal: what an
	// engine knew by then is not in it.
	Begins bool
	// Assumed reports that the configuration at its beginning is no longer held,
	// and a later one stands in.
	Assumed bool
}

// Record writes the selected blocks as a trace for `tidemark replay`. A trace that
// begins in the middle begins with the configuration in force there.
func Record(ctx context.Context, j Journal, s Selection, progress ProgressFunc, w io.Writer) (Recorded, error) {
	var done Recorded
	info, err := j.Info(ctx)
	if err != nil {
		return done, err
	}
	from, to, err := s.span(ctx, j, info, progress)
	if err != nil {
		return done, err
	}
	var out trace.Writer
	var buf []byte
	err = j.Blocks(ctx, from, to, progress.walk(stepReading, from, to, func(blk buffer.Block) error {
		b, err := decode(&blk)
		if err != nil {
			return err
		}
		if done.Blocks == 0 && b.Seq > 1 {
			done.Begins = true
			if b.Config == nil {
				if b.Config, done.Assumed, err = configAt(ctx, j, info, b.Seq); err != nil {
					return err
				}
			}
		}
		s.narrow(b)
		if buf, err = out.AppendBatch(buf[:0], b); err != nil {
			return err
		}
		done.Blocks++
		done.Readings += len(b.Readings)
		_, err = w.Write(buf)
		return err
	}))
	return done, err
}

// configAt returns the engine's configuration in force before block seq. What is
// no longer held is assumed to be what came after it.
func configAt(ctx context.Context, j Journal, info *Info, seq uint64) (config []byte, assumed bool, err error) {
	var last, next uint64
	err = j.Headers(ctx, info.First, info.Next, func(b buffer.Block) error {
		switch {
		case !configures(b.Index):
		case b.Seq < seq:
			last = b.Seq
		case next == 0 && b.Seq > seq:
			next = b.Seq
		}
		return nil
	})
	switch {
	case err != nil:
		return nil, false, err
	case last == 0 && next == 0:
		return info.Config, false, nil
	case last == 0:
		last, assumed = next, true
	}
	err = j.Blocks(ctx, last, last+1, func(blk buffer.Block) error {
		b, err := decode(&blk)
		if err == nil {
			config = b.Config
		}
		return err
	})
	return config, assumed, err
}
