package gateway

import (
	"tidemark/clock"
	"tidemark/reading"
)

// remedies say what to do about readings in quarantine. What the status says of a
// clock that is off is said of its readings wherever they are shown: those that came
// before it was proved, too.
type remedies struct {
	off map[string]map[string]string // advice by input and sender
}

func newRemedies(sources []clock.SourceStatus) remedies {
	r := remedies{map[string]map[string]string{}}
	for i := range sources {
		src := &sources[i]
		if src.Advice == "" || src.Server {
			continue
		}
		if r.off[src.Input] == nil {
			r.off[src.Input] = map[string]string{}
		}
		r.off[src.Input][src.Device] = src.Advice
	}
	return r
}

// of is what to do about what one sender has there for a reason.
func (r remedies) of(input, sender string, why reading.Reason) string {
	if advice := r.off[input][sender]; advice != "" && clockIsOff(why) {
		return advice
	}
	return clock.NextStep(why)
}

// ofInput is what to do where several senders may be meant.
func (r remedies) ofInput(input string, why reading.Reason) string {
	if len(r.off[input]) == 1 && clockIsOff(why) {
		for _, advice := range r.off[input] {
			return advice
		}
	}
	return clock.NextStep(why)
}

// clockIsOff reports whether a reading is in quarantine because its sender's clock
// is ahead, behind, in another zone or on another scale.
func clockIsOff(why reading.Reason) bool {
	switch why {
	case reading.Future, reading.OffsetAhead, reading.OffsetBehind, reading.TZShaped, reading.TAIShaped, reading.GPSShaped:
		return true
	}
	return false
}

// nextSteps is what to do about each reason for which something is in quarantine,
// by input.
func nextSteps(inputs []InputStatus, r remedies) map[string]map[string]string {
	steps := map[string]map[string]string{}
	for i := range inputs {
		in := &inputs[i]
		for why := reading.SourceDeclaredBad; why <= reading.EngineFault; why++ {
			if in.Quarantine[why.String()] == 0 {
				continue
			}
			if steps[in.Name] == nil {
				steps[in.Name] = map[string]string{}
			}
			steps[in.Name][why.String()] = r.ofInput(in.Name, why)
		}
	}
	return steps
}
