package gateway

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"tidemark/buffer"
	"tidemark/clock"
	"tidemark/configs"
	"tidemark/gateway/mqtt"
	"tidemark/gateway/web"
	"tidemark/history"
	"tidemark/internal/pki"
	"tidemark/uplink"
)

// session is everything between opening the store and closing it.
type session struct {
	gateway      *Gateway
	cfg          *configs.Config // in force for this session
	log          zerolog.Logger
	store        *buffer.Store
	clk          *clock.Clock
	pipe         *pipeline
	health       *health
	readers      []reader
	certificates *pki.Store // of OPC UA
	uplinks      []*sender
	notify       *notifier
	socket       *socket
	web          *web.Server // nil if nobody is to be answered
	page         *web.Page
	looks        looks
}

// sender is an uplink that waits for the generation, which every record names.
type sender struct {
	name string
	born <-chan struct{}
	make func(generation uint64) (*uplink.Uplink, error)
	up   atomic.Pointer[uplink.Uplink]
	pipe *pipeline
}

// open opens the store, recovers the engine and builds every part. Nothing runs
// yet.
func (g *Gateway) open() (*session, error) {
	cfg := clockConfig(g.cfg)
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &session{gateway: g, cfg: g.cfg, log: g.log}
	s.clk = clock.New(cfg, clock.Options{Log: g.log, OnEvent: func(e clock.Event) { s.pipe.clockEvent(e) }})
	s.health = g.health
	s.notify = &notifier{on: g.opts.Notify, health: s.health, look: s.look, log: g.log}
	store, opened, err := buffer.Open(g.cfg.Store.Path.String(), storeOptions(g.cfg, s.clk.Now().WallNS))
	if err != nil {
		return nil, &storageError{err: err}
	}
	s.store = store
	if err := s.build(opened); err != nil {
		g.leave(s, err)
		return nil, err
	}
	return s, nil
}

func (s *session) build(opened *buffer.Opened) error {
	begin := s.clk.Now().BootNS
	rec, err := recoverEngine(s.store)
	if err != nil {
		return err
	}
	s.restoreClock()
	s.clk.ResumeGateway(rec.ledger.GatewayMS)
	s.health.begin(s.clk)
	s.gateway.results.begin(s.cfg, rec.ledger.Generation)
	if s.pipe, err = newPipeline(s, rec); err != nil {
		return err
	}
	s.log.Info().Uint64("block", rec.seq).Int("stepped_readings", rec.readings).
		Dur("took_ms", time.Duration(s.clk.Now().BootNS-begin)).Msg("store open, engine recovered")
	if opened.Torn {
		s.log.Warn().Msg("one of the store file's two beginnings was damaged, as a power cut in the middle of a commit leaves it, and the other was taken; unless there was one, look at the disk")
	}
	if opened.SetAside != "" {
		s.pipe.noteSetAside(setAside{opened.SetAside, opened.Reason, opened.Kept})
	}
	if a := s.gateway.aside; a.path != "" {
		s.pipe.noteSetAside(a)
		s.gateway.aside = setAside{}
	}
	s.leftOut()
	if err := s.addReaders(); err != nil {
		return err
	}
	if err := s.addUplinks(); err != nil {
		return err
	}
	if s.cfg.Web.Listen != "" {
		if err := s.addPage(); err != nil {
			return err
		}
	}
	s.socket, err = newSocket(s)
	return err
}

// restoreClock brings back what the clock knew. Without it everything is measured
// anew.
func (s *session) restoreClock() {
	if data := s.store.Meta(metaClock); data != nil {
		if err := s.clk.Restore(data); err != nil {
			s.log.Warn().Err(err).Msg("the clock's last selection cannot be read; it starts unknown")
		}
	}
	if data := s.store.Meta(metaSources); data != nil {
		if err := s.clk.RestoreSources(data); err != nil {
			s.log.Warn().Err(err).Msg("the sources' clocks are measured anew")
		}
	}
}

func newPipeline(s *session, rec *recovered) (*pipeline, error) {
	c := s.cfg
	features, err := EngineConfig(c)
	if err != nil {
		return nil, err
	}
	p := &pipeline{
		inbox: newInbox(), gathered: newGathered(), saves: saves{cost: rec.cost},
		clk: s.clk, store: s.store, log: s.log, health: s.health,
		engine: rec.engine, ledger: rec.ledger, seq: rec.seq,
		features: features, specs: map[string]string{}, policies: map[string]clock.InputPolicy{}, sends: len(c.Uplinks) > 0,
		config: s.store.Meta(metaConfig), lastGood: lastGood(c),
		cad: newCadence(c.Store.CommitInterval.Std(), c.Store.CommitMinGap.Std(),
			int(c.Store.CommitBytes), float64(c.Store.DailyBudget)),
		taken: map[string]uint64{}, alive: map[string]int64{}, catching: map[string]catcher{}, sessions: map[string][]string{},
		born:     make(chan struct{}),
		measures: newMeasures(), board: s.gateway.board, tails: &tails{}, results: s.gateway.results,
	}
	for i := range c.Features {
		p.specs[c.Features[i].Name] = c.Features[i].Spec()
	}
	for i := range c.Inputs {
		in := &c.Inputs[i]
		p.inputs = append(p.inputs, in.Name)
		p.taken[in.Name] = p.ledger.Counts.input(in.Name).Received
		p.policies[in.Name] = inputPolicy(c, in)
	}
	p.ledger.Gateway = c.Gateway.ID
	p.board.begin(p.inputs)
	if err := p.board.restore(s.store, rec.seq); err != nil {
		return nil, err
	}
	if p.repeats, err = restoreRepeats(s.store, rec.seq); err != nil {
		return nil, err
	}
	if rec.mismatch != 0 {
		p.emitAnew(rec)
	}
	p.bornAgain()
	if now := s.clk.Now(); rec.seq == 0 && p.ledger.Born == nil {
		p.ledger.Born = &birth{now.Segment.Boot, now.BootNS}
	}
	if p.ledger.Generation != 0 {
		p.known()
	}
	return p, nil
}

// addPage makes the local page, behind its token if it has one.
func (s *session) addPage() error {
	token, err := s.cfg.Web.Token.Read()
	if err != nil {
		return fmt.Errorf("web.token: %w", err)
	}
	s.web = web.New(s.cfg.Web.Listen, s, token, s.log)
	s.page = web.NewPage(func(ctx context.Context) (any, error) { return s.view(ctx) }, s.log)
	s.page.Register(s.web)
	return nil
}

// emitAnew answers a journal that, stepped again, says something else than was
// committed with it (law 2), or has lost blocks: what it says now goes out under a
// new generation, above whatever was served. A checkpoint follows, so that the next
// start does not come this way again.
func (p *pipeline) emitAnew(rec *recovered) {
	p.ledger.Generation++
	p.cost = 2 * checkpointCost
	if rec.lost > 0 {
		p.config = nil // it may have been in one of them
	}
	p.log.Error().Uint64("lost_blocks", rec.lost).Uint64("block", rec.mismatch).Uint64("generation", p.ledger.Generation).
		Msg("stepping the journal again gives other results than were committed; they are emitted anew under a new generation")
	p.note(p.event(uplink.EventMismatch).Uint("block", rec.mismatch).
		Uint("lost_blocks", rec.lost).Uint("emissions", uint64(len(rec.different))))
	for _, data := range rec.different {
		p.send(uplink.KindEmission, chainUnknown, data)
	}
}

// noteSetAside says that the store before this one could not be used, what of it
// goes on, and what stays behind.
func (p *pipeline) noteSetAside(a setAside) {
	e := p.event(uplink.EventStoreSetAside).Str("path", a.path).Str("reason", a.reason)
	line := p.log.Error().Str("kept_as", a.path).Str("reason", a.reason)
	if k := a.kept; k != nil {
		e.Uint("records_kept", k.Records).Uint("records_lost", k.LostRecords).Uint("evidence_kept", k.Evidence).
			Uint("blocks_left", k.LeftBlocks).Int("readings_left", k.LeftReadings)
		line = line.Uint64("records_kept", k.Records).Uint64("records_lost", k.LostRecords).Uint64("evidence_kept", k.Evidence).
			Uint64("blocks_left", k.LeftBlocks).Int64("readings_left", k.LeftReadings)
	}
	line.Str("look_with", "tidemark store salvage "+a.path+" NEW").
		Msg("the store could not be used and was set aside; a new one with a new generation takes its place, with what still waited to go upstream")
	p.health.set("store", "the one before could not be used and is kept as "+a.path+"; bring back what is whole with tidemark store salvage. Said until the next start or reload")
	p.note(e)
}

func (s *session) addReaders() error {
	stored, err := storedFilters(s.store)
	if err != nil {
		return err
	}
	s.certificates = pki.At(s.cfg.PKI.Dir.String())
	for i := range s.cfg.Inputs {
		in := &s.cfg.Inputs[i]
		if in.OPCUA != nil {
			if err := s.addOPCUA(in); err != nil {
				return err
			}
			continue
		}
		cfg := mqttConfig(s.cfg, in)
		cfg.StaleFilters, cfg.Memory, cfg.OnStall = stored[in.Name], s.store.Meta(metaMemory+in.Name), s.pipe.Hurry
		cfg.OnReconciled = func(filters []string) { s.pipe.tell(func() { s.pipe.sessionHas(in.Name, filters) }) }
		r, err := mqtt.New(cfg, s.pipe, s.clk, s.log)
		if err != nil {
			return err
		}
		s.pipe.sessionHas(in.Name, append(r.Filters(), stored[in.Name]...))
		s.readers = append(s.readers, mqttReader{r})
	}
	return nil
}

func (s *session) addUplinks() error {
	for i := range s.cfg.Uplinks {
		u := &s.cfg.Uplinks[i]
		send := &sender{name: u.Name, born: s.pipe.born, pipe: s.pipe}
		send.make = func(generation uint64) (*uplink.Uplink, error) {
			f := &feed{
				outbox: s.store.Outbox(u.Name), ordered: u.Backlog.Order == configs.InOrder,
				generation: generation, wants: rawFilter(u.Raw), log: s.log,
			}
			enc := uplink.Encoder{
				Gateway: s.cfg.Gateway.ID, Generation: generation, Prefix: u.Prefix, Finals: u.Publish == configs.PublishFinal,
			}
			cfg := uplinkConfig(u, s.clk)
			cfg.SetAside = func(a uplink.SetAside) { s.pipe.undeliverable(u.Name, enc.Finals, a) }
			return uplink.New(cfg, f, enc, s.log)
		}
		if _, err := send.make(0); err != nil { // refuse what could never work before anything runs
			return err
		}
		s.uplinks = append(s.uplinks, send)
	}
	return nil
}

func (u *sender) run(ctx context.Context) error {
	select {
	case <-u.born:
	case <-ctx.Done():
		return nil
	}
	up, err := u.make(u.pipe.generation.Load())
	if err != nil {
		return err
	}
	u.up.Store(up)
	return up.Run(ctx)
}

func (u *sender) status() UplinkStatus {
	box := u.pipe.store.Outbox(u.name)
	w, _ := box.Waiting() // a store that cannot be read says so elsewhere
	s := UplinkStatus{Name: u.name, State: "waiting", Backlog: w.Records, Reason: "for the gateway's clock to be trusted once: records carry the generation that follows from it"}
	if up := u.up.Load(); up != nil {
		s = newUplinkStatus(up.Status())
	}
	s.RawBlocks = box.WaitingBlocks()
	if s.Backlog > 0 && w.OldestMS > 0 {
		s.Oldest = history.TimeMS(w.OldestMS)
	}
	return s
}
