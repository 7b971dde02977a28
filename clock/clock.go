package clock

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"tidemark/reading"
)

// Options are what a Clock is given besides its configuration.
type Options struct {
	Log zerolog.Logger
	// OnEvent, if not nil, is told what belongs into the gateway's records: changes
	// of state, epoch corrections, suspect stretches. It is called by the clock's
	// goroutines and by Now, in order, and must neither block nor call the Clock.
	// What happens before Run is told by Run.
	OnEvent func(Event)
}

// Clock knows both times of the gateway, how far its wall clock can be trusted
// and what is known of each source's clock. All methods are safe for concurrent
// use unless they say otherwise.
type Clock struct {
	cfg     Config
	log     zerolog.Logger
	onEvent func(Event)
	dev     device

	now     atomic.Pointer[face]
	changed chan struct{} // capacity 1
	soon    chan struct{} // capacity 1: poll as soon as allowed

	mu      sync.Mutex // guards what follows
	m       machine
	epochs  epochs
	floor   floor
	leap    leapWatch
	servers []*server
	host    hostStatus
	segment uint64 // ID of the last segment
	seen    looked // the last look at the clocks
	// interval is the one between polls that the schedule has reached.
	interval time.Duration
	running  bool
	early    []Event // of before Run

	sources *sources // has a lock of its own
}

// face is what Now shows: a law that holds until the next face.
type face struct {
	segment       *reading.ClockSegment
	wallMinusMono int64
	bootMinusMono int64
	gatewayOfs    int64 // gateway time in ns minus CLOCK_BOOTTIME
	leap          leapWatch
}

// New returns a Clock for cfg, which must be valid. Its state is unknown until
// Run has found evidence, or Restore has brought some back. It only looks at the
// host's clocks.
func New(cfg Config, o Options) *Clock { return newClock(cfg, o, host()) }

func newClock(cfg Config, o Options, dev device) *Clock {
	c := &Clock{
		cfg: cfg.withDefaults(), log: o.Log, onEvent: o.OnEvent, dev: dev,
		changed: make(chan struct{}, 1), soon: make(chan struct{}, 1),
		sources: newSources(), host: hostStatus{view: noView},
	}
	for _, s := range cfg.Servers {
		c.servers = append(c.servers, newServer(s))
	}
	c.seen = c.look()
	c.epochs.begin(dev.bootID(), c.seen)
	c.showLocked(-c.seen.bootNS)
	return c
}

// Now returns the present moment. It takes one look at the clock and no lock;
// only a step of the wall clock makes it slower, since that is noticed here
// before the moment is given out.
func (c *Clock) Now() reading.Instant {
	wall, mono := c.dev.clocks()
	f := c.now.Load()
	if abs(wall-mono-f.wallMinusMono) > stepAbove {
		c.notice()
		wall, mono = c.dev.clocks()
		f = c.now.Load()
	}
	boot := mono + f.bootMinusMono
	return reading.Instant{
		WallNS:    wall,
		GatewayMS: (boot + f.gatewayOfs) / 1e6,
		BootNS:    boot,
		BoundNS:   segmentBound(f.segment, boot),
		State:     f.segment.State,
		Segment:   f.segment,
	}
}

// segmentBound returns the bound at bootNS by the segment's law.
func segmentBound(s *reading.ClockSegment, bootNS int64) int64 {
	return grow(s.E0NS, bootNS-s.StartBootNS, s.RhoPPB)
}

// ResumeGateway lets gateway time go on from ms, the last value in the journal.
// It is called before Run and before Now is used for anything that is kept.
func (c *Clock) ResumeGateway(ms int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, boot := c.dev.pair()
	c.showLocked(ms*1e6 - boot)
}

// Trusted reports whether source times can be judged now: the clock is
// synchronized or free-running, or clock.trust is local and accepts it.
func (c *Clock) Trusted() bool {
	s := c.now.Load().segment
	return s.State.Trusted() || s.Method == reading.MethodLocal
}

// Changed is signalled when the state or the segment has changed; signals that
// nobody took are merged into one.
func (c *Clock) Changed() <-chan struct{} { return c.changed }

// showLocked publishes a new segment by the law of the machine, with the given
// offset of gateway time.
func (c *Clock) showLocked(gatewayOfs int64) {
	boot := c.seen.bootNS
	c.segment++
	seg := &reading.ClockSegment{
		ID: c.segment, Epoch: c.epochs.now.Epoch, Boot: c.epochs.now.Boot,
		State: c.m.State, Traceable: c.m.Trace == traceUTC,
		E0NS: noBound, StartBootNS: boot, StartGatewayMS: (boot + gatewayOfs) / 1e6,
		WallMinusBootNS: c.epochs.now.WallMinusBootNS,
	}
	if e := c.m.bound(boot); e >= 0 {
		seg.E0NS, seg.RhoPPB = e, c.m.Held.RhoPPB
		seg.Method, seg.Servers = c.m.Held.Method, c.m.Held.Servers
		if c.m.Carried || c.m.Missed > 0 {
			seg.Method = reading.MethodHeld
		}
	} else if c.localLocked() {
		seg.Method, seg.E0NS = reading.MethodLocal, c.cfg.LocalBound.Nanoseconds()
	}
	c.publishLocked(seg, gatewayOfs)
	select {
	case c.changed <- struct{}{}:
	default:
	}
}

// publishLocked shows seg by the last look at the clocks.
func (c *Clock) publishLocked(seg *reading.ClockSegment, gatewayOfs int64) {
	c.now.Store(&face{
		segment: seg, gatewayOfs: gatewayOfs, leap: c.leap,
		wallMinusMono: c.seen.wallMinusMono, bootMinusMono: c.seen.bootMinusMono,
	})
}

// localLocked reports whether the host's clock is accepted for want of anything
// better: only where that is configured, nothing is known against it, and it has
// not fallen below the time floor.
func (c *Clock) localLocked() bool {
	return c.cfg.Trust == TrustLocal && c.m.State == reading.ClockUnknown && !c.m.HasHeld && !c.floor.above(c.seen.wallNS)
}
