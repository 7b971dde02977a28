package opcua

import (
	"context"
	"time"
)

const (
	// reviewEvery is how often the nodes are looked for anew: for those that have
	// appeared, and what has become of the others.
	reviewEvery = 5 * time.Minute
	// reviewSoon is how often while some of them cannot be found.
	reviewSoon = time.Minute
)

// found is what a review found.
type found struct {
	items    []item
	problems []problem
	err      error
}

// review looks for the nodes anew, if it is time. It runs beside the
// notifications: browsing a large plant takes a small controller long.
func (r *Reader) review(ctx context.Context, p *publishing) {
	every := reviewEvery
	if len(r.unresolved) > 0 {
		every = reviewSoon
	}
	now := r.clk.Now().BootNS
	if r.reviewing || now-r.reviewedNS < int64(every) {
		return
	}
	r.reviewing, r.reviewedNS = true, now
	p.wg.Go(func() {
		var f found
		f.items, f.problems, f.err = r.resolver.resolve(ctx, p.s)
		select {
		case r.reviews <- f:
		case <-ctx.Done():
		}
	})
}

// reviewed takes in what a review found: nodes that are new are watched from now
// on. Those that are gone stay in the plan; the server says what has become of
// them.
func (r *Reader) reviewed(f found) error {
	r.reviewing = false
	if f.err != nil {
		if endsConnection(f.err) {
			return f.err
		}
		r.log.Warn().Err(f.err).Msg("the nodes cannot be looked for anew")
		return nil
	}
	r.unresolved = f.problems
	known := make(map[string]bool, len(r.plan))
	for _, m := range r.plan {
		known[m.place] = true
	}
	added := 0
	for i := range f.items {
		if known[f.items[i].place] {
			continue
		}
		added++
		r.plan = append(r.plan, &monitored{item: f.items[i]})
	}
	if added == 0 {
		return nil
	}
	for len(r.subs)*r.per < len(r.plan) {
		r.subs = append(r.subs, &subscription{index: len(r.subs)})
	}
	items := make([]item, len(r.plan))
	for i, m := range r.plan {
		items[i] = m.item
	}
	r.planSum = planSum(r.cfg, items)
	r.mendedNS = 0 // watch them at once
	r.log.Info().Int("nodes", added).Msg("new nodes are read")
	return nil
}
