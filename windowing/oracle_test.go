package windowing_test

import (
	"fmt"
	"math/big"
	"slices"
	"sort"
	"strings"

	"tidemark/reading"
	"tidemark/windowing"
)

// twin is the naive second engine: it keeps every reading for ever, looks
// everything up by scanning, and works each rule out anew at every operation.
// What it says is lines of text, in the order of SEMANTICS.
type twin struct {
	config   windowing.Config
	now      int64
	features []*twinFeature
	seen     []*twinReading
	out      []string
}

type twinReading struct {
	r    reading.Reading
	t    int64
	late bool
}

type twinPart struct {
	series           reading.Series // as far as the scope names it
	wm, newest, seen int64
	since            int64
	idle, gone       bool
	spoke, catchUp   bool
}

type twinKey struct {
	name   [3]string // asset, sensor, lifecycle
	parts  []*twinPart
	wm     int64
	owner  *twinFeature
	shared *twinKey // scope input: where wm and parts are
}

type twinWindow struct {
	key           *twinKey
	start, end    int64
	readings      []*twinReading
	rev           int
	fired, dirty  bool
	closed        bool
	lastCorrected int64
	live          bool
}

type twinFeature struct {
	index   int
	def     windowing.Feature
	parts   []*twinPart
	all     *twinKey
	keys    []*twinKey
	windows []*twinWindow
	counts  [3]int // windowed, late, excluded
}

func newTwin(c windowing.Config) *twin {
	w := &twin{config: c, now: reading.NoTime}
	for i, def := range c.Features {
		f := &twinFeature{index: i, def: def}
		if def.EveryMS == 0 {
			f.def.EveryMS = def.SizeMS
		}
		f.all = &twinKey{wm: reading.NoTime, owner: f}
		w.features = append(w.features, f)
	}
	return w
}

func (k *twinKey) state() *twinKey {
	if k.shared != nil {
		return k.shared
	}
	return k
}

func (w *twin) say(format string, args ...any) { w.out = append(w.out, fmt.Sprintf(format, args...)) }

// step is one batch.
func (w *twin) step(b *reading.Batch) []string {
	w.out = nil
	w.now = max(w.now, b.GatewayMS)
	marks := b.Marks
	for i := range b.Readings {
		for len(marks) > 0 && marks[0].At <= i {
			w.mark(marks[0])
			marks = marks[1:]
		}
		w.take(b.Readings[i])
	}
	for _, m := range marks {
		w.mark(m)
	}
	w.correct()
	if b.Emit {
		w.emit()
	}
	return w.out
}

func (f *twinFeature) scoped(s reading.Series) reading.Series {
	switch f.def.Scope {
	case windowing.ScopeDevice:
		return reading.Series{Input: s.Input, Device: s.Device}
	case windowing.ScopeSensor:
		return reading.Series{Input: s.Input, Asset: s.Asset, Sensor: s.Sensor}
	}
	return reading.Series{Input: s.Input}
}

func (f *twinFeature) part(s reading.Series) *twinPart {
	s = f.scoped(s)
	for _, p := range f.parts {
		if p.series == s {
			return p
		}
	}
	p := &twinPart{series: s, wm: reading.NoTime, newest: reading.NoTime, seen: reading.NoTime, since: reading.NoTime}
	f.parts = append(f.parts, p)
	if f.def.Scope == windowing.ScopeInput {
		f.all.parts = append(f.all.parts, p)
	}
	return p
}

func (f *twinFeature) key(s reading.Series) *twinKey {
	name := [3]string{s.Asset, s.Sensor, s.Lifecycle}
	if f.def.Group != "" {
		name = [3]string{"", f.def.Group, ""}
	}
	for _, k := range f.keys {
		if k.name == name {
			return k
		}
	}
	k := &twinKey{name: name, wm: reading.NoTime, owner: f}
	if f.def.Scope == windowing.ScopeInput {
		k.shared = f.all
	}
	f.keys = append(f.keys, k)
	return k
}

// starts are W1 and W5, by looking at every candidate.
func (f *twinFeature) starts(t int64) []int64 {
	var all []int64
	for n := (t-f.def.OffsetMS)/f.def.EveryMS + 2; ; n-- {
		start := f.def.OffsetMS + n*f.def.EveryMS
		if start+f.def.SizeMS <= t-f.def.EveryMS {
			break
		}
		if start <= t && t < start+f.def.SizeMS {
			all = append(all, start)
		}
	}
	slices.Sort(all)
	return all
}

func (f *twinFeature) cleanup(start int64) int64 {
	return start + f.def.SizeMS - 1 + f.def.AllowedLatenessMS
}

func (f *twinFeature) selects(s reading.Series) bool {
	return f.def.Select.Sensor == "" || f.def.Select.Sensor == s.Sensor
}

func (w *twin) take(r reading.Reading) {
	s := r.Tag.Value()
	for _, f := range w.features {
		p := f.part(s)
		p.spoke, p.gone = true, false
	}
	switch r.Stamp.Disposition {
	case reading.Quarantine:
		w.say("quarantine %s", r.ID)
		return
	case reading.Pending:
		return
	}
	t := reading.FloorMS(r.Stamp.EventNS)
	if w.repeated(&r, s) {
		w.say("duplicate %s %s", s.Sensor, r.ID)
		return
	}
	x := &twinReading{r: r, t: t}
	selected := false
	for _, f := range w.features {
		p := f.part(s)
		if !r.Delivery.Has(reading.Historical) {
			p.newest = max(p.newest, r.Stamp.WatermarkMS)
		}
		if !f.selects(s) {
			continue
		}
		selected = true
		k := f.key(s)
		if k.shared == nil && !slices.Contains(k.parts, p) {
			k.parts = append(k.parts, p)
		}
		if e := r.Stamp.EventBound; e.Known() && 2*e.NS() >= f.def.SizeMS*1e6 {
			f.counts[2] += len(f.starts(t))
			continue
		}
		for _, start := range f.starts(t) {
			w.assign(f, k, x, start)
		}
	}
	if selected {
		w.seen = append(w.seen, x)
	}
}

func (w *twin) assign(f *twinFeature, k *twinKey, x *twinReading, start int64) {
	reason := ""
	if f.cleanup(start) <= k.state().wm {
		reason = "window_closed"
	}
	if x.t < w.config.FloorMS {
		reason = "before_generation"
	}
	if reason != "" {
		x.late = true
		f.counts[1]++
		w.say("late %d %v %d %s %s", f.index, k.name, start, x.r.ID, reason)
		return
	}
	f.counts[0]++
	win := f.window(k, start)
	win.readings = append(win.readings, x)
	win.dirty = true
	if !x.r.Delivery.Has(reading.Historical) {
		win.live = true
	}
}

func (f *twinFeature) window(k *twinKey, start int64) *twinWindow {
	for _, win := range f.windows {
		if win.key == k && win.start == start {
			return win
		}
	}
	win := &twinWindow{key: k, start: start, end: start + f.def.SizeMS, lastCorrected: reading.NoTime}
	f.windows = append(f.windows, win)
	return win
}

// repeated is D1 to D3 by scanning all readings.
func (w *twin) repeated(r *reading.Reading, s reading.Series) bool {
	for _, old := range w.seen {
		o := old.r.Tag.Value()
		if o.Asset != s.Asset || o.Lifecycle != s.Lifecycle || o.Sensor != s.Sensor || !same(&old.r, r, o.Input == s.Input) {
			continue
		}
		if old.late || !w.forgotten(old, o) {
			return true
		}
	}
	return false
}

func same(a, b *reading.Reading, oneInput bool) bool {
	switch {
	case a.ID != "" || b.ID != "":
		return a.ID == b.ID
	case a.HasSeq || b.HasSeq:
		return a.HasSeq && b.HasSeq && a.Seq == b.Seq && a.Source.NS == b.Source.NS && oneInput
	}
	return a.Source.NS == b.Source.NS && a.Value == b.Value && a.Quality == b.Quality
}

func (w *twin) forgotten(old *twinReading, s reading.Series) bool {
	for _, f := range w.features {
		if !f.selects(s) {
			continue
		}
		starts := f.starts(old.t)
		wm := f.key(s).state().wm
		if wm == reading.NoTime || wm < f.cleanup(starts[len(starts)-1])+w.config.DuplicateHorizonMS {
			return false
		}
	}
	return true
}

func (w *twin) mark(m reading.Mark) {
	for _, f := range w.features {
		s := reading.Series{Input: m.Input, Device: m.Device, Asset: m.Asset, Sensor: m.Sensor}
		if m.Kind == reading.MarkRemove {
			f.remove(f.scoped(s))
			continue
		}
		p := f.part(s)
		retake := true
		switch m.Kind {
		case reading.MarkExists:
			retake = false
		case reading.MarkWatermark:
			p.idle, p.gone = false, false
			retake = m.TimeMS > p.wm
			p.wm = max(p.wm, m.TimeMS)
		case reading.MarkIdle:
			p.setIdle(true, w.now)
			p.gone = !w.config.Explicit
		case reading.MarkActive:
			p.setIdle(false, w.now)
			p.gone = false
			p.spoke = !w.config.Explicit
		case reading.MarkCatchUpBegin:
			p.catchUp, p.spoke, p.gone = true, true, false
			p.setIdle(false, w.now)
			retake = false
		case reading.MarkCatchUpEnd:
			p.catchUp, p.spoke, p.gone = false, true, false
			retake = false
		}
		if retake {
			f.retake(func(k *twinKey) bool { return slices.Contains(k.parts, p) })
		}
	}
	switch m.Kind {
	case reading.MarkWatermark, reading.MarkIdle, reading.MarkActive:
		w.correct()
		w.advance()
	}
}

func (p *twinPart) setIdle(idle bool, since int64) {
	if p.idle != idle {
		p.idle, p.since = idle, since
	}
}

func (f *twinFeature) remove(s reading.Series) {
	for i, p := range f.parts {
		if p.series == s {
			f.parts = slices.Delete(f.parts, i, i+1)
			for _, k := range append(f.keys, f.all) {
				k.parts = slices.DeleteFunc(k.parts, func(q *twinPart) bool { return q == p })
			}
			return
		}
	}
}

// pending is the watermark that a retaking has found, applied by advance.
var twinPending = map[*twinKey]int64{}

func (f *twinFeature) retake(which func(*twinKey) bool) {
	combiners := f.keys
	if f.def.Scope == windowing.ScopeInput {
		combiners = []*twinKey{f.all}
	}
	for _, k := range combiners {
		if !which(k) {
			continue
		}
		if low := f.minimum(k); low > k.wm {
			twinPending[k] = low
		}
	}
}

func (f *twinFeature) minimum(k *twinKey) int64 {
	high := reading.NoTime
	for _, p := range k.parts {
		if !p.idle {
			high = max(high, p.wm)
		}
	}
	low, any := int64(1<<62), false
	for _, p := range k.parts {
		stalled := f.def.MaxLagMS > 0 && p.wm != reading.NoTime && high-p.wm > f.def.MaxLagMS && !p.catchUp
		if !p.idle && !stalled {
			low, any = min(low, p.wm), true
		}
	}
	if !any {
		return reading.NoTime
	}
	return low
}

func (w *twin) emit() {
	for _, f := range w.features {
		for _, p := range f.parts {
			if !w.config.Explicit {
				w.settle(f, p)
			}
		}
		f.retake(func(*twinKey) bool { return true })
	}
	w.advance()
	w.flush()
}

func (w *twin) settle(f *twinFeature, p *twinPart) {
	if w.now != reading.NoTime {
		if p.spoke || p.seen == reading.NoTime {
			p.seen, p.spoke = w.now, false
		}
		if !p.gone {
			idle := f.def.IdleAfterMS > 0 && !p.catchUp && w.now-p.seen > f.def.IdleAfterMS
			p.setIdle(idle, p.seen+f.def.IdleAfterMS+1)
		}
	}
	if !p.catchUp && p.newest != reading.NoTime {
		p.wm = max(p.wm, p.newest-f.def.OutOfOrdernessMS-1)
	}
}

type twinDue struct {
	due   int64
	close bool
	win   *twinWindow
}

func (w *twin) advance() {
	var due []twinDue
	for _, f := range w.features {
		if low, ok := twinPending[f.all]; ok {
			w.say("watermark %d %d", f.index, low)
		}
		for _, k := range append(slices.Clone(f.keys), f.all) {
			if low, ok := twinPending[k]; ok {
				k.wm = low
			}
		}
		for _, win := range f.windows {
			wm := win.key.state().wm
			if win.closed {
				continue
			}
			if !win.fired && win.end-1 <= wm {
				due = append(due, twinDue{win.end - 1, false, win})
			}
			if f.cleanup(win.start) <= wm {
				due = append(due, twinDue{f.cleanup(win.start), true, win})
			}
		}
	}
	clear(twinPending)
	sort.SliceStable(due, func(i, j int) bool {
		a, b := due[i], due[j]
		switch {
		case a.due != b.due:
			return a.due < b.due
		case a.win.end != b.win.end:
			return a.win.end < b.win.end
		case a.close != b.close:
			return b.close
		}
		return windowBefore(a.win, b.win)
	})
	for _, d := range due {
		if !d.close {
			d.win.fired = true
			w.result(d.win, "watermark")
			continue
		}
		if d.win.dirty {
			w.result(d.win, d.win.cause())
		}
		d.win.closed = true
		w.say("closed %d %v %d %d", d.win.key.owner.index, d.win.key.name, d.win.start, d.win.rev)
	}
}

func windowBefore(a, b *twinWindow) bool {
	if a.end != b.end {
		return a.end < b.end
	}
	if c := strings.Join(a.key.name[:], "\x00"); c != strings.Join(b.key.name[:], "\x00") {
		return c < strings.Join(b.key.name[:], "\x00")
	}
	return a.key.owner.index < b.key.owner.index
}

func (win *twinWindow) cause() string {
	if win.live {
		return "late_reading"
	}
	return "backfill"
}

// correct is F2 and F7.
func (w *twin) correct() {
	var some []*twinWindow
	for _, f := range w.features {
		for _, win := range f.windows {
			if win.dirty && !win.closed && win.end-1 <= win.key.state().wm {
				some = append(some, win)
			}
		}
	}
	sort.SliceStable(some, func(i, j int) bool { return windowBefore(some[i], some[j]) })
	for _, win := range some {
		every := win.key.owner.def.CorrectEveryMS
		if every > 0 && win.lastCorrected != reading.NoTime && win.lastCorrected+every > w.now {
			continue
		}
		win.fired = true
		if win.rev > 0 {
			win.lastCorrected = w.now
		}
		w.result(win, win.cause())
	}
}

func (w *twin) flush() {
	var some []*twinWindow
	for _, f := range w.features {
		for _, win := range f.windows {
			if f.def.FlushAfterMS > 0 && win.dirty && !win.closed && w.idleFor(win.key.state()) >= f.def.FlushAfterMS {
				some = append(some, win)
			}
		}
	}
	sort.SliceStable(some, func(i, j int) bool { return windowBefore(some[i], some[j]) })
	for _, win := range some {
		w.result(win, "idle_flush")
	}
}

// idleFor is how long all partitions have been idle, negative if not all are.
func (w *twin) idleFor(k *twinKey) int64 {
	since := reading.NoTime
	for _, p := range k.parts {
		if !p.idle {
			return -1
		}
		since = max(since, p.since)
	}
	if since == reading.NoTime {
		return -1
	}
	return w.now - since
}

func (w *twin) result(win *twinWindow, cause string) {
	win.rev++
	win.dirty, win.live = false, false
	sum, count := new(big.Rat), int64(0)
	var low, high *big.Rat
	quality := [3]int{}
	for _, x := range win.readings {
		quality[x.r.Quality.Level]++
		if x.r.Quality.Level == reading.Bad {
			continue
		}
		count++
		v := new(big.Rat)
		v.SetFloat64(x.r.Value.Float())
		sum.Add(sum, v)
		if low == nil || v.Cmp(low) < 0 {
			low = v
		}
		if high == nil || v.Cmp(high) > 0 {
			high = v
		}
	}
	values := fmt.Sprint(count)
	for _, v := range []*big.Rat{sum, low, high} {
		if count == 0 {
			values += " null"
			continue
		}
		f, _ := v.Float64()
		values += " " + string(reading.AppendJSONFloat(nil, f))
	}
	if count > 0 {
		f, _ := sum.Quo(sum, new(big.Rat).SetInt64(count)).Float64()
		values += " " + string(reading.AppendJSONFloat(nil, f))
	} else {
		values += " null"
	}
	w.say("feature %d %v %d rev %d %s [%s] %v", win.key.owner.index, win.key.name, win.start, win.rev, cause, values, quality)
}

// spell writes the engine's emission as the twin does.
func spell(c *windowing.Config, m *windowing.Emission) string {
	index := slices.IndexFunc(c.Features, func(f windowing.Feature) bool { return f.ID.Name == m.Feature.Name })
	name := [3]string{m.Asset, m.Sensor, m.Lifecycle}
	switch m.Kind {
	case windowing.EmitFeature:
		var values []string
		for _, v := range m.Values {
			values = append(values, string(v.Value.AppendJSON(nil)))
		}
		return fmt.Sprintf("feature %d %v %d rev %d %s %v [%d %d %d]", index, name, m.StartMS, m.Revision, m.Cause, values,
			m.Quality.Good, m.Quality.Uncertain, m.Quality.Bad)
	case windowing.EmitClosed:
		return fmt.Sprintf("closed %d %v %d %d", index, name, m.StartMS, m.Revision)
	case windowing.EmitLate:
		return fmt.Sprintf("late %d %v %d %s %s", index, name, m.StartMS, m.Reading.ID, m.Reason)
	case windowing.EmitDuplicate:
		return fmt.Sprintf("duplicate %s %s", m.Reading.Tag.Value().Sensor, m.Reading.ID)
	case windowing.EmitQuarantine:
		return "quarantine " + m.Reading.ID
	case windowing.EmitWatermark:
		return fmt.Sprintf("watermark %d %d", index, m.WatermarkMS)
	}
	return fmt.Sprintf("kind %d", m.Kind)
}
