package opcua

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/gopcua/opcua/ua"

	"tidemark/reading"
)

const (
	historyPage = 1000 // values per node and request
	// historyRestarts is how often a node's history is begun again where the server
	// has forgotten how far we were.
	historyRestarts = 3
	// historyIdle is how many pages in a row may bring nothing newer though there is
	// more to come: some, where a server looks through a large archive in steps.
	historyIdle = 100
	// historyPauseMax bounds the pause between two requests.
	historyPauseMax = time.Second
	// historyTries is how often one backfill waits for a server that could answer
	// later, as one does whose archive starts behind it: 1, 2, 4 … s, a minute in all.
	historyTries = 6
)

// notNow are the answers of a server that may have the history in a while; the last
// one says that it is archived and cannot be had at present.
var notNow = []ua.StatusCode{
	ua.StatusBadOutOfMemory, ua.StatusBadResourceUnavailable, ua.StatusBadTCPServerTooBusy, ua.StatusBadTooManyOperations,
	ua.StatusBadWaitingForInitialData, ua.StatusBadNoCommunication, ua.StatusBadDataUnavailable,
}

// shortfall is a stretch of history that could not be had, of one or more nodes.
type shortfall struct {
	reason, detail string
	fromNS, toNS   int64
	places         []string
}

// backfill is one reading of history under way.
type backfill struct {
	c       caller
	limits  operations
	now     func() reading.Instant
	deliver func(context.Context, reading.Parcel) error
	short   []shortfall
	waits   int  // for the server
	notNow  bool // a node's answer was one to wait for
}

// fetchHistory delivers what the server has kept of items with source times from
// fromNS to before toNS, marked historical, node by node in order of time, and
// returns what it could not get. Between two requests it pauses for as long as the
// server took, so that a small controller has half of its time for its plant. An
// error is one of the connection or of deliver; what was delivered stands.
//
// The items are copied: others may take their live values meanwhile.
func fetchHistory(ctx context.Context, c caller, items []item, fromNS, toNS int64, now func() reading.Instant, deliver func(context.Context, reading.Parcel) error) ([]shortfall, error) {
	limits, err := readOperations(ctx, c)
	if err != nil {
		return nil, err
	}
	b := &backfill{c: c, limits: limits, now: now, deliver: deliver}
	var todo []*past
	for i := range items {
		p := &past{item: items[i], fromNS: fromNS, toNS: toNS, reachedNS: fromNS}
		p.parts, p.next = nil, 0
		if !p.history {
			b.miss(p, "no_history", "the server keeps no history of it, or the login may not read it")
			continue
		}
		todo = append(todo, p)
	}
	size := max(min(limits.history, limits.historyPoints), 1)
	err = inBatches(todo, &size, func(part []*past) error { return b.batch(ctx, part) })
	return b.short, err
}

// past is one node's history on its way.
type past struct {
	item
	fromNS, toNS int64
	reachedNS    int64 // the newest value so far, or fromNS
	point        []byte
	restarts     int
	idle         int // pages in a row that brought nothing newer
	done         bool
}

// again makes p begin where it stopped.
func (p *past) again() { p.fromNS, p.point = p.reachedNS, nil }

// batch reads some nodes' history to its end. It fails with a status that
// inBatches knows if these are too many at once for the server.
func (b *backfill) batch(ctx context.Context, part []*past) error {
	open := unfinished(part)
	defer b.release(ctx, part)
	for len(open) > 0 {
		before := b.now()
		results, err := b.ask(ctx, open)
		if err != nil {
			return err
		}
		at := b.now()
		var parcel reading.Parcel
		for i, r := range results {
			err = errors.Join(err, b.result(open[i], r, at, &parcel, len(part) > 1))
		}
		open = unfinished(open)
		if len(parcel.Readings)+len(parcel.Rejects) > 0 {
			if err := b.deliver(ctx, parcel); err != nil {
				return err
			}
		}
		if err != nil {
			return err
		}
		if b.notNow {
			b.notNow, err = false, b.wait(ctx)
		} else {
			err = pause(ctx, min(time.Duration(at.BootNS-before.BootNS), historyPauseMax))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// patient reports whether err is one that waiting may cure, and may be waited for.
func (b *backfill) patient(err error) bool {
	return b.waits < historyTries && slices.ContainsFunc(notNow, func(code ua.StatusCode) bool { return errors.Is(err, code) })
}

func (b *backfill) wait(ctx context.Context) error {
	b.waits++
	return pause(ctx, time.Second<<(b.waits-1))
}

func unfinished(all []*past) (open []*past) {
	for _, p := range all {
		if !p.done {
			open = append(open, p)
		}
	}
	return open
}

func (b *backfill) ask(ctx context.Context, nodes []*past) ([]*ua.HistoryReadResult, error) {
	fromNS, toNS := nodes[0].fromNS, nodes[0].toNS
	req := &ua.HistoryReadRequest{TimestampsToReturn: ua.TimestampsToReturnBoth}
	for _, p := range nodes {
		fromNS = min(fromNS, p.fromNS)
		req.NodesToRead = append(req.NodesToRead, &ua.HistoryReadValueID{NodeID: p.node, DataEncoding: &ua.QualifiedName{}, ContinuationPoint: p.point})
	}
	req.HistoryReadDetails = ua.NewExtensionObject(&ua.ReadRawModifiedDetails{
		StartTime: time.Unix(0, fromNS).UTC(), EndTime: time.Unix(0, toNS).UTC(), NumValuesPerNode: historyPage,
	})
	resp, err := ask[*ua.HistoryReadResponse](ctx, b.c, req)
	// Where there are several nodes, fewer may be what the server can do.
	for err != nil && b.patient(err) && !(len(nodes) > 1 && tooMuch(err)) {
		if err := b.wait(ctx); err != nil {
			return nil, err
		}
		resp, err = ask[*ua.HistoryReadResponse](ctx, b.c, req)
	}
	if err != nil {
		return nil, err
	}
	if len(resp.Results) != len(nodes) {
		return nil, wrongCount("history read", len(nodes), len(resp.Results))
	}
	return resp.Results, nil
}

// result takes one node's page.
func (b *backfill) result(p *past, r *ua.HistoryReadResult, at reading.Instant, parcel *reading.Parcel, several bool) error {
	p.point = r.ContinuationPoint
	before := p.reachedNS
	switch {
	case r.StatusCode == ua.StatusBadNoData: // nothing was recorded: nothing is missing
	case r.StatusCode == ua.StatusBadNoContinuationPoints && several:
		return r.StatusCode // with fewer at once
	case r.StatusCode == ua.StatusBadContinuationPointInvalid && p.restarts < historyRestarts:
		p.restarts++
		p.again()
		return nil
	case b.patient(r.StatusCode):
		p.again()
		b.notNow = true
		return nil
	case severity(r.StatusCode) == bad:
		b.miss(p, "history_refused", historyRefused(r.StatusCode))
		p.done = true
	case r.HistoryData != nil:
		data, ok := r.HistoryData.Value.(*ua.HistoryData)
		if !ok {
			b.miss(p, "history_unreadable", fmt.Sprintf("the server answers with a %T", r.HistoryData.Value))
			p.done = true
			return nil
		}
		p.values(data.DataValues, at, parcel)
	}
	if p.idle++; p.reachedNS > before {
		p.idle = 0
	}
	if !p.done && len(p.point) > 0 && p.idle == historyIdle {
		b.miss(p, "history_endless", fmt.Sprintf("the server always has one more page of its history, and %d of them brought nothing newer", historyIdle))
		p.done = true
	}
	p.done = p.done || len(p.point) == 0
	return nil
}

// values takes a page.
func (p *past) values(page []*ua.DataValue, at reading.Instant, parcel *reading.Parcel) {
	for _, dv := range page {
		t := sourceTime(dv)
		if t.Given() && (t.NS < p.fromNS || t.NS >= p.toNS) {
			continue // a bound that was not asked for, or known from before a restart
		}
		p.take(asLive(dv), at, reading.Historical, parcel)
		if t.Given() {
			p.reachedNS = max(p.reachedNS, t.NS)
		}
	}
}

// infoBits mark a status as that of a stored value, which it shares with the live
// one: without them both are recognised as one reading. They are the info type
// DataValue with the historian bits of a raw value, all 0 (Part 11 §6.3).
const (
	infoType  = 0x0400
	infoOther = 0x03FF
)

func asLive(dv *ua.DataValue) *ua.DataValue {
	if dv.Status&infoType == 0 || dv.Status&infoOther != 0 {
		return dv
	}
	live := *dv
	live.Status &^= infoType
	return &live
}

func historyRefused(code ua.StatusCode) string {
	switch code {
	case ua.StatusBadHistoryOperationUnsupported:
		return "the server keeps no history of it (BadHistoryOperationUnsupported)"
	case ua.StatusBadUserAccessDenied:
		return "the login may not read the history (BadUserAccessDenied); give it the right at the server"
	case ua.StatusBadNoDataAvailable:
		return "the server's archive is not there (BadNoDataAvailable)"
	}
	return explain(code)
}

// miss notes that the rest of a node's stretch cannot be had.
func (b *backfill) miss(p *past, reason, detail string) {
	for i := range b.short {
		if s := &b.short[i]; s.reason == reason && s.detail == detail {
			s.fromNS = min(s.fromNS, p.reachedNS)
			s.places = append(s.places, p.place)
			return
		}
	}
	b.short = append(b.short, shortfall{reason: reason, detail: detail, fromNS: p.reachedNS, toNS: p.toNS, places: []string{p.place}})
}

// release tells the server what will not be read to its end.
func (b *backfill) release(ctx context.Context, part []*past) {
	var points []*past
	for _, p := range part {
		if len(p.point) > 0 {
			points = append(points, p)
		}
	}
	if len(points) == 0 || ctx.Err() != nil {
		return
	}
	req := &ua.HistoryReadRequest{
		TimestampsToReturn: ua.TimestampsToReturnBoth, ReleaseContinuationPoints: true,
		HistoryReadDetails: ua.NewExtensionObject(&ua.ReadRawModifiedDetails{}),
	}
	for _, p := range points {
		req.NodesToRead = append(req.NodesToRead, &ua.HistoryReadValueID{NodeID: p.node, DataEncoding: &ua.QualifiedName{}, ContinuationPoint: p.point})
		p.again()
	}
	// The session's end releases them too.
	_, _ = b.c.call(ctx, req)
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
