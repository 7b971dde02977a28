package clock

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
)

// sourceState is one source clock in stored form. Offsets are θ = source −
// gateway at the writing. Names are stored: append, never rename.
type sourceState struct {
	Input   string `json:"i"`
	Device  string `json:"d,omitempty"`
	LoNS    int64  `json:"lo"`
	N       int64  `json:"n"`
	AheadNS int64  `json:"alo,omitempty"`
	AheadN  int64  `json:"an,omitempty"`
	Minutes int    `json:"am,omitempty"`
	Ahead   bool   `json:"a,omitempty"`
	Behind  bool   `json:"b,omitempty"`
	BackNS  int64  `json:"blo,omitempty"`
	AgeNS   int64  `json:"age"` // since it was last seen
}

type persistedSources struct {
	Version int           `json:"version"`
	WallNS  int64         `json:"wall_ns"` // at the writing
	Segment uint64        `json:"segment"`
	Sources []sourceState `json:"sources"`
}

// PersistSources returns what is known of source clocks, about 100 bytes a
// device, for RestoreSources. It is worth keeping every few minutes: what is
// lost is only learned anew.
func (c *Clock) PersistSources() []byte {
	now := c.Now()
	wmb := now.WallNS - now.BootNS
	s := c.sources
	s.mu.Lock()
	p := persistedSources{Version: persistVersion, WallNS: now.WallNS, Segment: s.segment, Sources: []sourceState{}}
	for _, k := range s.keys() {
		c := s.clocks[k]
		st := sourceState{Input: k.input, Device: k.device, N: c.good.n, AheadN: c.ahead.n, Minutes: c.minutes,
			Ahead: c.isAhead, Behind: c.isBehind, AgeNS: max(now.BootNS-c.seenNS, 0)}
		if c.good.n > 0 {
			st.LoNS = c.good.low(now.BootNS) - wmb
		}
		if c.ahead.n > 0 {
			st.AheadNS = c.ahead.low(now.BootNS) - wmb
		}
		if c.isBehind {
			st.BackNS = c.behind.low(now.BootNS) - wmb
		}
		p.Sources = append(p.Sources, st)
	}
	s.mu.Unlock()
	b, err := json.Marshal(p)
	if err != nil {
		panic(fmt.Sprintf("source clocks cannot be encoded: %v", err)) // they have no type that could fail
	}
	return b
}

// keys returns the keys of the clocks, in order.
func (s *sources) keys() []sourceKey {
	keys := make([]sourceKey, 0, len(s.clocks))
	for k := range s.clocks {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b sourceKey) int {
		return cmp.Or(cmp.Compare(a.input, b.input), cmp.Compare(a.device, b.device))
	})
	return keys
}

// RestoreSources brings back what PersistSources returned, lowered for the time
// that has passed. It is called before Run. On an error nothing has changed.
func (c *Clock) RestoreSources(b []byte) error {
	var p persistedSources
	if err := json.Unmarshal(b, &p); err != nil {
		return fmt.Errorf("cannot read the stored source clocks; they are measured anew: %w", err)
	}
	if p.Version != persistVersion {
		return fmt.Errorf("the stored source clocks are of version %d, not %d; they are measured anew", p.Version, persistVersion)
	}
	now := c.Now()
	wmb, passed := now.WallNS-now.BootNS, max(now.WallNS-p.WallNS, 0)
	s := c.sources
	s.mu.Lock()
	defer s.mu.Unlock()
	s.segment = max(s.segment, p.Segment)
	for _, st := range p.Sources {
		if st.AgeNS < 0 || add(st.AgeNS, passed) > forgetAfter || abs(st.LoNS) > maxOffset || abs(st.AheadNS) > maxOffset || abs(st.BackNS) > maxOffset {
			continue
		}
		at := now.BootNS - passed
		k := sourceKey{st.Input, st.Device}
		src := &sourceClock{key: k, lastMin: -1, seenNS: at - st.AgeNS, minutes: st.Minutes, dCap: DefaultDelayNS}
		if st.N > 0 {
			src.good = envelope{y: st.LoNS + wmb, at: at, n: st.N}
		}
		if st.AheadN > 0 {
			src.ahead, src.isAhead = envelope{y: st.AheadNS + wmb, at: at, n: st.AheadN}, st.Ahead
		}
		if st.Behind {
			src.behind, src.isBehind = envelope{y: st.BackNS + wmb, at: at, n: evidenceSamples}, true
		}
		s.clocks[k] = src
	}
	return nil
}

// maxOffset is the largest offset that is worth remembering: 200 years.
const maxOffset = 200 * 365 * 24 * 3600 * int64(1e9)
