package gateway

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strings"
	"time"

	"tidemark/configs"
	"tidemark/history"
	"tidemark/reading"
	"tidemark/windowing"
)

// Tags is the resolved list of tags, as `tidemark tags --json` prints it: what the
// inputs are configured to read and what has spoken, the worst first.
type Tags struct {
	Gateway string `json:"gateway"`
	At      string `json:"at"` // the gateway's wall clock
	Tags    []Tag  `json:"tags"`
	// Unlisted counts readings, since the start, of series beyond those that are
	// remembered.
	Unlisted uint64 `json:"unlisted_readings"`
}

// Tag is one series, or a configured place from which nothing has come yet: then
// names that the source decides are *.
type Tag struct {
	Input     string `json:"input"`
	Asset     string `json:"asset"`
	Device    string `json:"device"`
	Lifecycle string `json:"lifecycle"`
	Sensor    string `json:"sensor"`
	Address   string `json:"address"` // node or topic
	Path      string `json:"path"`    // field in the payload
	Unit      string `json:"unit"`

	State    TagState         `json:"state"`
	Why      string           `json:"why"`    // of a state that is not good
	AgeMS    *int64           `json:"age_ms"` // since the last reading's arrival; null before the first
	Readings uint64           `json:"readings"`
	Last     *history.Reading `json:"last"` // null before the first
}

// TagState says how a tag is, by its last reading.
type TagState string

// The states, the worst first.
const (
	TagProblem     TagState = "problem"     // the source cannot deliver it
	TagSilent      TagState = "silent"      // for longer than its alarm_after
	TagQuarantined TagState = "quarantined" // its time cannot be trusted
	TagNever       TagState = "never"       // configured, and nothing has come
	TagBad         TagState = "bad"         // quality
	TagOverdue     TagState = "overdue"     // for three times its expect_every
	TagPending     TagState = "pending"     // the gateway's clock is not trusted
	TagUncertain   TagState = "uncertain"   // quality, or flags
	TagGood        TagState = "good"
)

var tagStates = []TagState{TagProblem, TagSilent, TagQuarantined, TagNever, TagBad, TagOverdue, TagPending, TagUncertain, TagGood}

// TagStates lists the states, the worst first.
func TagStates() []TagState { return slices.Clone(tagStates) }

// tags makes the list; most bounds it to the worst, 0 does not. How many there are
// of each state is told of all.
func (s *session) tags(ctx context.Context, most int) (*Tags, map[TagState]int, error) {
	inst := s.clk.Now()
	var expected windowing.Config
	silent := map[reading.Series]int64{}
	err := s.pipe.ask(ctx, func() {
		expected = s.pipe.features
		s.pipe.engine.Silent(func(input, asset, lifecycle, sensor string, quietMS int64) {
			silent[reading.Series{Input: input, Asset: asset, Lifecycle: lifecycle, Sensor: sensor}] = quietMS
		})
	})
	if err != nil {
		return nil, nil, err
	}
	l := newTagList(inst.WallNS, s.points(), expected, most)
	l.steps, l.quietMS = newRemedies(s.clk.Sources()), silent
	t := &Tags{Gateway: s.cfg.Gateway.ID, At: history.Time(inst.WallNS)}
	t.Unlisted = s.pipe.board.each(l.spoken)
	l.silent()
	t.Tags = l.tags()
	return t, l.states, nil
}

// points asks the readers what they expect.
func (s *session) points() (all []reading.Point) {
	for _, r := range s.readers {
		all = append(all, r.Tags()...)
	}
	return all
}

// tagList joins what has spoken with what is expected.
type tagList struct {
	nowNS    int64
	points   []reading.Point
	expected windowing.Config
	most     int // 0: all
	steps    remedies
	quietMS  map[reading.Series]int64 // of sensors that fell silent, by series without device; those that the board knows are taken out

	exact map[reading.Series]int // of the points of one series, without lifecycle
	open  []int                  // the other points
	heard []bool                 // by point

	states map[TagState]int
	rows   []judged // with most, at least that many of the worst
	last   judged   // with most, the best of the worst; none before there are so many
}

// judged is a tag with its state, before it is written out: of tens of thousands
// most are good and never shown.
type judged struct {
	series reading.Series
	state  TagState
	why    string
	point  *reading.Point // nil: of an earlier configuration
	posted *posted        // nil: it has not spoken, or so long ago that only its silence is known
	ageMS  int64          // of such a one; else 0
}

func newTagList(nowNS int64, points []reading.Point, expected windowing.Config, most int) *tagList {
	l := &tagList{nowNS: nowNS, points: points, expected: expected, most: most, states: map[TagState]int{}}
	l.index()
	return l
}

func (l *tagList) index() {
	l.exact, l.heard = map[reading.Series]int{}, make([]bool, len(l.points))
	for i := range l.points {
		s := l.points[i].Series
		s.Lifecycle = ""
		if l.points[i].Open() {
			l.open = append(l.open, i)
		} else {
			l.exact[s] = i
		}
	}
}

// point finds the point that a series comes from. It is nil if it is an earlier
// configuration's, or if several may be meant: of them each counts as heard.
func (l *tagList) point(s reading.Series) *reading.Point {
	s.Lifecycle = ""
	i, ok := l.exact[s]
	if at := strings.IndexAny(s.Sensor, "[."); !ok && at > 0 {
		// Part of a value that has not come since, so that the reader knows of no parts.
		whole := s
		whole.Sensor = s.Sensor[:at]
		i, ok = l.exact[whole]
	}
	if ok {
		l.heard[i] = true
		return &l.points[i]
	}
	var only *reading.Point
	n := 0
	for _, i := range l.open {
		if l.points[i].Covers(s) {
			l.heard[i], only = true, &l.points[i]
			n++
		}
	}
	if n != 1 {
		return nil
	}
	return only
}

// spoken takes in a tag from which something came. It keeps no hold of p.
func (l *tagList) spoken(p *posted) {
	s := p.last.Tag.Value()
	j := judged{series: s, state: TagGood, point: l.point(s), posted: p}
	switch {
	case j.point != nil && j.point.Problem != "":
		j.state, j.why = TagProblem, j.point.Problem
	case p.verdict == history.Quarantined:
		j.state, j.why = TagQuarantined, p.last.Stamp.Reason.String()+": "+l.steps.of(s.Input, s.Sender(), p.last.Stamp.Reason)
	case p.verdict == history.Pending:
		j.state, j.why = TagPending, p.last.Stamp.Reason.String()
	case p.last.Quality.Level == reading.Bad:
		j.state, j.why = TagBad, "bad quality"
	case p.last.Quality.Level == reading.Uncertain:
		j.state, j.why = TagUncertain, "uncertain quality"
	case p.last.Stamp.Flags != 0:
		j.state, j.why = TagUncertain, strings.Join(p.last.Stamp.Flags.Names(), " ")
	}
	bare := s
	bare.Device = ""
	delete(l.quietMS, bare)
	x := l.expected.Expectation(s)
	j.quiet(l.age(p), x.EveryMS, x.AlarmAfterMS)
	l.add(j)
}

// age is how long ago the tag's last reading arrived.
func (l *tagList) age(p *posted) int64 { return (l.nowNS - p.last.IngestNS) / 1e6 }

// silent takes in the sensors of which only their silence is known, and the points
// from which nothing has come.
func (l *tagList) silent() {
	for s, ms := range l.quietMS {
		l.add(judged{series: s, state: TagSilent, why: "longer than its alarm_after, since before the gateway started", point: l.point(s), ageMS: ms})
	}
	for i := range l.points {
		if l.heard[i] {
			continue
		}
		p := &l.points[i]
		j := judged{series: p.Series, state: TagNever, why: "no reading has come since the start", point: p}
		if p.Problem != "" {
			j.state, j.why = TagProblem, p.Problem
		}
		l.add(j)
	}
}

// add keeps a tag if it may be among the worst.
func (l *tagList) add(j judged) {
	l.states[j.state]++
	if l.last.state != "" && compareJudged(j, l.last) >= 0 {
		return
	}
	if j.posted != nil {
		own := *j.posted
		j.posted = &own
	}
	l.rows = append(l.rows, j)
	if l.most > 0 && len(l.rows) >= 2*l.most {
		l.cut()
	}
}

// cut puts the rows into order and leaves the worst.
func (l *tagList) cut() {
	slices.SortFunc(l.rows, compareJudged)
	if l.most > 0 && len(l.rows) >= l.most {
		l.rows = l.rows[:l.most]
		l.last = l.rows[l.most-1]
	}
}

// tags writes the rows out, the worst first.
func (l *tagList) tags() []Tag {
	l.cut()
	list := make([]Tag, 0, len(l.rows))
	for i := range l.rows {
		list = append(list, l.write(&l.rows[i]))
	}
	return list
}

func (l *tagList) write(j *judged) Tag {
	s := j.series
	t := Tag{Input: s.Input, Asset: s.Asset, Device: s.Device, Lifecycle: s.Lifecycle, Sensor: s.Sensor, State: j.state, Why: j.why}
	if p := j.posted; p != nil {
		shown, age := history.Show(&p.last, p.verdict), l.age(p)
		t.Unit, t.AgeMS, t.Readings, t.Last = p.last.Unit, &age, p.count, &shown
	}
	if j.ageMS > 0 {
		t.AgeMS = &j.ageMS
	}
	if pt := j.point; pt != nil {
		t.Address, t.Path, t.Unit = pt.Address, pt.Path, cmp.Or(t.Unit, pt.Unit)
		if j.posted != nil {
			t.Address = strings.NewReplacer("{asset}", s.Asset, "{device}", s.Device, "{sensor}", s.Sensor, "{lifecycle}", s.Lifecycle).Replace(pt.Address)
		}
	}
	return t
}

// quiet looks whether a tag of that age should have spoken.
func (j *judged) quiet(ageMS, everyMS, alarmAfterMS int64) {
	switch {
	case alarmAfterMS > 0 && ageMS > alarmAfterMS && j.state.worse(TagSilent) > 0:
		j.state, j.why = TagSilent, "longer than its alarm_after"
	case everyMS > 0 && ageMS > 3*everyMS && j.state.worse(TagOverdue) > 0:
		j.state, j.why = TagOverdue, "expected every "+configs.Duration(time.Duration(everyMS)*time.Millisecond).String()
	}
}

// worse is negative if s is worse than o.
func (s TagState) worse(o TagState) int {
	return slices.Index(tagStates, s) - slices.Index(tagStates, o)
}

func compareJudged(a, b judged) int {
	if a.state != b.state {
		return a.state.worse(b.state)
	}
	x, y := &a.series, &b.series
	return cmp.Or(cmp.Compare(x.Input, y.Input), cmp.Compare(x.Asset, y.Asset),
		cmp.Compare(x.Sensor, y.Sensor), cmp.Compare(x.Device, y.Device), cmp.Compare(x.Lifecycle, y.Lifecycle))
}

// AskTags fetches the list of tags of the gateway that listens at the socket.
func AskTags(ctx context.Context, socket string) (*Tags, error) {
	return askFor[Tags](ctx, socket, http.MethodGet, "/tags")
}
