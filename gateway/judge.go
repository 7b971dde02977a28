package gateway

import (
	"github.com/rs/zerolog"

	"tidemark/clock"
	"tidemark/configs"
	"tidemark/reading"
)

// Judge returns what rules on readings of a trace by the clock rules and the file's
// policies, each by the clock segment in its stamp. They must come in the order of
// their arrival. Nobody's clock is asked.
func Judge(c *configs.Config) func(*reading.Reading) {
	policies := map[string]clock.InputPolicy{}
	for i := range c.Inputs {
		policies[c.Inputs[i].Name] = inputPolicy(c, &c.Inputs[i])
	}
	clk := clock.New(clock.Config{}, clock.Options{Log: zerolog.Nop()}) // never runs
	return func(r *reading.Reading) { clk.JudgeReading(r, policies[r.Tag.Value().Input]) }
}
