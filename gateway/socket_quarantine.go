package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"

	"tidemark/buffer"
	"tidemark/history"
	"tidemark/reading"
)

// Quarantine is what is kept out and can be released.
type Quarantine struct {
	Groups []KeptGroup `json:"groups"` // the largest first
	Count  uint64      `json:"count"`  // of all groups
	// Gone went into quarantine and can no longer be released: retention has taken
	// the blocks. Only where everything was asked for.
	Gone      int64    `json:"gone"`
	Release   *Release `json:"release"`   // at work, or the last one; null if there was none
	Releasing bool     `json:"releasing"` // it is at work: not all of it is judged again and on disk
}

// KeptGroup is what is kept out of one sender for one reason.
type KeptGroup struct {
	Input    string `json:"input"`
	Device   string `json:"device"` // or the asset, where the input has no devices
	Reason   string `json:"reason"`
	Count    uint64 `json:"count"`
	Oldest   string `json:"oldest"` // arrivals, by the wall clock of then
	Newest   string `json:"newest"`
	NextStep string `json:"next_step"`
}

// released tells how the release goes on; the rest of q is left out.
func (s *session) released(ctx context.Context) (q *Quarantine, left releases, books int64, err error) {
	q = &Quarantine{}
	err = s.pipe.ask(ctx, func() {
		left = s.pipe.ledger.clone()
		q.Release = left.Release
		q.Releasing = left.Release != nil && (!left.Release.done() || s.pipe.resolve.inBatch || s.pipe.prepared != nil)
		for _, c := range s.pipe.ledger.Counts.Inputs {
			books += c.QuarantinedNow()
		}
	})
	return q, left, books, err
}

// quarantine looks through the heads of the journal's blocks.
func (s *session) quarantine(ctx context.Context, sel Selection) (*Quarantine, error) {
	q, left, books, err := s.released(ctx)
	if err != nil {
		return nil, err
	}
	if left.QuarantineFrom == 0 {
		return q, nil
	}
	sums := map[history.KeptKey]history.Kept{}
	err = s.eachKeptSum(ctx, left.QuarantineFrom, func(k history.Kept, block uint64) {
		if !sel.has(k.KeptKey) || !left.held(k.KeptKey, block) {
			return
		}
		sum, known := sums[k.KeptKey]
		if !known {
			sum = history.Kept{KeptKey: k.KeptKey, OldestMS: k.OldestMS, LastMS: k.LastMS}
		}
		sum.Count += k.Count
		sum.OldestMS, sum.LastMS = min(sum.OldestMS, k.OldestMS), max(sum.LastMS, k.LastMS)
		sums[k.KeptKey] = sum
	})
	if err != nil {
		return nil, err
	}
	steps := newRemedies(s.clk.Sources())
	for _, k := range sums {
		q.Count += k.Count
		q.Groups = append(q.Groups, KeptGroup{
			Input: k.Input, Device: k.Sender, Reason: k.Reason.String(), Count: k.Count,
			Oldest: history.TimeMS(k.OldestMS), Newest: history.TimeMS(k.LastMS), NextStep: steps.of(k.Input, k.Sender, k.Reason),
		})
	}
	slices.SortFunc(q.Groups, func(a, b KeptGroup) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Input, b.Input), cmp.Compare(a.Device, b.Device), cmp.Compare(a.Reason, b.Reason))
	})
	if sel == (Selection{}) {
		q.Gone = max(books-int64(q.Count), 0)
	}
	return q, nil
}

// eachKeptSum calls fn with what each block from a number on keeps out.
func (s *session) eachKeptSum(ctx context.Context, from uint64, fn func(k history.Kept, block uint64)) error {
	return s.store.Headers(from, func(b buffer.Block) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		sums, inside, err := history.KeptIn(b.Index)
		if err != nil {
			return fmt.Errorf("journal block %d: %w", b.Seq, err)
		}
		if inside {
			var rs []reading.Reading
			err = eachKept(s.store, b.Seq, func(r *reading.Reading, _ history.KeptKey) { rs = append(rs, *r) })
			sums = history.KeptOf(rs)
		}
		for _, k := range sums {
			fn(k, b.Seq)
		}
		return err
	})
}

// errNothingKept answers a release of what is not there.
var errNothingKept = errors.New("nothing like that is in quarantine; `tidemark quarantine list` shows what is")

// beginRelease starts a release of what is there.
func (s *session) beginRelease(ctx context.Context, sel Selection) (*Quarantine, error) {
	q, err := s.quarantine(ctx, sel)
	if err != nil {
		return nil, err
	}
	if q.Count == 0 {
		return nil, errNothingKept
	}
	var began error
	err = s.pipe.ask(ctx, func() {
		if began = s.pipe.beginRelease(sel); began == nil {
			r := *s.pipe.ledger.Release
			q.Release, q.Releasing = &r, true
		}
	})
	return q, errors.Join(err, began)
}

func selection(r *http.Request) Selection {
	q := r.URL.Query()
	return Selection{Input: q.Get("input"), Device: q.Get("device"), Reason: q.Get("reason")}
}

func (s *session) serveQuarantine(w http.ResponseWriter, r *http.Request) {
	q, err := s.quarantine(r.Context(), selection(r))
	answer(w, q, err)
}

func (s *session) serveReleased(w http.ResponseWriter, r *http.Request) {
	q, _, _, err := s.released(r.Context())
	answer(w, q, err)
}

func (s *session) serveRelease(w http.ResponseWriter, r *http.Request) {
	q, err := s.beginRelease(r.Context(), selection(r))
	if err != nil {
		refuse(w, http.StatusConflict, err)
		return
	}
	answer(w, q, nil)
}

func (s Selection) query() string {
	v := url.Values{}
	for name, value := range map[string]string{"input": s.Input, "device": s.Device, "reason": s.Reason} {
		if value != "" {
			v.Set(name, value)
		}
	}
	return v.Encode()
}

// AskQuarantine lists what the gateway at the socket keeps out.
func AskQuarantine(ctx context.Context, socket string, sel Selection) (*Quarantine, error) {
	return askFor[Quarantine](ctx, socket, http.MethodGet, "/quarantine?"+sel.query())
}

// AskRelease has what is selected judged again; the answer is what that is, and
// the release at its beginning. AskReleased tells how it goes on.
func AskRelease(ctx context.Context, socket string, sel Selection) (*Quarantine, error) {
	return askFor[Quarantine](ctx, socket, http.MethodPost, "/quarantine/release?"+sel.query())
}

// AskReleased tells how the last release goes, and nothing else.
func AskReleased(ctx context.Context, socket string) (*Quarantine, error) {
	return askFor[Quarantine](ctx, socket, http.MethodGet, "/quarantine/release")
}
