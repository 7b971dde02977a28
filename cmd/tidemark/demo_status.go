package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"tidemark/gateway"
)

// demoStatus is what the demo shows of the gateway itself.
type demoStatus struct {
	ClockState string
	BoundNS    int64 // -1 if none
	Agreeing   int
	Servers    int
	Liars      []demoLiar

	Received, Accepted, Duplicate, Quarantined uint64
	Rejected                                   uint64 // malformed or unmatched
	Pending                                    int64
	Late                                       uint64 // readings that came after their window's closing
	Page                                       string // address of the local page
	Conserved                                  bool
}

// demoLiar is a time server that the others outvote.
type demoLiar struct {
	Address  string
	OffsetNS int64
}

func (l demoLiar) String() string {
	return fmt.Sprintf("%s (%+.1f s)", l.Address, float64(l.OffsetNS)/1e9)
}

// trust is how far the gateway's clock is believed, in words.
func (s *demoStatus) trust() string {
	if s.BoundNS < 0 {
		return s.ClockState + ": readings wait until the time servers agree"
	}
	return fmt.Sprintf("%s within %.1f ms", s.ClockState, float64(s.BoundNS)/1e6)
}

// sums are where the readings are; together they are what was received.
func (s *demoStatus) sums() string {
	words := fmt.Sprintf("received %d = accepted %d + duplicate %d + quarantined %d + pending %d",
		s.Received, s.Accepted, s.Duplicate, s.Quarantined, s.Pending)
	if s.Rejected > 0 {
		words += fmt.Sprintf(" + unreadable %d", s.Rejected)
	}
	return words
}

// poll asks the gateway for its status until ctx ends. Then the machines fall
// silent, and it asks on until all that they sent is counted.
func (d *demo) poll(ctx, failed context.Context) {
	const pause, settle = 500 * time.Millisecond, 300 * time.Millisecond
	news := demoClockNews{}
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case <-failed.Done():
			return
		case <-tick.C:
			d.ask(failed, news)
		}
	}
	d.world.Hush()
	tick.Reset(settle) // longer than the demo's commit interval
	before, _ := d.ask(failed, news)
	for range 10 {
		select {
		case <-failed.Done():
			return
		case <-tick.C:
		}
		now, ok := d.ask(failed, news)
		if !ok || now == before {
			return
		}
		before = now
	}
}

// ask tells the view of the gateway's status, and returns how many readings it has
// counted; false while it starts or stops.
func (d *demo) ask(ctx context.Context, news demoClockNews) (received uint64, ok bool) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	st, err := d.gw.Status(ctx)
	if err != nil {
		return 0, false
	}
	now := readDemoStatus(st)
	d.told <- demoTold{status: &now}
	for _, words := range news.of(&now) {
		d.told <- demoTold{event: &demoEvent{Kind: demoClock, At: d.now(), Series: "gateway", Words: words}}
	}
	return now.Received, true
}

// demoClockNews remembers what was told of the clock: its state, and who lies. How
// many servers agree comes and goes, and is no news.
type demoClockNews map[string]bool

func (n demoClockNews) of(s *demoStatus) (words []string) {
	if state := "state " + s.ClockState; !n[state] {
		for known := range n {
			if strings.HasPrefix(known, "state ") {
				delete(n, known)
			}
		}
		n[state] = true
		words = append(words, s.trust())
	}
	if page := "page " + s.Page; s.Page != "" && !n[page] {
		n[page] = true
		words = append(words, "the local page is at "+s.Page)
	}
	for _, l := range s.Liars {
		if !n[l.Address] {
			n[l.Address] = true
			words = append(words, "outvoted, it lies: time server "+l.String())
		}
	}
	return words
}

// readDemoStatus takes what the demo shows from the gateway's status.
func readDemoStatus(st *gateway.Status) demoStatus {
	s := demoStatus{ClockState: st.Clock.State, BoundNS: st.Clock.BoundNS, Servers: len(st.Clock.Servers), Conserved: st.Conserved, Late: st.Emitted["late"], Page: st.Page}
	for _, v := range st.Clock.Servers {
		switch v.Verdict {
		case "truechimer":
			s.Agreeing++
		case "falseticker":
			s.Liars = append(s.Liars, demoLiar{v.Address, v.OffsetNS})
		}
	}
	for _, in := range st.Inputs {
		c := in.Counts
		s.Received += c.Received
		s.Accepted += c.Accepted + c.PendingAccepted
		s.Duplicate += c.Duplicate + c.PendingDuplicate
		s.Quarantined += c.Quarantined + c.PendingQuarantined
		s.Rejected += c.Malformed + c.Unmatched
		s.Pending += in.PendingNow
	}
	return s
}
