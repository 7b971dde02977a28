package uplink

import (
	"context"
	"time"
)

// pace bounds how many records a second are sent of those that waited. A tick
// that nobody takes is lost, so it is never more than that.
type pace struct {
	tick    *time.Ticker // nil: no bound
	every   time.Duration
	share   float64 // records for each tick
	credit  float64
	limited bool // something was held back since the last wait
}

// Ticks are no closer than paceMin, and no rarer than paceMax.
const (
	paceMin = 20 * time.Millisecond
	paceMax = time.Second
)

func newPace(perSecond int) *pace {
	if perSecond <= 0 {
		return &pace{}
	}
	every := min(max(time.Second/time.Duration(perSecond), paceMin), paceMax)
	share := float64(perSecond) * every.Seconds()
	return &pace{tick: time.NewTicker(every), every: every, share: share, credit: share}
}

func (p *pace) stop() {
	if p.tick != nil {
		p.tick.Stop()
	}
}

// allows returns how many of n records may go now.
func (p *pace) allows(n int) int {
	if p.tick == nil {
		return n
	}
	select {
	case <-p.tick.C:
		p.credit = min(p.credit+p.share, max(2*p.share, 1))
	default:
	}
	if most := int(p.credit); most < n {
		p.limited = true
		return most
	}
	return n
}

// spent says that n records went.
func (p *pace) spent(n int) { p.credit -= float64(n) }

// wake calls f when more may go, if something was held back. The function that it
// returns ends that.
func (p *pace) wake(f context.CancelFunc) func() {
	if !p.limited {
		return func() {}
	}
	p.limited = false
	t := time.AfterFunc(p.every, f)
	return func() { t.Stop() }
}
