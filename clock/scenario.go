package clock

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// StepResult is what the clock rules say to one step of a scenario.
type StepResult struct {
	ID     string `json:"id"`
	Step   int    `json:"step"`
	Result any    `json:"result"`
}

// maxScenarioLine bounds a line of a scenario file.
const maxScenarioLine = 16 << 20

// JudgeScenarios applies the clock rules to recorded evidence: JSON lines of
// scenarios, each with id, op and steps of given (SEMANTICS, Reference for
// judge). It calls out with every step's result, in order, and ends at the first
// line that is no scenario, with an error that names it; the steps of that line
// give no result.
func JudgeScenarios(r io.Reader, out func(StepResult) error) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxScenarioLine)
	n := 0
	for lines.Scan() {
		n++
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		results, err := judgeScenario(line)
		if err != nil {
			return fmt.Errorf("line %d: %w", n, err)
		}
		for _, res := range results {
			if err := out(res); err != nil {
				return err
			}
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("line %d: %w", n+1, err)
	}
	return nil
}

func judgeScenario(line []byte) ([]StepResult, error) {
	var sc struct {
		ID    *string `json:"id"`
		Op    string  `json:"op"`
		Steps []struct {
			Op    string          `json:"op"`
			Given json.RawMessage `json:"given"`
		} `json:"steps"`
	}
	if err := json.Unmarshal(line, &sc); err != nil {
		return nil, fmt.Errorf("is no scenario: %w", err)
	}
	switch {
	case sc.ID == nil:
		return nil, errors.New("a scenario needs an id")
	case sc.Steps == nil:
		return nil, fmt.Errorf("scenario %q needs steps", *sc.ID)
	}
	var results []StepResult
	for i, s := range sc.Steps {
		op := s.Op
		if op == "" {
			op = sc.Op
		}
		apply, ok := scenarioOps[op]
		if !ok {
			return nil, fmt.Errorf("scenario %q step %d: op %q is none of bound, select, step, violation, poll, cristian, oneway, reading", *sc.ID, i, op)
		}
		if len(s.Given) == 0 {
			return nil, fmt.Errorf("scenario %q step %d: needs given", *sc.ID, i)
		}
		res, err := apply(s.Given)
		if err != nil {
			return nil, fmt.Errorf("scenario %q step %d: %w", *sc.ID, i, err)
		}
		results = append(results, StepResult{*sc.ID, i, res})
	}
	return results, nil
}

var scenarioOps = map[string]func(json.RawMessage) (any, error){
	"bound":     decoded(boundGiven.result),
	"select":    decoded(selectGiven.result),
	"step":      decoded(stepGiven.result),
	"violation": decoded(violationGiven.result),
	"poll":      decoded(pollGiven.result),
	"cristian":  decoded(cristianGiven.result),
	"oneway":    decoded(onewayGiven.result),
	"reading":   decoded(readingGiven.result),
}

// decoded makes an operation of a function of its given.
func decoded[G any](f func(G) (any, error)) func(json.RawMessage) (any, error) {
	return func(raw json.RawMessage) (any, error) {
		var g G
		if err := json.Unmarshal(raw, &g); err != nil {
			return nil, fmt.Errorf("given: %w", err)
		}
		return f(g)
	}
}
