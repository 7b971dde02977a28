package windowing_test

import (
	"fmt"
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
	encoded  []byte
	now      int64
	clock    reading.ClockState
	features []*twinFeature
	known    []*twinDefinition
	disabled int
	seen     []*twinReading
	sensors  []*twinSensor
	inputs   map[string]int64  // gateway time of the latest sign of life
	asked    map[*twinKey]bool // to have their minimum taken anew
	out      []string
	faults   []string // features that are refused
}

type twinReading struct {
	r    reading.Reading
	t    int64
	late bool
	keys []*twinKey // that the sensor had fed by then
}

type twinPart struct {
	series           reading.Series // as far as the scope names it
	wm, newest, seen int64
	since            int64
	idle, gone       bool
	spoke, catchUp   bool
	via              string // the device heard last
}

type twinKey struct {
	name   [3]string // asset, sensor, lifecycle
	parts  []*twinPart
	wm     int64
	owner  *twinFeature
	shared *twinKey // scope input: where wm and parts are
	closed int64    // windows that end at or before it are closed for good
	fedBy  map[[3]string]bool
}

type twinWindow struct {
	key           *twinKey
	start, end    int64
	readings      []*twinReading
	rev           int
	fired, dirty  bool
	closed        bool
	lastCorrected int64
	live, stepped bool
}

type twinFeature struct {
	index   int
	def     windowing.Feature
	parts   []*twinPart
	all     *twinKey
	keys    []*twinKey
	windows []*twinWindow
	counts  [3]int // windowed, late, excluded
	retired int64  // windows that end at or before it belong to the past
}

func newTwin(c windowing.Config) *twin {
	w := &twin{now: reading.NoTime, inputs: map[string]int64{}, asked: map[*twinKey]bool{}}
	w.configure(c)
	return w
}

func (k *twinKey) state() *twinKey {
	if k.shared != nil {
		return k.shared
	}
	return k
}

func (w *twin) say(format string, args ...any) { w.out = append(w.out, fmt.Sprintf(format, args...)) }

// step is one batch. outcomes are the engine's, which decide what is left open:
// whether a key that a sensor feeds only later keeps its identities too.
func (w *twin) step(b *reading.Batch, outcomes []windowing.Outcome) []string {
	w.out, w.faults = nil, nil
	w.now = max(w.now, b.GatewayMS)
	w.clock = reading.ClockUnknown
	if b.Clock != nil {
		w.clock = b.Clock.State
	}
	if b.Config != nil {
		w.reconfigure(b.Config)
	}
	marks := b.Marks
	for i := range b.Readings {
		for len(marks) > 0 && marks[0].At <= i {
			w.mark(marks[0])
			marks = marks[1:]
		}
		w.take(b.Readings[i], outcomes[i] == windowing.OutcomeDuplicate)
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
	switch {
	case f.def.GroupPerAsset && f.def.Group != "":
		name[1] = f.def.Group
	case f.def.Group != "":
		name = [3]string{"", f.def.Group, ""}
	}
	for _, k := range f.keys {
		if k.name == name {
			return k
		}
	}
	k := f.newKey()
	k.name = name
	if f.def.Scope == windowing.ScopeInput {
		k.shared = f.all
	}
	f.keys = append(f.keys, k)
	return k
}

func (f *twinFeature) newKey() *twinKey {
	return &twinKey{wm: reading.NoTime, closed: reading.NoTime, owner: f, fedBy: map[[3]string]bool{}}
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
	return f.hears(s.Input) && (f.def.Select.Sensor == "" || f.def.Select.Sensor == s.Sensor)
}

// hears reports whether the input is a source of the feature's progress.
func (f *twinFeature) hears(input string) bool {
	return f.def.Select.Input == "" || f.def.Select.Input == input
}

func (w *twin) take(r reading.Reading, hint bool) {
	s := r.Tag.Value()
	w.alive(s.Input)
	sensor := w.sensor(s)
	w.speaks(sensor, s.Input)
	for _, f := range w.features {
		if f.hears(s.Input) {
			p := f.part(s)
			p.spoke, p.gone, p.via = true, false, s.Device
		}
	}
	switch r.Stamp.Disposition {
	case reading.Quarantine:
		w.say("quarantine %s", r.ID)
		return
	case reading.Pending:
		return
	}
	t := reading.FloorMS(r.Stamp.EventNS)
	if w.repeated(&r, s, hint) {
		w.say("duplicate %s %s", s.Sensor, r.ID)
		return
	}
	sensor.last = max(sensor.last, t)
	x := &twinReading{r: r, t: t}
	selected := false
	for _, f := range w.features {
		if !f.hears(s.Input) {
			continue
		}
		p := f.part(s)
		if !r.Delivery.Has(reading.Historical | reading.Rejudged) {
			p.newest = max(p.newest, r.Stamp.WatermarkMS)
		}
		if !f.selects(s) {
			continue
		}
		selected = true
		k := f.key(s)
		k.fedBy[sensor.name] = true
		if k.shared == nil && !slices.Contains(k.parts, p) {
			k.parts = append(k.parts, p)
		}
		if e := r.Stamp.EventBound; e.Known() && 2*(e-1).NS() >= f.def.SizeMS*1e6 { // proven by the stored bound
			f.counts[2] += len(f.starts(t))
			continue
		}
		for _, start := range f.starts(t) {
			w.assign(f, k, x, start)
		}
	}
	if selected {
		x.keys = w.fed(s)
		w.seen = append(w.seen, x)
	}
}

func (w *twin) assign(f *twinFeature, k *twinKey, x *twinReading, start int64) {
	reason, end := "", start+f.def.SizeMS
	switch {
	case x.t < w.config.FloorMS:
		reason = "before_generation"
	case end <= f.retired:
		reason = "retired"
	case f.cleanup(start) <= k.state().wm || end-1 <= k.state().closed:
		reason = "window_closed"
	}
	if reason != "" {
		x.late = true
		f.counts[1]++
		w.say("late %s %v %d %s %s wm %d", f.def.ID.Name, k.name, start, x.r.ID, reason, k.state().wm)
		return
	}
	f.counts[0]++
	win := f.window(k, start)
	win.readings = append(win.readings, x)
	win.dirty = true
	if !x.r.Delivery.Has(reading.Historical | reading.Rejudged) {
		win.live = true
	} else if x.r.Stamp.Flags&reading.RetroCorrected != 0 {
		win.stepped = true
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
func (w *twin) repeated(r *reading.Reading, s reading.Series, hint bool) bool {
	if !slices.ContainsFunc(w.features, func(f *twinFeature) bool { return f.selects(s) }) {
		return false
	}
	for _, old := range w.seen {
		o := old.r.Tag.Value()
		if o.Asset != s.Asset || o.Lifecycle != s.Lifecycle || o.Sensor != s.Sensor || !same(&old.r, r, o.Input == s.Input) {
			continue
		}
		switch {
		case old.late || !w.forgotten(old, old.keys):
			return true
		case !w.forgotten(old, w.fed(o)) && hint:
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

// fed are the keys that readings of the sensor have gone to.
func (w *twin) fed(s reading.Series) (keys []*twinKey) {
	for _, f := range w.features {
		for _, k := range f.keys {
			if k.fedBy[[3]string{s.Asset, s.Sensor, s.Lifecycle}] {
				keys = append(keys, k)
			}
		}
	}
	return keys
}

// forgotten is D3, for keys of features in force.
func (w *twin) forgotten(old *twinReading, keys []*twinKey) bool {
	for _, k := range keys {
		f := k.owner
		starts := f.starts(old.t)
		last := starts[len(starts)-1] + f.def.SizeMS - 1
		open := k.state().closed == reading.NoTime || k.state().closed < last+w.config.DuplicateHorizonMS
		if open && slices.Contains(w.features, f) {
			return false
		}
	}
	return true
}

func (w *twin) mark(m reading.Mark) {
	if m.Kind == reading.MarkActive {
		w.alive(m.Input)
	}
	for _, f := range w.features {
		if !f.hears(m.Input) {
			continue
		}
		for _, p := range f.named(m) {
			w.markPart(f, p, m)
		}
	}
	switch m.Kind {
	case reading.MarkWatermark, reading.MarkIdle, reading.MarkActive:
		w.correct()
		w.advance()
	}
}

// named are the partitions that a mark is about.
func (f *twinFeature) named(m reading.Mark) (some []*twinPart) {
	s := reading.Series{Input: m.Input, Device: m.Device, Asset: m.Asset, Sensor: m.Sensor}
	whole := m.Device == "" && m.Asset == "" && m.Sensor == ""
	exact := f.def.Scope == windowing.ScopeInput || f.def.Scope == windowing.ScopeDevice && m.Device != "" ||
		f.def.Scope == windowing.ScopeSensor && m.Sensor != ""
	if f.def.Scope == windowing.ScopeInput && !whole && m.Kind != reading.MarkActive {
		return nil // less than a partition
	}
	if f.def.Scope == windowing.ScopeDevice && m.Device == "" && !whole && m.Kind != reading.MarkActive {
		return nil
	}
	for _, p := range f.parts {
		match := p.series.Input == m.Input && (m.Device == "" || p.via == m.Device) &&
			(m.Asset == "" || f.def.Scope != windowing.ScopeSensor || p.series.Asset == m.Asset)
		if exact {
			match = f.scoped(p.series) == f.scoped(s)
		}
		if match {
			some = append(some, p)
		}
	}
	marks := m.Kind == reading.MarkWatermark || m.Kind == reading.MarkIdle || m.Kind == reading.MarkActive
	if len(some) == 0 && (exact && m.Kind != reading.MarkRemove || m.Device == "" && m.Asset == "" && marks) {
		some = append(some, f.part(s))
	}
	return some
}

func (w *twin) markPart(f *twinFeature, p *twinPart, m reading.Mark) {
	retake := true
	switch m.Kind {
	case reading.MarkRemove:
		f.remove(p)
		return
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
		if !w.config.Explicit && !p.catchUp {
			p.newest = max(p.newest, m.TimeMS)
		}
	case reading.MarkCatchUpBegin:
		p.catchUp, p.spoke, p.gone = true, true, false
		retake = p.idle
		p.setIdle(false, w.now)
	case reading.MarkCatchUpEnd:
		p.catchUp, p.spoke, p.gone = false, true, false
		retake = false
	}
	if retake {
		w.retake(f, func(k *twinKey) bool { return slices.Contains(k.parts, p) })
	}
}

func (p *twinPart) setIdle(idle bool, since int64) {
	if p.idle != idle {
		p.idle, p.since = idle, since
	}
}

func (f *twinFeature) remove(p *twinPart) {
	f.parts = slices.DeleteFunc(f.parts, func(q *twinPart) bool { return q == p })
	for _, k := range append(slices.Clone(f.keys), f.all) {
		k.parts = slices.DeleteFunc(k.parts, func(q *twinPart) bool { return q == p })
	}
}

func (w *twin) retake(f *twinFeature, which func(*twinKey) bool) {
	combiners := f.keys
	if f.def.Scope == windowing.ScopeInput {
		combiners = []*twinKey{f.all}
	}
	for _, k := range combiners {
		if !which(k) {
			continue
		}
		w.asked[k] = true
	}
}

func (f *twinFeature) minimum(k *twinKey) int64 {
	low, any := int64(1<<62), false
	for _, p := range k.parts {
		if !p.idle && !f.stalled(k, p) {
			low, any = min(low, p.wm), true
		}
	}
	if !any {
		return reading.NoTime
	}
	return low
}

// stalled is C10.
func (f *twinFeature) stalled(k *twinKey, p *twinPart) bool {
	high := reading.NoTime
	for _, q := range k.parts {
		if !q.idle {
			high = max(high, q.wm)
		}
	}
	return f.def.MaxLagMS > 0 && p.wm != reading.NoTime && p.wm < high-f.def.MaxLagMS && !p.catchUp
}

func (w *twin) emit() {
	for _, f := range w.features {
		for _, p := range f.parts {
			if !w.config.Explicit {
				w.settle(f, p)
			}
		}
		w.retake(f, func(*twinKey) bool { return true })
	}
	w.advance()
	w.flush()
	w.silences()
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

// advance takes the minimum anew where that was asked for, and runs what fell due.
func (w *twin) advance() {
	for _, f := range w.features {
		for _, k := range append(slices.Clone(f.keys), f.all) {
			if low := f.minimum(k); w.asked[k] && low > k.wm {
				k.wm = low
				if k == f.all {
					w.say("watermark %s %d", f.def.ID.Name, low)
				}
			}
		}
	}
	clear(w.asked)
	w.fall()
}

func (w *twin) fall() {
	var due []twinDue
	for _, f := range w.features {
		for _, k := range append(slices.Clone(f.keys), f.all) {
			if k.wm != reading.NoTime {
				k.closed = max(k.closed, k.wm-f.def.AllowedLatenessMS)
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
		w.close(d.win, "")
	}
}

func (w *twin) close(win *twinWindow, reason string) {
	win.closed = true
	w.say("closed %s %v %d %d wm %d %s", win.key.owner.def.ID.Name, win.key.name, win.start, win.rev, win.key.state().wm, reason)
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
	switch {
	case win.live:
		return "late_reading"
	case win.stepped:
		return "clock_step"
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
