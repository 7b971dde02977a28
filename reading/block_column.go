package reading

import (
	"encoding/binary"
	"math"
)

// line is what the encoder and the decoder remember of the readings that share
// tag, form and source segment.
type line struct {
	sourceTick, serverTick uint8
	fit                    floatFit
	past
}

// past is what a line's next reading is predicted from.
type past struct {
	seen            bool
	source, step    int64 // last source time and its distance from the one before, in ticks
	number, mantiss int64
	seq             uint64
}

// Columns, in the order of the block.
const (
	colLine = iota
	colIngest
	colSource
	colServer
	colEvent
	colMark
	colSeq
	colID
	colRaw
	colValue
	cols
)

func (e *encoder) writeColumns(readings []Reading) {
	tick := coarsestTick
	for i := range readings {
		tick = tickOf(readings[i].IngestNS, tick)
	}
	e.col[colLine] = append(e.col[colLine], tick)
	var ingest, source int64
	var line uint32
	var id, raw string
	for i := range readings {
		r := &readings[i]
		n := e.lineOf[i]
		t, l := &e.forms.keys[e.index.keys[n].form].traits, &e.lines[n]
		e.col[colLine] = appendZigzag(e.col[colLine], int64(n)-int64(line))
		line = n + 1
		at := floorDiv(r.IngestNS, ticks[tick])
		e.col[colIngest] = appendZigzag(e.col[colIngest], at-ingest)
		ingest = at
		if t.has&hasSource != 0 {
			e.col[colSource] = l.appendSource(e.col[colSource], r.Source.NS, source)
			source = r.Source.NS
		}
		e.writeRare(r, t, l)
		if t.has&hasID != 0 {
			e.col[colID] = appendFront(e.col[colID], id, r.ID)
			id = r.ID
		}
		if t.raw == rawText {
			e.col[colRaw] = appendFront(e.col[colRaw], raw, r.Source.Raw)
			raw = r.Source.Raw
		}
		e.col[colValue] = e.appendValue(e.col[colValue], r.Value, l)
	}
}

// appendSource appends a source time as its distance from where the line's last
// two point to; a line's first is measured from the block's last.
func (l *line) appendSource(b []byte, ns, last int64) []byte {
	tick := ticks[l.sourceTick]
	at := floorDiv(ns, tick)
	b = appendZigzag(b, at-l.expect(last, tick))
	l.learn(at)
	return b
}

// expect predicts the line's next source time, in ticks.
func (p *past) expect(last, tick int64) int64 {
	if !p.seen {
		return floorDiv(last, tick)
	}
	return p.source + p.step
}

func (p *past) learn(at int64) {
	if p.seen {
		p.step = at - p.source
	}
	p.seen, p.source = true, at
}

// writeRare writes the columns that few readings stand in.
func (e *encoder) writeRare(r *Reading, t *traits, l *line) {
	if t.has&hasServer != 0 {
		tick := ticks[l.serverTick]
		e.col[colServer] = appendZigzag(e.col[colServer], floorDiv(r.ServerNS, tick)-floorDiv(serverBase(r), tick))
	}
	if t.event == eventDistance {
		e.col[colEvent] = appendZigzag(e.col[colEvent], r.Stamp.EventNS-r.IngestNS)
	}
	if t.mark == markDistance {
		e.col[colMark] = appendZigzag(e.col[colMark], r.Stamp.WatermarkMS-FloorMS(r.IngestNS))
	}
	if t.has&hasSeqCol != 0 {
		e.col[colSeq] = appendZigzag(e.col[colSeq], int64(r.Seq-l.seq-1))
		l.seq = r.Seq
	}
}

// serverBase is what a server's time is measured from.
func serverBase(r *Reading) int64 {
	if r.Source.NS != NoTime {
		return r.Source.NS
	}
	return r.IngestNS
}

func (e *encoder) appendValue(b []byte, v Value, l *line) []byte {
	switch v.kind {
	case Bool:
		return append(b, byte(v.num))
	case Int:
		b = appendZigzag(b, int64(v.num)-l.number)
		l.number = int64(v.num)
	case Uint:
		return binary.AppendUvarint(b, v.num)
	case Float:
		return l.appendFloat(b, math.Float64frombits(v.num))
	case Text:
		return binary.AppendUvarint(b, uint64(e.strings[fieldRest].ref(v.text)))
	}
	return b
}

func (l *line) appendFloat(b []byte, f float64) []byte {
	switch l.fit.form() {
	case formFloat64:
		return binary.LittleEndian.AppendUint64(b, math.Float64bits(f))
	case formFloat32:
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(f)))
	}
	m := mantissa(f, l.fit.digits)
	b = appendZigzag(b, m-l.mantiss)
	l.mantiss = m
	return b
}
