package gateway

import (
	"cmp"
	"encoding/json"
	"slices"
	"sync"

	"tidemark/reading"
	"tidemark/windowing"
)

// results are the latest windows of each key, for the page. The pipeline stages
// what a step emits and posts it once that is on disk.
type results struct {
	mu   sync.Mutex
	keys map[resultKey]*keyResults // under mu
	more uint64                    // under mu; results of keys that had no room

	staged []stagedResult // the pipeline's
}

// Bounds of what is remembered: half a megabyte.
const (
	resultKeys    = 500
	resultWindows = 24
)

func newResults() *results { return &results{keys: map[resultKey]*keyResults{}} }

type resultKey struct{ feature, asset, lifecycle, sensor string }

type stagedResult struct {
	key      resultKey
	unit     string
	function string
	kind     windowing.EmissionKind
	window   WindowResult
}

type keyResults struct {
	unit, function string
	windows        []WindowResult // ascending
}

// KeyResults are the latest windows of one key, the newest last.
type KeyResults struct {
	Feature   string         `json:"feature"`
	Asset     string         `json:"asset"`
	Lifecycle string         `json:"lifecycle,omitempty"`
	Sensor    string         `json:"sensor"`
	Function  string         `json:"function"` // of the values shown: the first that is no count
	Unit      string         `json:"unit"`
	Windows   []WindowResult `json:"windows"`
}

// WindowResult is what stands of one window.
type WindowResult struct {
	StartMS  int64  `json:"start_ms"`
	EndMS    int64  `json:"end_ms"`
	Revision uint32 `json:"revision"` // 0: closed without a result
	Status   string `json:"status"`   // provisional, corrected, closed
	// Value is a number, boolean or text, null if the statistic is missing.
	Value    json.RawMessage `json:"value"`
	Observed int64           `json:"observed"`
	Expected int64           `json:"expected"` // -1: not configured
	Late     int             `json:"late"`     // readings that came too late

	value reading.Value
}

// stage keeps what a step emits.
func (rs *results) stage(es []windowing.Emission) {
	for i := range es {
		e := &es[i]
		s := stagedResult{
			key: resultKey{e.Feature.Name, e.Asset, e.Lifecycle, e.Sensor}, kind: e.Kind,
			window: WindowResult{StartMS: e.StartMS, EndMS: e.EndMS, Revision: e.Revision},
		}
		switch e.Kind {
		case windowing.EmitFeature:
			s.window.Status = "provisional"
			if e.Revision > 1 {
				s.window.Status = "corrected"
			}
			s.window.Observed, s.window.Expected = e.Coverage.Observed, e.Coverage.Expected
			s.function, s.window.value = shown(e.Values)
			s.unit = windowing.FunctionUnit(s.function, e.Unit)
		case windowing.EmitClosed:
			s.window.Status = "closed"
		case windowing.EmitLate:
			s.window.Late = 1
		default:
			continue
		}
		rs.staged = append(rs.staged, s)
	}
}

// shown chooses the statistic that stands for a feature: what is most like a
// reading, or else the first that is no count.
func shown(vs []windowing.NamedValue) (string, reading.Value) {
	for _, name := range [...]string{"time_weighted_mean", "mean", "last"} {
		for _, v := range vs {
			if v.Name == name {
				return v.Name, v.Value
			}
		}
	}
	for _, v := range vs {
		if v.Name != "count" {
			return v.Name, v.Value
		}
	}
	if len(vs) > 0 {
		return vs[0].Name, vs[0].Value
	}
	return "", reading.Value{}
}

// post shows what was staged.
func (rs *results) post() {
	if len(rs.staged) == 0 {
		return
	}
	rs.mu.Lock()
	defer rs.mu.Unlock()
	for i := range rs.staged {
		rs.put(&rs.staged[i])
	}
	clear(rs.staged)
	rs.staged = rs.staged[:0]
}

func (rs *results) put(s *stagedResult) {
	k := rs.keys[s.key]
	if k == nil {
		if len(rs.keys) >= resultKeys {
			rs.more++
			return
		}
		k = &keyResults{}
		rs.keys[s.key] = k
	}
	w := k.window(s.window.StartMS, s.window.EndMS)
	if w == nil {
		return // older than all that are shown
	}
	switch s.kind {
	case windowing.EmitLate:
		w.Late++
	case windowing.EmitClosed:
		w.Status = s.window.Status
	default:
		s.window.Late = w.Late
		*w, k.unit, k.function = s.window, s.unit, s.function
	}
}

// window returns the key's window, making it in the place of the oldest.
func (k *keyResults) window(startMS, endMS int64) *WindowResult {
	i, found := slices.BinarySearchFunc(k.windows, startMS, func(w WindowResult, ms int64) int { return cmp.Compare(w.StartMS, ms) })
	if found {
		return &k.windows[i]
	}
	if len(k.windows) == resultWindows {
		if i == 0 {
			return nil
		}
		k.windows = slices.Delete(k.windows, 0, 1)
		i--
	}
	k.windows = slices.Insert(k.windows, i, WindowResult{StartMS: startMS, EndMS: endMS, Expected: -1, Status: "waiting"})
	return &k.windows[i]
}

// list returns a copy, in the order of the names, and how many results had no room.
func (rs *results) list() ([]KeyResults, uint64) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	out := make([]KeyResults, 0, len(rs.keys))
	for name, k := range rs.keys {
		windows := slices.Clone(k.windows)
		for i := range windows {
			windows[i].Value = windows[i].value.AppendJSON(nil)
		}
		out = append(out, KeyResults{
			Feature: name.feature, Asset: name.asset, Lifecycle: name.lifecycle, Sensor: name.sensor,
			Function: k.function, Unit: k.unit, Windows: windows,
		})
	}
	slices.SortFunc(out, func(a, b KeyResults) int {
		return cmp.Or(cmp.Compare(a.Feature, b.Feature), cmp.Compare(a.Asset, b.Asset), cmp.Compare(a.Sensor, b.Sensor), cmp.Compare(a.Lifecycle, b.Lifecycle))
	})
	return out, rs.more
}
