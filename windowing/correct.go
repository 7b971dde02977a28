package windowing

import (
	"slices"

	"tidemark/reading"
)

// touch has the window corrected at the end of the batch (F7).
func (e *Engine) touch(w *window) {
	if !w.touched && w.until == reading.NoTime {
		w.touched = true
		e.touched = append(e.touched, w)
	}
}

// correct gives the corrections of the batch, and those put off until now.
func (e *Engine) correct() {
	for d := e.spaced.first(); d != nil && d.at <= e.now; d = e.spaced.first() {
		w := e.spaced.pop()
		w.until = reading.NoTime
		if w.dirty && !w.closed {
			e.touch(w)
		}
	}
	if len(e.touched) == 0 {
		return
	}
	e.rank()
	slices.SortFunc(e.touched, compareWindows)
	for i := 0; i < len(e.touched); i++ {
		w := e.touched[i]
		w.touched = false
		if w.closed || !w.dirty {
			continue
		}
		if at := w.spacedUntil(); at > e.now {
			w.until = at
			e.spaced.push(at, w)
			continue
		}
		e.correction(w)
	}
	clear(e.touched)
	e.touched = e.touched[:0]
}

// correction gives a result after the watermark has passed the window's end.
func (e *Engine) correction(w *window) {
	w.fired = true
	if !w.says() {
		w.dirty = false
		return
	}
	if w.rev > 0 {
		w.corrected = e.now
	}
	e.result(w, w.cause())
	if n := w.key.follow(w); n != nil && n.end-1 <= n.key.comb.wm {
		e.rank()
		n.dirty, n.carried = true, true
		e.touch(n)
	}
}

// spacedUntil is the gateway time before which correct_every allows no further
// correction.
func (w *window) spacedUntil() int64 {
	every := w.key.feature.def.CorrectEveryMS
	if every == 0 || w.corrected == reading.NoTime {
		return reading.NoTime
	}
	return w.corrected + every
}

func (w *window) cause() Cause {
	switch {
	case w.carried:
		return CauseCarryIn
	case w.live:
		return CauseLateReading
	case w.stepped:
		return CauseClockStep
	}
	return CauseBackfill
}

// nextSpaced returns the gateway time of the next correction that was put off.
func (e *Engine) nextSpaced() int64 {
	for d := e.spaced.first(); d != nil; d = e.spaced.first() {
		if w := d.item; w.dirty && !w.closed {
			return d.at
		}
		e.spaced.pop().until = reading.NoTime
	}
	return never
}
