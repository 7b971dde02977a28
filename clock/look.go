package clock

import (
	"tidemark/reading"
)

// looked is one look at all clocks.
type looked struct {
	wallNS, bootNS int64
	wallMinusMono  int64
	bootMinusMono  int64
}

func (l looked) wallMinusBoot() int64 { return l.wallNS - l.bootNS }

// look reads the clocks. bootMinusMono joins two looks; Go's monotonic clock and
// CLOCK_BOOTTIME run alike while the machine is awake.
func (c *Clock) look() looked {
	wall, boot := c.dev.pair()
	w2, mono := c.dev.clocks()
	boot2 := boot + (w2 - wall) // the same instant, unless a step fell in between
	if _, after := c.dev.pair(); boot2 < boot || boot2 > after {
		boot2 = boot
	}
	return looked{wallNS: wall, bootNS: boot, wallMinusMono: w2 - mono, bootMinusMono: boot2 - mono}
}

// notice compares the clocks with the last look: a step, a sleep, or nothing. Run
// does it every second and Now where it sees a difference.
func (c *Clock) notice() {
	c.mu.Lock()
	defer c.mu.Unlock()
	was, now := c.seen, c.look()
	ch := change{
		dNS:       now.wallMinusBoot() - was.wallMinusBoot(),
		suspendNS: now.bootMinusMono - was.bootMinusMono,
	}
	if ch.suspendNS < stepAbove {
		ch.suspendNS = 0
	}
	ch.leapPending = c.leap.pending
	ch.knownNS, ch.toleranceNS, ch.hasKnown = c.m.known(now.bootNS)
	c.seen = now
	if ch.suspendNS == 0 && abs(ch.dNS) <= stepAbove {
		c.tickLocked()
		return
	}
	c.steppedLocked(ch)
}

// tickLocked lets time pass.
func (c *Clock) tickLocked() {
	f := c.now.Load()
	c.floor.advance(c.m.State, c.seen.wallNS, c.m.bound(c.seen.bootNS))
	if t := c.m.onTick(c.seen.bootNS); t.from != t.to {
		c.movedLocked(t, "the bound has grown")
		return
	}
	c.publishLocked(f.segment, f.gatewayOfs)
}

// steppedLocked acts on a step or a sleep.
func (c *Clock) steppedLocked(ch change) {
	gatewayOfs := c.now.Load().gatewayOfs
	boot := c.seen.bootNS
	var t transition
	if ch.suspendNS > 0 {
		t = c.m.onSleep(ch.suspendNS, boot)
	}
	ev := ch.event()
	if ev.newEpoch() {
		before := t.from
		if ch.suspendNS == 0 {
			before = c.m.State
		}
		t = c.m.onStep(ev, ch.dNS, boot)
		t.from = before
		c.beginEpochLocked(ev, ch.dNS, before)
	}
	c.showLocked(gatewayOfs)
	c.announceLocked(t, ev.String())
	c.pollSoon()
}

// beginEpochLocked begins the epoch that a step of the wall clock opens and puts the
// step into the records; before is the state that it met. The selection that explains
// a step vouches for what came before: a clock that becomes trusted by being set right
// is asked at once about the readings that waited for it.
func (c *Clock) beginEpochLocked(ev stepEvent, dNS int64, before reading.ClockState) {
	c.epochs.begin(c.epochs.now.Boot, c.seen)
	explained := ev == stepExplained
	if explained && c.m.State.Trusted() {
		c.epochs.certify(c.m.Held, !before.Trusted())
	}
	c.log.Warn().Stringer("step", ev).Int64("step_ns", dNS).Uint32("epoch", c.epochs.now.Epoch).Msg("the wall clock was set")
	c.tell(Event{Kind: EventClock, Step: ev.String(), StepNS: dNS})
	if explained {
		c.epochs.unsettle()
		c.settleEpochsLocked()
	}
}

// movedLocked shows and announces a change of state.
func (c *Clock) movedLocked(t transition, why string) {
	c.showLocked(c.now.Load().gatewayOfs)
	c.announceLocked(t, why)
}

// announceLocked logs a change of state once and puts it into the records.
func (c *Clock) announceLocked(t transition, why string) {
	if t.contradicted {
		c.suspectLocked(t.suspectSinceNS)
	}
	if t.from == t.to {
		return
	}
	e := c.m.bound(c.seen.bootNS)
	ev := c.log.Info()
	if t.to != reading.ClockSynchronized {
		ev = c.log.Warn()
	}
	ev.Stringer("from", t.from).Stringer("to", t.to).Int64("bound_ns", e).Str("why", why).Msg("clock state")
	c.tell(Event{Kind: EventClock, From: t.from.String(), To: t.to.String(), Why: why})
}

func (c *Clock) pollSoon() {
	select {
	case c.soon <- struct{}{}:
	default:
	}
}
