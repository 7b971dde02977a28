package gateway

import (
	"tidemark/reading"
	"tidemark/uplink"
)

// rejectLog bounds what a flood of unreadable payloads leaves behind: per input
// and reason one record a minute, with the number since the last one and a
// sample, and the first few that have an identity as evidence. The counts
// themselves are exact and stand in the ledger.
type rejectLog struct {
	runs    map[rejectKey]*rejectRun
	sweptMS int64
}

type rejectKey struct{ input, kind, reason string }

// rejectRun is what came since the last record.
type rejectRun struct {
	atMS   int64 // gateway time of the last record
	count  uint64
	kept   int // as evidence, since then
	sample reading.Reject
}

const (
	rejectEvery = 60_000 // ms; the least time between two records of one kind
	rejectKeep  = 20     // kept as evidence between two records
)

// note counts one reject at gateway time nowMS. It reports whether a record is
// due, for which take gives the number, and whether the reject is worth keeping
// as evidence.
func (l *rejectLog) note(k rejectKey, j *reading.Reject, nowMS int64) (record, keep bool) {
	if l.runs == nil {
		l.runs = map[rejectKey]*rejectRun{}
	}
	run := l.runs[k]
	if run == nil {
		run = &rejectRun{atMS: nowMS - rejectEvery}
		l.runs[k] = run
	}
	run.count++
	run.sample = *j
	if keep = j.ID != "" && run.kept < rejectKeep; keep {
		run.kept++
	}
	return nowMS-run.atMS >= rejectEvery, keep
}

// take begins a new run for k and returns what the last one came to.
func (l *rejectLog) take(k rejectKey, nowMS int64) rejectRun {
	run := l.runs[k]
	was := *run
	*run = rejectRun{atMS: nowMS}
	return was
}

// ripe returns what came after its last record and has waited for a minute.
func (l *rejectLog) ripe(nowMS int64) (ks []rejectKey) {
	if nowMS-l.sweptMS < rejectEvery {
		return nil
	}
	l.sweptMS = nowMS
	for k, run := range l.runs {
		switch {
		case nowMS-run.atMS < rejectEvery:
		case run.count > 0:
			ks = append(ks, k)
		default:
			delete(l.runs, k)
		}
	}
	return ks
}

// countReject counts a reject and leaves of it what is due.
func (p *pipeline) countReject(j *rejected) {
	p.ledger.Counts.reject(j.input, &j.Reject)
	k := rejectKey{j.input, j.Kind.String(), j.Reason}
	record, keep := p.faults.note(k, &j.Reject, p.ledger.GatewayMS)
	if keep {
		p.keep(evidenceReject, reading.FloorMS(j.IngestNS), uplink.RejectEvent(j.input, &j.Reject, p.clk.Now().State))
	}
	if record {
		p.recordRejects(k)
	}
}

// recordRejects makes one record of everything of its kind since the last.
func (p *pipeline) recordRejects(k rejectKey) {
	run := p.faults.take(k, p.clk.Now().GatewayMS)
	p.log.Warn().Str("input", k.input).Str("kind", k.kind).Str("reason", k.reason).
		Str("place", run.sample.Place).Uint64("count", run.count).Msg(run.sample.Detail)
	p.note(uplink.RejectEvent(k.input, &run.sample, p.clk.Now().State).Uint("count", run.count))
}

// sweepRejects records what a flood that has ended left uncounted.
func (p *pipeline) sweepRejects() {
	for _, k := range p.faults.ripe(p.clk.Now().GatewayMS) {
		p.recordRejects(k)
	}
}
