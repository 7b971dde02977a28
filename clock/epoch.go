package clock

import "tidemark/reading"

// epoch is a stretch of the wall clock between two steps. Wall time less
// WallMinusBootNS is CLOCK_BOOTTIME, which no step moves: that is what lets a
// later selection certify earlier ingest times of the same boot.
type epoch struct {
	Epoch           uint32 `json:"epoch"`
	Boot            uint64 `json:"boot"`
	WallMinusBootNS int64  `json:"wall_minus_boot_ns"`
	// Settled says that its wall times need no correction record any more: it was
	// synchronized itself, or one was written.
	Settled bool `json:"settled,omitempty"`
}

// certificate is a selection with the epoch that it was measured in.
type certificate struct {
	Boot            uint64    `json:"boot"`
	WallMinusBootNS int64     `json:"wall_minus_boot_ns"`
	Stretch         uint32    `json:"stretch"` // counts stretches of trust; each keeps its first and its last
	Selection       selection `json:"selection"`
}

// epochs remembers how wall times of the past map to true time. Beyond its
// limits the oldest are forgotten, and pending readings of that age stay pending.
type epochs struct {
	now     epoch
	started bool
	past    []epoch
	certs   []certificate
	stretch uint32
}

const (
	maxEpochs       = 64
	maxCertificates = 32
)

// begin starts an epoch at the given look.
func (e *epochs) begin(boot uint64, l looked) {
	next := epoch{Boot: boot, WallMinusBootNS: l.wallMinusBoot()}
	if e.started {
		next.Epoch = e.now.Epoch + 1
		e.past = append(e.past, e.now)
		if n := len(e.past) - maxEpochs; n > 0 {
			e.past = append(e.past[:0], e.past[n:]...)
		}
	}
	e.now, e.started = next, true
}

// certify keeps a selection; fresh says that it ends a time without trust.
func (e *epochs) certify(s selection, fresh bool) {
	if fresh {
		e.stretch++
	}
	e.now.Settled = true
	c := certificate{Boot: e.now.Boot, WallMinusBootNS: e.now.WallMinusBootNS, Stretch: e.stretch, Selection: s}
	if n := len(e.certs); n >= 2 && e.certs[n-1].Stretch == c.Stretch && e.certs[n-2].Stretch == c.Stretch {
		e.certs[n-1] = c
		return
	}
	e.certs = append(e.certs, c)
	if n := len(e.certs) - maxCertificates; n > 0 {
		e.certs = append(e.certs[:0], e.certs[n:]...)
	}
}

// unsettled calls f with each earlier epoch of this boot whose wall times are
// still without a correction, and settles it.
func (e *epochs) unsettled(f func(number uint32, correctionNS int64)) {
	for i := range e.past {
		if p := &e.past[i]; p.Boot == e.now.Boot && !p.Settled {
			p.Settled = true
			f(p.Epoch, e.now.WallMinusBootNS-p.WallMinusBootNS)
		}
	}
}

// unsettle asks for a correction of the epoch before the present one: what was
// known of it was taken away by a step.
func (e *epochs) unsettle() {
	if n := len(e.past); n > 0 {
		e.past[n-1].Settled = false
	}
}

// revoke forgets what the current stretch of trust certified, after its first
// selection (K6: that one was still in agreement with everything).
func (e *epochs) revoke() {
	n := len(e.certs)
	if n > 0 && e.certs[n-1].Stretch == e.stretch {
		e.certs = e.certs[:n-1]
	}
}

// ingest maps a wall time of an epoch: true time lies within boundNS of wallNS +
// retroNS. It is false where nothing certifies that epoch's boot.
func (e *epochs) ingest(boot uint64, number uint32, wallNS int64) (retroNS, boundNS int64, ok bool) {
	at, found := e.find(boot, number)
	if !found {
		return 0, noBound, false
	}
	b := wallNS - at.WallMinusBootNS
	boundNS = noBound
	for _, c := range e.certs {
		if c.Boot != boot {
			continue
		}
		bound := c.Selection.bound(b)
		retro := c.WallMinusBootNS - at.WallMinusBootNS
		if abs(retro) > stepAbove {
			bound = add(bound, stepAbove) // the steps in between were measured to that
		} else {
			retro = 0
		}
		if boundNS < 0 || bound < boundNS {
			retroNS, boundNS, ok = retro, bound, true
		}
	}
	return retroNS, boundNS, ok
}

func (e *epochs) find(boot uint64, number uint32) (epoch, bool) {
	if e.now.Boot == boot && e.now.Epoch == number {
		return e.now, true
	}
	for _, p := range e.past {
		if p.Boot == boot && p.Epoch == number {
			return p, true
		}
	}
	return epoch{}, false
}

// floor is the time floor (K7): true time was at least NS once. Only
// synchronized states raise it, so that a clock in the far future cannot.
type floor struct {
	NS int64 `json:"ns"`
}

func (f *floor) advance(s reading.ClockState, wallNS, boundNS int64) {
	if s == reading.ClockSynchronized && boundNS >= 0 {
		f.NS = max(f.NS, wallNS-boundNS)
	}
}

// above reports whether wallNS lies below the floor: such a clock is wrong, not
// early.
func (f *floor) above(wallNS int64) bool { return wallNS < f.NS }
