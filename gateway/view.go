package gateway

import (
	"context"

	"tidemark/windowing/disorder"
)

// View is what the local page shows: the status, and what only a picture needs.
type View struct {
	*Status
	Trend    []ClockPoint    `json:"trend"`   // the gateway's clock over a day
	Results  []KeyResults    `json:"results"` // the latest windows of each key
	Unlisted uint64          `json:"results_unlisted"`
	Disorder []InputDisorder `json:"disorder"`
	Budgets  []FeatureBudget `json:"budgets"`

	Tags      []Tag            `json:"tags"`       // the worst
	TagStates map[TagState]int `json:"tag_states"` // how many there are of each
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

// worstTags is how many tags the page lists.
const worstTags = 100

// view gathers everything at one moment.
func (s *session) view(ctx context.Context) (*View, error) {
	st, err := s.status(ctx)
	if err != nil {
		return nil, err
	}
	v := &View{Status: st, Trend: s.gateway.trend.list(), Disorder: []InputDisorder{}, Budgets: []FeatureBudget{}, TagStates: map[TagState]int{}}
	v.Results, v.Unlisted = s.pipe.results.list()
	err = s.pipe.ask(ctx, func() {
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
	tags, err := s.tags(ctx)
	if err != nil {
		return nil, err
	}
	for i := range tags.Tags {
		v.TagStates[tags.Tags[i].State]++
	}
	v.Tags = tags.Tags[:min(len(tags.Tags), worstTags)]
	return v, nil
}
