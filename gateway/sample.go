package gateway

import (
	"cmp"

	"github.com/rs/zerolog"

	"tidemark/clock"
	"tidemark/configs"
	"tidemark/gateway/mqtt"
	"tidemark/history"
	"tidemark/reading"
	"tidemark/windowing"
)

// Sample is what a payload would become, as `tidemark check --sample --json` prints
// it.
type Sample struct {
	Topic  string         `json:"topic"`
	Bytes  int            `json:"bytes"`
	Inputs []SampledInput `json:"inputs"` // those that have a subscription for the topic
}

// SampledInput is what one input makes of it.
type SampledInput struct {
	Input    string           `json:"input"`
	Readings []SampledReading `json:"readings"`
	Refused  []SampledRefusal `json:"refused"`
	Presence []SampledMark    `json:"presence"` // what it says of devices
}

// SampledReading is a reading with the verdict that it would get now, by the host's
// clock taken at its word.
type SampledReading struct {
	history.Reading
	Features []string `json:"features"`  // that select it
	NextStep string   `json:"next_step"` // what to do about a quarantine
}

// SampledRefusal is what becomes no reading, and why.
type SampledRefusal struct {
	Kind    string `json:"kind"` // malformed or unmatched
	Reason  string `json:"reason"`
	Detail  string `json:"detail"`
	ID      string `json:"id"`
	Excerpt string `json:"excerpt"`
}

// SampledMark says that a device is there or gone.
type SampledMark struct {
	Device string `json:"device"`
	Gone   bool   `json:"gone"`
}

// Refused counts what became no reading, and what would be quarantined.
func (s *Sample) Refused() (refused, quarantined int) {
	for i := range s.Inputs {
		refused += len(s.Inputs[i].Refused)
		for k := range s.Inputs[i].Readings {
			if s.Inputs[i].Readings[k].Verdict == history.Quarantined {
				quarantined++
			}
		}
	}
	return refused, quarantined
}

// SamplePayload decodes and judges a payload as every MQTT input that has a
// subscription for the topic would if it arrived now. Nothing is connected.
func SamplePayload(c *configs.Config, topic string, payload []byte) (*Sample, error) {
	features, err := EngineConfig(c)
	if err != nil {
		return nil, err
	}
	s := &Sample{Topic: topic, Bytes: len(payload), Inputs: []SampledInput{}}
	for i := range c.Inputs {
		in := &c.Inputs[i]
		if in.MQTT == nil {
			continue
		}
		d, err := mqtt.NewDecoder(mqttConfig(c, in))
		if err != nil {
			return nil, err
		}
		if d.Matches(topic) {
			s.Inputs = append(s.Inputs, sampleInput(d, in, inputPolicy(c, in), &features, topic, payload))
		}
	}
	return s, nil
}

func sampleInput(d *mqtt.Decoder, in *configs.Input, policy clock.InputPolicy, features *windowing.Config, topic string, payload []byte) SampledInput {
	clk := clock.New(clock.Config{Trust: clock.TrustLocal}, clock.Options{Log: zerolog.Nop()})
	m := &mqtt.Message{Topic: []byte(topic), Payload: payload, At: clk.Now()}
	var p reading.Parcel
	if limit := int(cmp.Or(in.MQTT.MaxPayload, 1<<20)); len(payload) > limit {
		d.TooLarge(m, len(payload), limit, &p)
	} else {
		d.Decode(m, &p, nil)
	}
	out := SampledInput{Input: in.Name, Readings: []SampledReading{}, Refused: []SampledRefusal{}, Presence: []SampledMark{}}
	for i := range p.Readings {
		r := &p.Readings[i]
		clk.JudgeReading(r, policy)
		x := SampledReading{Reading: history.Show(r, history.Judged(r)), Features: []string{}, NextStep: ""}
		if x.Verdict == history.Quarantined {
			x.NextStep = clock.NextStep(r.Stamp.Reason)
		}
		for k := range features.Features {
			if f := &features.Features[k]; f.Selects(r.Tag.Value()) {
				x.Features = append(x.Features, f.ID.Name)
			}
		}
		out.Readings = append(out.Readings, x)
	}
	for _, j := range p.Rejects {
		out.Refused = append(out.Refused, SampledRefusal{j.Kind.String(), j.Reason, j.Detail, j.ID, string(j.Excerpt)})
	}
	for _, m := range p.Marks {
		if m.Kind == reading.MarkIdle || m.Kind == reading.MarkActive {
			out.Presence = append(out.Presence, SampledMark{m.Device, m.Kind == reading.MarkIdle})
		}
	}
	return out
}
