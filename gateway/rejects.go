package gateway

import "tidemark/uplink"

// rejectLog bounds what a flood of unreadable payloads leaves behind: per input
// and reason, one record a minute with the count since the last and one sample.
// The counts themselves are exact and stand in the ledger.
type rejectLog struct {
	last map[rejectKey]*rejectRun
}

type rejectKey struct{ input, kind, reason string }

type rejectRun struct {
	atMS  int64  // gateway time of the last record
	count uint64 // since then
}

// rejectEvery is the least time between two records of one kind.
const rejectEvery = 60_000

// note counts one reject at gateway time nowMS and reports whether it is to be
// recorded, with the number that the record stands for.
func (l *rejectLog) note(k rejectKey, nowMS int64) (count uint64, record bool) {
	if l.last == nil {
		l.last = map[rejectKey]*rejectRun{}
	}
	run := l.last[k]
	if run == nil {
		run = &rejectRun{atMS: nowMS - rejectEvery}
		l.last[k] = run
	}
	run.count++
	if nowMS-run.atMS < rejectEvery {
		return 0, false
	}
	count, run.count, run.atMS = run.count, 0, nowMS
	return count, true
}

// countReject counts a reject and leaves a record of it where one is due.
func (p *pipeline) countReject(j *rejected) {
	p.ledger.Counts.reject(j.input, &j.Reject)
	k := rejectKey{j.input, j.Kind.String(), j.Reason}
	count, record := p.faults.note(k, p.ledger.GatewayMS)
	if !record {
		return
	}
	p.log.Warn().Str("input", j.input).Str("kind", k.kind).Str("reason", k.reason).
		Str("place", j.Place).Uint64("count", count).Msg(j.Detail)
	p.note(uplink.RejectEvent(j.input, &j.Reject, p.clk.Now().State).Uint("count", count))
}
