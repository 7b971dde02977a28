package gateway

import (
	"fmt"
	"runtime/debug"

	"tidemark/reading"
	"tidemark/windowing"
)

// step steps the engine. Should it panic, the engine is rebuilt from the store,
// the readings that bring it down are found and quarantined, and the rest is
// stepped: one reading never stops the gateway, and none is lost silently.
func (p *pipeline) step(b *reading.Batch) (*windowing.Output, error) {
	out, err := safeStep(p.engine, b)
	if err == nil {
		return out, nil
	}
	p.log.Error().Err(err).Uint64("block", b.Seq).Msg("the engine failed; it is rebuilt from the store without the readings at fault")
	rec, rerr := recoverEngine(p.store)
	if rerr != nil {
		return nil, rerr
	}
	p.engine = rec.engine
	snapshot := p.engine.AppendSnapshot(nil)
	for {
		at := culprit(snapshot, b)
		if at < 0 {
			return nil, &storageError{err: fmt.Errorf("the engine fails at block %d without any of its readings: %w", b.Seq, err)}
		}
		r := &b.Readings[at]
		r.Stamp.Disposition, r.Stamp.Reason = reading.Quarantine, reading.EngineFault
		r.Stamp.EventNS, r.Stamp.WatermarkMS = reading.NoTime, reading.NoTime
		if err := trial(snapshot, b, len(b.Readings)); err == nil {
			break
		}
	}
	out, err = safeStep(p.engine, b)
	if err != nil {
		return nil, &storageError{err: err}
	}
	return out, nil
}

// safeStep is Step with a panic as an error.
func safeStep(e *windowing.Engine, b *reading.Batch) (out *windowing.Output, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic in the engine: %v\n%s", v, debug.Stack())
		}
	}()
	return e.Step(b), nil
}

// trial steps the first n readings of b on an engine of its own.
func trial(snapshot []byte, b *reading.Batch, n int) error {
	e, err := windowing.Restore(snapshot)
	if err != nil {
		return err
	}
	part := *b
	part.Readings = b.Readings[:n]
	part.Marks = nil
	for _, m := range b.Marks {
		if m.At <= n {
			part.Marks = append(part.Marks, m)
		}
	}
	_, err = safeStep(e, &part)
	return err
}

// culprit returns the first reading at which stepping b fails, -1 if it fails
// without any. It bisects: the shortest failing prefix ends in the culprit.
func culprit(snapshot []byte, b *reading.Batch) int {
	if err := trial(snapshot, b, 0); err != nil {
		return -1
	}
	good, bad := 0, len(b.Readings)
	for good+1 < bad {
		mid := (good + bad) / 2
		if err := trial(snapshot, b, mid); err != nil {
			bad = mid
		} else {
			good = mid
		}
	}
	return bad - 1
}
