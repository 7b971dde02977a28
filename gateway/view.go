package gateway

import (
	"context"
	"sync"

	"tidemark/windowing/disorder"
)

// View is what the local page shows: the status, and what only a picture needs.
type View struct {
	*Status
	Trend    []ClockPoint    `json:"trend"`            // the gateway's clock over a day
	Results  []KeyResults    `json:"results"`          // the latest windows of the first keys
	Unlisted int             `json:"results_unlisted"` // keys beyond those
	Unkept   uint64          `json:"results_unkept"`   // results of keys that had no room
	Disorder []InputDisorder `json:"disorder"`
	Budgets  []FeatureBudget `json:"budgets"`

	Tags      []Tag            `json:"tags"`       // the worst
	TagStates map[TagState]int `json:"tag_states"` // how many there are of each

	Oldest    HeldOldest                   `json:"oldest"`
	NextSteps map[string]map[string]string `json:"next_steps"` // by input and reason of quarantine
	// HoursLeft is for how long the store has room, at the rate of what it holds;
	// null while that is not known.
	HoursLeft *float64 `json:"hours_left"`
}

// InputDisorder is how an input's readings came, since the session's begin.
type InputDisorder struct {
	Input    string            `json:"input"`
	Disorder *disorder.Summary `json:"disorder"`
	Delay    *disorder.Summary `json:"delay"` // ingest less source time
}

// FeatureBudget is what a feature allows for, and what that cost.
type FeatureBudget struct {
	Feature           string `json:"feature"`
	OutOfOrdernessMS  int64  `json:"out_of_orderness_ms"`
	AllowedLatenessMS int64  `json:"allowed_lateness_ms"`
	Results           uint64 `json:"results"`     // since the session's begin
	Corrections       uint64 `json:"corrections"` // of these
}

// How much the page lists; the commands list all.
const (
	worstTags    = 100
	shownResults = 60
	worstSources = 30
)

// looks are what the views of a session remember of each other. They are made one
// at a time.
type looks struct {
	mu     sync.Mutex
	tags   tagLook
	oldest [2]oldest
}

// tagLook is the last list of tags.
type tagLook struct {
	worst  []Tag
	states map[TagState]int
	nextNS int64 // boot time at which the next is due
}

// tagShare is how many times as long as a list of tags took, it stands: with tens of
// thousands of tags, looking must not take the time of the readings.
const tagShare = 20

// look makes a new list if one is due.
func (l *tagLook) look(ctx context.Context, s *session) error {
	begin := s.clk.Now().BootNS
	if l.states != nil && begin < l.nextNS {
		return nil
	}
	tags, states, err := s.tags(ctx, worstTags)
	if err != nil {
		return err
	}
	l.worst, l.states = tags.Tags, states
	l.nextNS = begin + tagShare*(s.clk.Now().BootNS-begin)
	return nil
}

// view gathers everything at one moment.
func (s *session) view(ctx context.Context) (*View, error) {
	st, err := s.status(ctx)
	if err != nil {
		return nil, err
	}
	v := &View{Status: st, Trend: s.gateway.trend.list(), Disorder: []InputDisorder{}, Budgets: []FeatureBudget{}}
	v.NextSteps = nextSteps(v.Inputs, newRemedies(v.Clock.Sources))
	v.Clock.Sources = v.Clock.Sources[:min(len(v.Clock.Sources), worstSources)]
	if left, ok := v.Store.RoomFor(); ok {
		hours := left.Hours()
		v.HoursLeft = &hours
	}
	var open map[resultKey][]WindowResult
	err = s.pipe.ask(ctx, func() {
		open = waiting(s.pipe.engine)
		for _, name := range s.pipe.inputs {
			d := InputDisorder{Input: name}
			if in := s.pipe.measures.inputs[name]; in != nil {
				d.Disorder, d.Delay = in.order.Summary()
			}
			v.Disorder = append(v.Disorder, d)
		}
		for i := range s.cfg.Features {
			f := &s.cfg.Features[i]
			m := s.pipe.measures.features[f.Name]
			v.Budgets = append(v.Budgets, FeatureBudget{
				Feature: f.Name, OutOfOrdernessMS: f.OutOfOrderness.MS(), AllowedLatenessMS: f.AllowedLateness.MS(),
				Results: m.provisional + m.corrected, Corrections: m.corrected,
			})
		}
	})
	if err != nil {
		return nil, err
	}
	v.Results, v.Unkept = s.pipe.results.list(open)
	v.Unlisted = max(0, len(v.Results)-shownResults)
	v.Results = v.Results[:len(v.Results)-v.Unlisted]
	s.looks.mu.Lock()
	defer s.looks.mu.Unlock()
	if v.Oldest, err = s.lookAtHeld(ctx, &s.looks.oldest); err != nil {
		return nil, err
	}
	if err := s.looks.tags.look(ctx, s); err != nil {
		return nil, err
	}
	v.Tags, v.TagStates = s.looks.tags.worst, s.looks.tags.states
	return Filled(v).(*View), nil
}
