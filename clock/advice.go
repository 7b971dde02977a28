package clock

import (
	"fmt"

	"tidemark/reading"
)

// Advice says in words what keeps the clock from being synchronized and what to
// do about it; empty when nothing does.
func (c *Clock) Advice() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.adviceLocked()
}

// adviceLocked says in words what is wrong with the clock and what to do.
func (c *Clock) adviceLocked() string {
	if c.cfg.Trust == TrustLocal && c.m.State == reading.ClockUnknown {
		if c.floor.above(c.seen.wallNS) {
			return "the host's clock is below the highest time that was ever confirmed: set it"
		}
		return fmt.Sprintf("the host's clock is believed unchecked to %v (clock.trust: local); configure clock.servers for anything but a bench", c.cfg.LocalBound)
	}
	switch c.m.State {
	case reading.ClockSynchronized:
		if len(c.servers) == 1 {
			return "one NTP server cannot be checked against another; configure four"
		}
		return ""
	case reading.ClockFreeRunning:
		if c.m.Held.bound(c.seen.bootNS) > syncBelow && c.m.Missed < lostAfter {
			return "the host's clock is more than a second off; let its daemon (chronyd) set it"
		}
		return fmt.Sprintf("no time source for %d polls: the error bound grows; %s", c.m.Missed, c.whyLocked())
	case reading.ClockDisrupted:
		return "the wall clock was set by an amount that nothing explains: readings wait until two polls agree"
	case reading.ClockUnreliable:
		return "time sources contradict each other: readings wait; see the servers' verdicts"
	}
	return c.unknownAdviceLocked()
}

func (c *Clock) unknownAdviceLocked() string {
	switch {
	case c.m.HasHeld && c.m.Held.bound(c.seen.bootNS) > unknownAbove:
		return "the host's clock is more than a minute off: readings wait until it is set"
	case c.m.Agreed > 0:
		return "one poll agreed; one more is needed"
	case c.m.Trace == traceLocal:
		return "the time sources have nothing but their own clocks to go by (a local reference): readings wait"
	case len(c.servers) == 0:
		return "no time source: readings wait as pending; set clock.servers (four NTP servers), or run chronyd, or on a bench set clock.trust: local"
	}
	return "no majority of the NTP servers answers yet: readings wait; " + c.whyLocked()
}
