package clock

import (
	"encoding/json"
	"fmt"

	"tidemark/reading"
)

// persisted is the stored form of what a restart needs (SEMANTICS K4, K7). Names
// are stored: append, never rename.
type persisted struct {
	Version         int           `json:"version"`
	Boot            uint64        `json:"boot"`
	BootNS          int64         `json:"boot_ns"` // CLOCK_BOOTTIME at the writing
	WallMinusBootNS int64         `json:"wall_minus_boot_ns"`
	Machine         machine       `json:"machine"`
	Segment         uint64        `json:"segment"`
	Epoch           epoch         `json:"epoch"`
	Past            []epoch       `json:"past,omitempty"`
	Certificates    []certificate `json:"certificates,omitempty"`
	Stretch         uint32        `json:"stretch"`
	Floor           floor         `json:"floor"`
	LeapAtNS        int64         `json:"leap_at_ns,omitempty"`
}

const persistVersion = 1

// Persist returns what Restore needs after a restart: the selection with boot id
// and realtime − boottime, epochs, certificates, time floor and the estimates of
// source clocks. It is worth keeping about once a minute and after Changed.
func (c *Clock) Persist() []byte {
	c.mu.Lock()
	p := persisted{
		Version: persistVersion, Boot: c.epochs.now.Boot, BootNS: c.seen.bootNS, WallMinusBootNS: c.seen.wallMinusBoot(),
		Machine: c.m, Segment: c.segment, Epoch: c.epochs.now, Past: c.epochs.past, Certificates: c.epochs.certs,
		Stretch: c.epochs.stretch, Floor: c.floor, LeapAtNS: c.leap.atNS,
	}
	b, err := json.Marshal(p)
	c.mu.Unlock()
	if err != nil {
		panic(fmt.Sprintf("clock state cannot be encoded: %v", err)) // it has no type that could fail
	}
	return b
}

// Restore brings back what Persist returned. Within the same boot and without a
// step in between the clock goes on in holdover; after a step it is judged as
// the running clock would have judged it; after a reboot it starts unknown with
// its epochs, certificates and time floor. A step that was seen since New is one of
// those: nothing was judged in the epoch that it ended. It is called before Run, at
// most once. On an error nothing has changed.
func (c *Clock) Restore(b []byte) error {
	var p persisted
	if err := json.Unmarshal(b, &p); err != nil {
		return fmt.Errorf("cannot read the stored clock state, starting unknown: %w", err)
	}
	if err := p.check(); err != nil {
		return fmt.Errorf("cannot use the stored clock state, starting unknown: %w", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.seen = c.look()
	c.m, c.early = machine{}, nil
	boot := c.epochs.now.Boot
	c.segment = p.Segment
	c.floor, c.leap.atNS = p.Floor, p.LeapAtNS
	c.epochs = epochs{now: p.Epoch, started: true, past: p.Past, certs: p.Certificates, stretch: p.Stretch}
	dRealMinusBoot := c.seen.wallMinusBoot() - p.WallMinusBootNS
	if boot == p.Boot && boot != 0 && c.seen.bootNS >= p.BootNS {
		c.resumeLocked(p, dRealMinusBoot)
	} else {
		c.epochs.begin(boot, c.seen)
	}
	c.showLocked(c.now.Load().gatewayOfs)
	return nil
}

// resumeLocked goes on within one boot.
func (c *Clock) resumeLocked(p persisted, dNS int64) {
	c.m = p.Machine
	c.m.Carried = c.m.HasHeld
	c.m.onSleep(c.seen.bootNS-p.BootNS, c.seen.bootNS)
	ch := change{dNS: dNS}
	ch.knownNS, ch.toleranceNS, ch.hasKnown = c.m.known(c.seen.bootNS)
	if ev := ch.event(); ev.newEpoch() {
		before := c.m.State
		c.m.onStep(ev, dNS, c.seen.bootNS)
		c.beginEpochLocked(ev, dNS, before)
	}
}

// check refuses what Persist cannot have written.
func (p *persisted) check() error {
	switch {
	case p.Version != persistVersion:
		return fmt.Errorf("version %d is not %d", p.Version, persistVersion)
	case p.Machine.State > reading.ClockUnreliable || p.Machine.Trace > traceUTC:
		return fmt.Errorf("unknown state %d", p.Machine.State)
	case p.Machine.Missed < 0 || p.Machine.Agreed < 0:
		return fmt.Errorf("negative counts")
	case p.Machine.State.Trusted() && !p.Machine.HasHeld:
		return fmt.Errorf("a trusted state without a selection")
	}
	held := []selection{p.Machine.Held}
	for _, c := range p.Certificates {
		held = append(held, c.Selection)
	}
	for _, s := range held {
		if s.LoNS > s.HiNS || s.RhoPPB < 0 || s.RhoPPB > 1e9 || s.Method > reading.MethodLocal {
			return fmt.Errorf("a selection that cannot be")
		}
	}
	return nil
}
