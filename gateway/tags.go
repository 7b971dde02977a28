package gateway

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"tidemark/clock"
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

// tags makes the list.
func (s *session) tags(ctx context.Context) (*Tags, error) {
	inst := s.clk.Now()
	t := &Tags{Gateway: s.gateway.cfg.Gateway.ID, At: rfc3339(inst.WallNS), Tags: []Tag{}}
	l := tagList{nowNS: inst.WallNS, points: s.points()}
	rows, extra := s.pipe.board.list()
	t.Unlisted = extra
	for i := range rows {
		t.Tags = append(t.Tags, l.row(&rows[i]))
	}
	t.Tags = append(t.Tags, l.never()...)
	var expected windowing.Config
	if err := s.pipe.ask(ctx, func() { expected = s.pipe.features }); err != nil {
		return nil, err
	}
	for i := range t.Tags {
		x := expected.Expectation(reading.Series{Input: t.Tags[i].Input, Asset: t.Tags[i].Asset, Sensor: t.Tags[i].Sensor, Lifecycle: t.Tags[i].Lifecycle})
		t.Tags[i].quiet(x.EveryMS, x.AlarmAfterMS)
	}
	slices.SortFunc(t.Tags, compareTags)
	return t, nil
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
	nowNS  int64
	points []reading.Point
	exact  map[reading.Series]int // of the points of one series, without lifecycle
	open   []int                  // the other points
	heard  []bool                 // by point
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

// point finds the point that a series comes from; nil if it is an earlier
// configuration's.
func (l *tagList) point(s reading.Series) *reading.Point {
	if l.exact == nil {
		l.index()
	}
	s.Lifecycle = ""
	i, ok := l.exact[s]
	if !ok {
		at := slices.IndexFunc(l.open, func(i int) bool { return l.points[i].Covers(s) })
		if at < 0 {
			return nil
		}
		i = l.open[at]
	}
	l.heard[i] = true
	return &l.points[i]
}

func (l *tagList) row(p *posted) Tag {
	s := p.last.Tag.Value()
	shown := history.Show(&p.last, p.verdict)
	age := (l.nowNS - p.last.IngestNS) / 1e6
	t := Tag{
		Input: s.Input, Asset: s.Asset, Device: s.Device, Lifecycle: s.Lifecycle, Sensor: s.Sensor,
		Unit: p.last.Unit, AgeMS: &age, Readings: p.count, Last: &shown,
	}
	pt := l.point(s)
	if pt != nil {
		fill := strings.NewReplacer("{asset}", s.Asset, "{device}", s.Device, "{sensor}", s.Sensor, "{lifecycle}", s.Lifecycle)
		t.Address, t.Path, t.Unit = fill.Replace(pt.Address), pt.Path, cmp.Or(t.Unit, pt.Unit)
	}
	t.State, t.Why = TagGood, ""
	switch {
	case pt != nil && pt.Problem != "":
		t.State, t.Why = TagProblem, pt.Problem
	case p.verdict == history.Quarantined:
		t.State, t.Why = TagQuarantined, shown.Reason+": "+clock.NextStep(p.last.Stamp.Reason)
	case p.verdict == history.Pending:
		t.State, t.Why = TagPending, shown.Reason
	case p.last.Quality.Level == reading.Bad:
		t.State, t.Why = TagBad, "bad quality"
	case p.last.Quality.Level == reading.Uncertain:
		t.State, t.Why = TagUncertain, "uncertain quality"
	case len(shown.Flags) > 0:
		t.State, t.Why = TagUncertain, strings.Join(shown.Flags, " ")
	}
	return t
}

// never lists the points from which nothing has come.
func (l *tagList) never() (list []Tag) {
	if l.exact == nil {
		l.index()
	}
	for i := range l.points {
		if l.heard[i] {
			continue
		}
		p := &l.points[i]
		t := Tag{
			Input: p.Input, Asset: p.Asset, Device: p.Device, Sensor: p.Sensor, Address: p.Address, Path: p.Path, Unit: p.Unit,
			State: TagNever, Why: "no reading has come yet",
		}
		if p.Problem != "" {
			t.State, t.Why = TagProblem, p.Problem
		}
		list = append(list, t)
	}
	return list
}

// quiet looks whether the tag should have spoken.
func (t *Tag) quiet(everyMS, alarmAfterMS int64) {
	if t.AgeMS == nil {
		return
	}
	switch age := *t.AgeMS; {
	case alarmAfterMS > 0 && age > alarmAfterMS && t.State.worse(TagSilent) > 0:
		t.State, t.Why = TagSilent, "longer than its alarm_after"
	case everyMS > 0 && age > 3*everyMS && t.State.worse(TagOverdue) > 0:
		t.State, t.Why = TagOverdue, "expected every "+configs.Duration(time.Duration(everyMS)*time.Millisecond).String()
	}
}

// worse is negative if s is worse than o.
func (s TagState) worse(o TagState) int {
	return slices.Index(tagStates, s) - slices.Index(tagStates, o)
}

func compareTags(a, b Tag) int {
	return cmp.Or(a.State.worse(b.State), cmp.Compare(a.Input, b.Input), cmp.Compare(a.Asset, b.Asset),
		cmp.Compare(a.Sensor, b.Sensor), cmp.Compare(a.Device, b.Device), cmp.Compare(a.Lifecycle, b.Lifecycle))
}

// AskTags fetches the list of tags of the gateway that listens at the socket.
func AskTags(ctx context.Context, socket string) (*Tags, error) {
	body, err := Ask(ctx, socket, http.MethodGet, "/tags")
	if err != nil {
		return nil, err
	}
	defer body.Close()
	t := &Tags{}
	if err := json.NewDecoder(body).Decode(t); err != nil {
		return nil, fmt.Errorf("the gateway's answer cannot be read: %w", err)
	}
	return t, nil
}
