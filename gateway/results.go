package gateway

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"sync"

	"tidemark/configs"
	"tidemark/reading"
	"tidemark/windowing"
)

// results are the latest windows of each key, for the page. The pipeline stages
// what a step emits and posts it once that is on disk.
type results struct {
	mu   sync.Mutex
	keys map[resultKey]*keyResults // under mu
	more uint64                    // under mu; results of keys that had no room

	generation uint64 // under mu; in force when the session began

	staged []stagedResult // the pipeline's
	sought bool           // likewise: room, for what was staged
}

// Bounds of what is remembered: half a megabyte. A key whose last window is as many
// windows old as are shown, and closed, makes room for others: its sensor is silent,
// renamed or gone.
const (
	resultKeys    = 500
	resultWindows = 24
)

func newResults() *results { return &results{keys: map[resultKey]*keyResults{}} }

// begin forgets what a session with that configuration no longer makes, and
// everything if it numbers revisions anew.
func (rs *results) begin(c *configs.Config, generation uint64) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	rs.staged = rs.staged[:0]
	for k := range rs.keys {
		made := slices.ContainsFunc(c.Features, func(f configs.Feature) bool { return f.Name == k.feature })
		if !made || rs.generation != 0 && generation != rs.generation {
			delete(rs.keys, k)
		}
	}
	rs.generation = generation
}

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
	Revision uint32 `json:"revision"` // 0: without a result
	Status   string `json:"status"`   // waiting, provisional, corrected, closed
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
			s.window.Status = e.Status()
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
	rs.sought = false
	for i := range rs.staged {
		rs.put(&rs.staged[i])
	}
	clear(rs.staged)
	rs.staged = rs.staged[:0]
}

func (rs *results) put(s *stagedResult) {
	k := rs.keys[s.key]
	if k == nil {
		if len(rs.keys) >= resultKeys && !rs.sought {
			rs.sought = true
			maps.DeleteFunc(rs.keys, func(_ resultKey, k *keyResults) bool { return k.over(s.window.StartMS) })
		}
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

// over reports whether the key has not been heard of for as many windows as are shown.
func (k *keyResults) over(nowMS int64) bool {
	last := k.windows[len(k.windows)-1]
	return last.Status == "closed" && nowMS-last.EndMS >= resultWindows*(last.EndMS-last.StartMS)
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
	// Of a window that nothing was said of, the first that is said is that it is over.
	k.windows = slices.Insert(k.windows, i, WindowResult{StartMS: startMS, EndMS: endMS, Expected: -1, Status: "closed"})
	return &k.windows[i]
}

// waiting are the open windows that have no result yet, of as many keys as are
// remembered.
func waiting(e *windowing.Engine) map[resultKey][]WindowResult {
	keys := map[resultKey][]WindowResult{}
	e.Open(func(f windowing.FeatureID, asset, lifecycle, sensor string, open []windowing.OpenWindow) bool {
		key := resultKey{f.Name, asset, lifecycle, sensor}
		for _, w := range open {
			if w.Results == 0 {
				keys[key] = append(keys[key], WindowResult{StartMS: w.StartMS, EndMS: w.EndMS, Expected: -1, Status: "waiting"})
			}
		}
		return len(keys) < resultKeys
	})
	return keys
}

// list returns a copy with the windows that wait, in the order of the names, and
// how many results had no room.
func (rs *results) list(waiting map[resultKey][]WindowResult) ([]KeyResults, uint64) {
	rs.mu.Lock()
	defer rs.mu.Unlock()
	out := make([]KeyResults, 0, len(rs.keys))
	for name, k := range rs.keys {
		out = append(out, k.show(name, waiting[name]))
	}
	for name, windows := range waiting {
		if rs.keys[name] == nil {
			out = append(out, (&keyResults{}).show(name, windows))
		}
	}
	slices.SortFunc(out, func(a, b KeyResults) int {
		return cmp.Or(cmp.Compare(a.Feature, b.Feature), cmp.Compare(a.Asset, b.Asset), cmp.Compare(a.Sensor, b.Sensor), cmp.Compare(a.Lifecycle, b.Lifecycle))
	})
	return out, rs.more
}

// show returns a copy with the windows that wait.
func (k *keyResults) show(name resultKey, waiting []WindowResult) KeyResults {
	windows := slices.Concat(k.windows, waiting)
	slices.SortFunc(windows, func(a, b WindowResult) int { return cmp.Compare(a.StartMS, b.StartMS) })
	windows = windows[max(0, len(windows)-resultWindows):]
	for i := range windows {
		windows[i].Value = windows[i].value.AppendJSON(nil)
	}
	return KeyResults{
		Feature: name.feature, Asset: name.asset, Lifecycle: name.lifecycle, Sensor: name.sensor,
		Function: k.function, Unit: k.unit, Windows: windows,
	}
}
