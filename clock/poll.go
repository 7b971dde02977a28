package clock

import (
	"context"
	"slices"

	"tidemark/reading"
)

// round asks everybody once and takes in what they say. It reports whether there
// was a selection.
func (c *Clock) round(ctx context.Context) bool {
	due, resting := c.due()
	if len(due) == 0 && resting {
		return true // they asked for a longer interval: no poll, and none missed
	}
	host := make(chan hostAnswer, 1)
	go func() { host <- c.askHost(ctx) }()
	answers := c.askAll(ctx, due)
	h := <-host
	if ctx.Err() != nil {
		return false
	}
	c.notice() // so that nothing is judged by an epoch that is over
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.takeRound(answers, h)
}

// due returns the servers that may be asked now, and whether there are others
// that may be asked later.
func (c *Clock) due() (due []*server, resting bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, boot := c.dev.pair()
	for _, s := range c.servers {
		switch {
		case s.ended:
		case boot < s.notTill:
			resting = true
		default:
			s.asked(boot)
			due = append(due, s)
		}
	}
	return due, resting
}

// hostAnswer is what the host says about its own clock.
type hostAnswer struct {
	view        hostView
	err         error
	disciplined bool
	leapPending bool
}

// askHost asks chronyd, and the kernel where there is no chronyd.
func (c *Clock) askHost(ctx context.Context) hostAnswer {
	k, kerr := c.dev.kernel()
	h := hostAnswer{view: noView, disciplined: kerr == nil && k.Disciplined, leapPending: kerr == nil && k.LeapPending}
	if r, err := c.dev.chrony(ctx); err == nil {
		h.view = r.view()
		h.disciplined = h.disciplined || h.view.trace == traceUTC && r.Synchronised
		h.leapPending = h.leapPending || r.LeapPending
		return h
	}
	if kerr != nil {
		h.err = kerr
		return h
	}
	h.view = k.view()
	return h
}

// takeRound is called with the lock held.
func (c *Clock) takeRound(answers []answer, h hostAnswer) bool {
	boot := c.seen.bootNS
	for _, s := range c.servers {
		s.fresh = false
	}
	for _, a := range answers {
		a.server.take(a.reply, a.err, boot, c.interval)
	}
	c.host = hostStatus{view: h.view}
	if h.err != nil {
		c.host.err = h.err.Error()
	}
	r := round{bootNS: boot, servers: len(c.servers), host: h.view, rhoPPB: rhoFree}
	switch {
	case h.disciplined:
		r.rhoPPB = rhoDisciplined
	case len(c.servers) == 0 && h.view.method == reading.MethodKernel:
		r.rhoPPB = rhoKernel
	}
	leap := c.vote(&r) || r.servers == 0 && h.leapPending
	if r.servers == 0 && c.floor.above(add(c.seen.wallNS, max(h.view.boundNS, 0))) {
		r.host, r.outcome, r.servers = noView, roundNoMajority, 1 // below the time floor the daemon is wrong
	}
	fresh := !c.m.State.Trusted()
	good := c.m.LastGood
	t := c.m.onRound(r)
	agreed := c.m.LastGood != good
	if agreed {
		c.leap.announce(leap, c.seen.wallNS)
	}
	c.settleLocked(t, agreed, fresh)
	return agreed
}

// settleLocked publishes what a round changed.
func (c *Clock) settleLocked(t transition, agreed, fresh bool) {
	boot := c.seen.bootNS
	if t.contradicted {
		c.epochs.revoke()
	}
	if agreed && c.m.State.Trusted() {
		c.epochs.certify(c.m.Held, fresh)
		c.settleEpochsLocked()
		if c.m.State == reading.ClockSynchronized && c.floor.above(c.seen.wallNS+c.m.Held.HiNS) {
			c.log.Warn().Int64("floor_ns", c.floor.NS).Msg("a majority of servers puts the time below the highest that was ever confirmed; the floor is lowered")
			c.floor.NS = c.seen.wallNS - c.m.bound(boot)
		}
	}
	if agreed || t.from != t.to {
		c.showLocked(c.now.Load().gatewayOfs)
	}
	c.announceLocked(t, c.whyLocked())
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

// vote lets the servers' answers elect a selection and reports whether a
// majority of the elected announces a leap second.
func (c *Clock) vote(r *round) (leapPending bool) {
	var voters []*server
	var candidates []candidate
	usable, locals := 0, 0
	for _, s := range c.servers {
		if s.ended {
			continue
		}
		usable++
		switch {
		case !s.hasLast:
		case s.last.local():
			s.verdict = "local"
			locals++
		default:
			s.thetaNS = s.last.theta(c.epochs.now.WallMinusBootNS)
			s.lambdaNS = s.last.lambda(r.bootNS, r.rhoPPB)
			if s.fresh {
				s.verdict = "truechimer"
			}
			voters = append(voters, s)
			candidates = append(candidates, candidate{s.thetaNS, s.lambdaNS})
		}
	}
	if len(voters) == 0 {
		if locals > 0 {
			r.outcome = roundLocal
		}
		return false
	}
	return elect(r, voters, intersectWider(candidates), usable)
}

// elect turns an intersection into the round's outcome. Beyond RFC 5905, those
// that agree must be at least half of all usable servers, one of them with an
// answer of this round: two liars must not win because the honest ones are away,
// and memories alone are no evidence.
func elect(r *round, voters []*server, in intersection, usable int) (leapPending bool) {
	if !in.ok {
		if !slices.ContainsFunc(voters, func(s *server) bool { return s.fresh }) {
			return false // nobody has said anything new
		}
		r.outcome = roundNoMajority
		for _, s := range voters {
			s.verdict = "no_majority"
		}
		return false
	}
	agreeing, fresh, leaps := 0, 0, 0
	for i, s := range voters {
		if slices.Contains(in.false, i) {
			s.verdict = "falseticker"
			continue
		}
		agreeing++
		fresh += count(s.fresh)
		leaps += count(s.last.leapPending)
	}
	if 2*agreeing < usable || fresh == 0 {
		return false // too few: a missed poll
	}
	r.outcome = roundAgreed
	r.vote = selection{LoNS: in.lo, HiNS: in.hi, AtBootNS: r.bootNS, RhoPPB: r.rhoPPB,
		Method: reading.MethodNTP, Servers: uint8(min(agreeing, 255))}
	return 2*leaps > agreeing
}
