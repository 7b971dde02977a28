package windowing

import (
	"errors"

	"tidemark/reading"
)

var errNotBuilt = errors.New("not built yet")

// Engine is the state machine. It is not safe for concurrent use.
type Engine struct{ out Output }

// Validate reports the first fault of the configuration.
func (c Config) Validate() error { return errNotBuilt }

// AppendConfig appends the canonical binary form of c.
func AppendConfig(dst []byte, c *Config) []byte { return dst }

// DecodeConfig reads what AppendConfig wrote.
func DecodeConfig(src []byte) (*Config, error) { return nil, errNotBuilt }

// New returns an engine without state.
func New(c Config) (*Engine, error) { return nil, errNotBuilt }

// Step takes one batch and returns what follows from it.
func (e *Engine) Step(b *reading.Batch) *Output { return &e.out }

// NextDeadline returns the gateway time at which time alone changes something.
func (e *Engine) NextDeadline() int64 { return reading.NoTime }

// GatewayMS returns the gateway time reached, NoTime before the first.
func (e *Engine) GatewayMS() int64 { return reading.NoTime }

// Status returns a view for people.
func (e *Engine) Status() Status { return Status{} }

// AppendSnapshot appends the engine's whole state, configuration included.
func (e *Engine) AppendSnapshot(dst []byte) []byte { return dst }

// Restore returns an engine that continues where the snapshot was taken.
func Restore(snapshot []byte) (*Engine, error) { return nil, errNotBuilt }

// AppendEmission appends the canonical binary form of m.
func AppendEmission(dst []byte, m *Emission) []byte { return dst }

// DecodeEmission reads one emission and returns what follows it.
func DecodeEmission(src []byte) (m Emission, rest []byte, err error) { return m, nil, errNotBuilt }

// FunctionUnit returns the UCUM unit of a statistic of values with the given unit.
func FunctionUnit(function, unit string) string { return "" }
