package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"tidemark/buffer"
	"tidemark/configs"
	"tidemark/history"
)

// errReload ends a session so that the next one takes another configuration.
var errReload = errors.New("the configuration has changed")

// reload is how a running gateway comes to another configuration: its session
// ends as at a stop, with everything committed and nothing unacknowledged lost,
// and the next one begins with the new file, as after a start. A configuration
// that no session can be made of is taken back.
type reload struct {
	mu       sync.Mutex
	next     *configs.Config         // for the next session
	before   *configs.Config         // what to take back to, until the new one has served
	end      context.CancelCauseFunc // of the session
	tries    uint64                  // configurations that were put in force or turned down
	rejected *Rejected
}

// Rejected is an edit of the configuration that changed nothing.
type Rejected struct {
	At     string `json:"at"` // RFC 3339, empty if it was there at the start
	Reason string `json:"reason"`
}

// ReloadFile reads the configuration file and goes on with what stands there. A
// file with a fault changes nothing.
func (g *Gateway) ReloadFile() {
	if cfg, err := g.load(); err == nil {
		g.Reload(cfg)
	}
}

// load reads the configuration file. A file with a fault is rejected: the gateway
// is degraded until it is given a good one.
func (g *Gateway) load() (*configs.Config, error) {
	cfg, err := g.opts.Load()
	if err != nil {
		g.mu.Lock()
		g.reject(err)
		g.mu.Unlock()
		return nil, err
	}
	for _, n := range cfg.Notices {
		g.log.Warn().Msg(n.String())
	}
	return cfg, nil
}

// Reload has the gateway go on with cfg, which was loaded without a fault. It
// returns at once; readings that arrive meanwhile wait at their sources.
func (g *Gateway) Reload(cfg *configs.Config) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next, g.rejected = cfg, nil
	if g.end != nil {
		g.end(errReload)
	}
}

func (g *Gateway) reject(err error) {
	g.rejected = &Rejected{Reason: err.Error()}
	if s := g.now.Load(); s != nil {
		g.rejected.At = history.Time(s.clk.Now().WallNS)
	}
	g.log.Error().Err(err).Msg("the configuration file was rejected; the one in force before stays")
}

// beginSession takes the next configuration, if there is one. The context that it
// returns ends with ctx, and with errReload when another comes.
func (g *Gateway) beginSession(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.next != nil {
		g.before, g.cfg, g.next = g.cfg, g.next, nil
	}
	g.end = cancel
	return ctx, func() {
		g.mu.Lock()
		g.end = nil
		g.mu.Unlock()
		cancel(nil)
	}
}

// settled says that a session was made of the configuration.
func (g *Gateway) settled() {
	g.mu.Lock()
	g.before = nil
	g.tries++
	g.mu.Unlock()
}

// revert goes back to the configuration before the last Reload, of which no
// session could be made, and reports whether there was one.
func (g *Gateway) revert(err error) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.before == nil {
		return false
	}
	g.cfg, g.before = g.before, nil
	g.tries++
	g.reject(err)
	return true
}

// configStatus is which configuration is in force, and what became of the file.
func (s *session) configStatus() ConfigStatus {
	r := s.lookAtConfig()
	s.gateway.mu.Lock()
	defer s.gateway.mu.Unlock()
	return ConfigStatus{File: s.cfg.File(), Hash: s.cfg.Hash(), Loads: s.gateway.tries, Rejected: r}
}

// lookAtConfig brings the health up to date with what became of the file.
func (s *session) lookAtConfig() *Rejected {
	g := s.gateway
	g.mu.Lock()
	r := g.rejected
	g.mu.Unlock()
	detail := ""
	if r != nil {
		detail = fmt.Sprintf("the file was rejected and what was in force before stays; mend it and reload: %s", r.Reason)
	}
	s.health.set("configuration", detail)
	return r
}

// leftOut shows the features that the file names and that do not run for a fault
// there.
func (s *session) leftOut() {
	for _, d := range s.cfg.Disabled {
		s.health.set("feature "+d.Name, "left out for its fault in the file: "+d.Faults.Error())
	}
}

// goodFile is a configuration file as it was last served without a fault.
type goodFile struct {
	Path string `json:"path"`
	Text string `json:"text"`
}

// lastGood is what the store keeps of cfg, nil if it has a fault or did not come
// from a file.
func lastGood(cfg *configs.Config) []byte {
	if len(cfg.Disabled) > 0 || cfg.Text() == "" {
		return nil
	}
	data, err := json.Marshal(goodFile{configs.Absolute(cfg.File()), cfg.Text()})
	if err != nil {
		panic("gateway: " + err.Error()) // two strings
	}
	return data
}

// LastGood returns the configuration that the file held when the gateway last ran
// with it, from the store that the file names in whatever state it is, or else
// from the default one. It fails where no store keeps one of this file.
func LastGood(file string) (*configs.Config, error) {
	store := configs.StoreOf(file).String()
	data, err := buffer.ReadMeta(store, metaLastGood)
	if err != nil {
		return nil, fmt.Errorf("no last good configuration can be read: %w", err)
	}
	var good goodFile
	if data == nil {
		return nil, fmt.Errorf("store %s keeps no last good configuration", store)
	}
	if err := json.Unmarshal(data, &good); err != nil {
		return nil, fmt.Errorf("the last good configuration in %s cannot be read: %w", store, err)
	}
	if good.Path != configs.Absolute(file) {
		return nil, fmt.Errorf("the last good configuration in %s is of another file, %s", store, good.Path)
	}
	cfg, err := configs.ParseFile(file, []byte(good.Text))
	if err != nil {
		return nil, fmt.Errorf("the last good configuration is none for this version: %w", err)
	}
	return cfg, nil
}
