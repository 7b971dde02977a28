package trace

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"tidemark/reading"
)

// MaxLine is the length in bytes of the longest line that is read: a batch of
// some 100,000 readings.
const MaxLine = 16 << 20

// Op is one operation.
type Op struct {
	Index int // counted from 0, without blank lines and comments
	Line  int // in the file, from 1
	// Steps are the batches to step through the engine in order, mostly one. A
	// reading that arrives later than gateway time has two: the advance, and
	// itself.
	Steps []reading.Batch
}

// Fault is a line that is no operation. Nothing of it is to be applied, and
// nothing after it.
type Fault struct {
	Line int
	Err  error
}

func (f *Fault) Error() string { return fmt.Sprintf("line %d: %v", f.Line, f.Err) }
func (f *Fault) Unwrap() error { return f.Err }

// Reader reads a trace. It keeps gateway time, which the trace moves.
type Reader struct {
	// Judge, if not nil, rules on readings without a stamp once an operation clock
	// has been read; it finds the clock segment in the reading's stamp and fills the
	// rest. Without it they are taken at their word.
	Judge func(*reading.Reading)

	lines    *bufio.Scanner
	explicit bool

	op        Op
	steps     [2]reading.Batch
	readings  []reading.Reading
	seq       uint64
	gatewayMS int64

	clock   *reading.ClockSegment // of the latest operation clock
	clocks  told[reading.ClockSegment]
	sources told[reading.SourceSegment]

	// What is interned, so that a long trace is not made of short strings.
	tags  map[string]reading.Tag // by their names, each after its length
	key   []byte
	units map[string]string
}

// NewReader reads a trace from r. With explicit watermarks the trace sets them;
// without, the operation watermark is a fault.
func NewReader(r io.Reader, explicit bool) *Reader {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), MaxLine+1)
	return &Reader{lines: lines, explicit: explicit, op: Op{Index: -1}, gatewayMS: reading.NoTime,
		tags: make(map[string]reading.Tag), units: make(map[string]string)}
}

// Next returns the next operation, valid until the next call; io.EOF at the end,
// a *Fault for a line that is no operation, and otherwise the error of the
// underlying reader. After an error there is nothing more.
func (r *Reader) Next() (*Op, error) {
	for r.lines.Scan() {
		r.op.Line++
		line := bytes.TrimSpace(r.lines.Bytes())
		if len(line) == 0 || line[0] == '#' {
			continue
		}
		r.op.Index++
		if err := r.parse(line); err != nil {
			if torn := r.lines.Err(); torn != nil {
				return nil, torn // the line was cut by it
			}
			return nil, &Fault{r.op.Line, err}
		}
		return &r.op, nil
	}
	switch err := r.lines.Err(); {
	case err == nil:
		return nil, io.EOF
	case errors.Is(err, bufio.ErrTooLong):
		return nil, &Fault{r.op.Line + 1, fmt.Errorf("longer than %d MiB: split the batch", MaxLine>>20)}
	default:
		return nil, err
	}
}

// begin clears the steps of the operation before.
func (r *Reader) begin() {
	clear(r.readings)
	r.readings = r.readings[:0]
	r.steps = [2]reading.Batch{}
	r.op.Steps = r.steps[:0]
}

// step adds a batch. It has a number of its own where the trace gives none.
func (r *Reader) step(b reading.Batch) {
	if b.Seq == 0 {
		b.Seq = r.seq + 1
	}
	r.seq = b.Seq
	r.gatewayMS = max(r.gatewayMS, b.GatewayMS)
	r.op.Steps = append(r.op.Steps, b)
}

// advance adds a step that moves gateway time and emits.
func (r *Reader) advance(ms int64) { r.step(reading.Batch{GatewayMS: ms, Emit: true}) }

// mark adds a step that says something about partitions.
func (r *Reader) mark(marks ...reading.Mark) {
	r.step(reading.Batch{GatewayMS: reading.NoTime, Marks: marks})
}
