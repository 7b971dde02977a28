package gateway

import (
	"bytes"
	"maps"
	"slices"

	"tidemark/buffer"
	"tidemark/clock"
	"tidemark/reading"
	"tidemark/uplink"
	"tidemark/windowing"
)

// clockEvent records what the clock has to say.
func (p *pipeline) clockEvent(e clock.Event) {
	p.tell(func() { p.note(clockRecord(e, p.clk.Now().State)) })
}

// clockChanged looks at the clock after it has changed: the state is shown, and
// the first time that it is trusted the store gets its generation.
func (p *pipeline) clockChanged() error {
	p.clockDirty = true
	trusted := p.clk.Trusted()
	switch {
	case p.clk.Now().State.Trusted():
		p.health.set("clock", "")
	case trusted:
		p.health.set("clock", "taken as it is (clock.trust: local), checked against nothing; for benches only: name NTP servers under clock.servers")
	default:
		p.health.set("clock", p.clk.Advice())
	}
	if p.ledger.Generation == 0 && trusted {
		return p.giveBirth()
	}
	return nil
}

// event begins a record of something that happens now.
func (p *pipeline) event(kind string) *uplink.Event {
	inst := p.clk.Now()
	return uplink.NewEvent(kind, inst.WallNS, inst.State)
}

// note puts an event into the next commit.
func (p *pipeline) note(e *uplink.Event) {
	p.ledger.Counts.Emitted["event"]++
	p.send(uplink.KindEvent, 0, e.Record())
}

// clockRecord is the record of an event of the clock. A change of state stands
// under the state that it led to, whatever has happened since.
func clockRecord(e clock.Event, now reading.ClockState) *uplink.Event {
	state := now
	if e.To != "" {
		state = reading.ParseClockState(e.To)
	}
	ev := uplink.NewEvent(string(e.Kind), e.AtNS, state).Uint("epoch", uint64(e.Epoch)).Uint("segment", e.Segment)
	if e.BoundNS >= 0 {
		ev.Millis("error_ms", e.BoundNS)
	}
	if e.To != "" {
		ev.Str("from", e.From).Str("to", e.To)
	}
	if e.Why != "" {
		ev.Str("why", e.Why)
	}
	if e.Step != "" {
		ev.Str("step", e.Step).Millis("step_ms", e.StepNS)
	}
	if e.Kind == clock.EventEpochCorrection {
		ev.Uint("corrected_epoch", uint64(e.CorrectedEpoch)).
			Millis("correction_ms", e.CorrectionNS).Millis("correction_error_ms", e.CorrectionBoundNS)
	}
	if e.SuspectFromNS != 0 {
		ev.Time("suspect_from", e.SuspectFromNS).Time("suspect_to", e.SuspectToNS)
	}
	return ev
}

// giveBirth gives the store its generation: the trusted wall time at which it
// was made. Within a boot the kernel's clock tells when that was. After a reboot it
// is now less the gateway time that has passed since, which leaves out when the
// gateway did not run; readings that the store already holds from this boot were
// there earlier, and then its birth was too. Windows before it belong to an earlier
// store and stay closed.
func (p *pipeline) giveBirth() error {
	inst := p.clk.Now()
	birthNS := inst.WallNS - inst.GatewayMS*1e6
	if b := p.ledger.Born; b != nil && b.Boot == inst.Segment.Boot {
		birthNS = inst.WallNS - (inst.BootNS - b.BootNS)
	}
	if p.ledger.PendingFrom != 0 {
		held, _, err := p.pendingChunk()
		if err != nil {
			return err
		}
		for i := range held {
			if seg := held[i].Stamp.Clock; seg != nil && seg.Boot == inst.Segment.Boot {
				arrived := held[i].IngestNS - seg.WallMinusBootNS // on CLOCK_BOOTTIME
				birthNS = min(birthNS, inst.WallNS-(inst.BootNS-arrived))
			}
		}
	}
	p.ledger.Generation = max(uint64(birthNS/1000), p.ledger.Above+1)
	p.log.Info().Uint64("generation", p.ledger.Generation).Msg("the store has its generation: the wall time of its birth, now that the clock vouches for it")
	p.configure()
	p.known()
	return nil
}

// known lets the uplinks begin.
func (p *pipeline) known() {
	p.generation.Store(p.ledger.Generation)
	close(p.born)
}

// configure puts the configuration into the next block if it is not the one in
// force there.
func (p *pipeline) configure() {
	cfg := p.features
	cfg.FloorMS = reading.NoTime
	if p.ledger.Generation != 0 {
		cfg.FloorMS = int64(p.ledger.Generation / 1000)
	}
	data := windowing.AppendConfig(nil, &cfg)
	if bytes.Equal(data, p.config) {
		return
	}
	p.config = data
	for _, input := range p.inputs {
		p.insertMark(reading.MarkExists, input) // an input holds its features back until it speaks or is idle
	}
	for _, input := range slices.Sorted(maps.Keys(p.ledger.Counts.Inputs)) {
		if !slices.Contains(p.inputs, input) {
			p.appendMark(reading.MarkRemove, input)
		}
	}
	p.refused(p.refusals())
	p.announce()
	p.batch.Config = data
	p.since = p.now()
}

// refusals are the features that the engine will not run with this configuration.
func (p *pipeline) refusals() (faults []windowing.Fault) {
	for i := range p.features.Features {
		f := &p.features.Features[i]
		if why := p.engine.Refuses(f); why != "" {
			faults = append(faults, windowing.Fault{Feature: f.ID, Reason: why})
		}
	}
	return faults
}

// announce sends the definitions in force, for whoever reads the features later. One
// that is refused must not take the place of the one that its version stands for.
func (p *pipeline) announce() {
	if p.ledger.Generation == 0 {
		return // configured again at birth
	}
	inst := p.clk.Now()
	refused := p.refusals()
	p.note(p.event(uplink.EventConfig).Uint("features", uint64(len(p.features.Features)-len(refused))))
	for i := range p.features.Features {
		id := p.features.Features[i].ID
		if slices.ContainsFunc(refused, func(f windowing.Fault) bool { return f.Feature == id }) {
			continue
		}
		data := uplink.DefinitionRecord(id, inst.WallNS, inst.State, []byte(p.specs[id.Name]))
		p.send(uplink.KindDefinition, chainUnknown, data)
	}
}

// chainUnknown is the Since of what must not overtake an earlier record of its key:
// a definition, which the broker retains.
const chainUnknown = 1

// send puts a record into the next commit.
func (p *pipeline) send(kind byte, since uint64, data []byte) {
	if p.sends {
		p.events = append(p.events, buffer.Record{Kind: kind, Since: since, Data: append(appendGeneration(nil, p.ledger.Generation), data...)})
	}
}
