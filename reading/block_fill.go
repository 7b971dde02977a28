package reading

import (
	"encoding/binary"
	"math"
)

// readings reads lines and columns; more than limit readings are refused. A
// column that no line uses is not there.
func (d *decoder) readings(limit int) []Reading {
	d.readLines()
	d.what = "line column"
	n := d.count(2) // a reading takes a byte here and one for its ingest time
	if n > limit {
		d.fail("%d readings instead of %d", n, limit)
	}
	tick := d.byte()
	if tick > coarsestTick {
		d.fail("unknown tick %d", tick)
	}
	if d.err != nil || n == 0 {
		return nil
	}
	rs := make([]Reading, n)
	lineOf := make([]uint32, n)
	d.fillLines(rs, lineOf)
	d.fillIngest(rs, ticks[tick])
	if d.err != nil {
		return nil
	}
	for _, c := range [...]struct {
		used bool
		what string
		fill func([]Reading, []uint32)
	}{
		{d.used.has&hasSource != 0, "source time column", d.fillSource},
		{d.used.has&hasServer != 0, "server time column", d.fillServer},
		{d.used.event, "event time column", d.fillEvent},
		{d.used.mark, "watermark column", d.fillMark},
		{d.used.has&hasSeqCol != 0, "sequence column", d.fillSeq},
		{d.used.has&hasID != 0, "id column", d.fillID},
		{d.used.raw, "source text column", d.fillRaw},
		{true, "value column", d.fillValue},
	} {
		if d.what = c.what; c.used {
			c.fill(rs, lineOf)
		}
	}
	if d.err != nil {
		return nil
	}
	return rs
}

// fillLines sets what the lines say.
func (d *decoder) fillLines(rs []Reading, lineOf []uint32) {
	var next int64
	for i := range rs {
		n := d.ref(uint64(next+d.varint()), len(d.lines))
		if d.err != nil {
			return
		}
		lineOf[i], next = uint32(n), int64(n)+1
		l, r := &d.lines[n], &rs[i]
		t := &l.traits
		r.Tag, r.Unit, r.HasSeq, r.Delivery = l.tag, l.unit, t.has&hasSeq != 0, t.delivery
		r.Quality = Quality{Level: t.level, Status: t.status}
		r.Source = SourceTime{NS: NoTime, Fault: t.fault, Zoned: t.has&hasZone != 0, Unit: t.timeUnit}
		r.ServerNS = NoTime
		r.Stamp = Stamp{
			Disposition: t.disposition, Reason: t.reason, Basis: t.basis, Policy: t.policy, Flags: t.flags,
			EventBound: t.eventBound, IngestBound: t.ingestBound, TimeQuality: t.timeQuality,
			EventNS: NoTime, WatermarkMS: NoTime, Clock: l.clock, Source: l.source,
		}
	}
}

func (d *decoder) fillIngest(rs []Reading, tick int64) {
	d.what = "ingest time column"
	var at int64
	for i := range rs {
		at += d.varint()
		rs[i].IngestNS = at * tick
	}
}

func (d *decoder) fillSource(rs []Reading, lineOf []uint32) {
	var last int64
	for i := range rs {
		l := &d.lines[lineOf[i]]
		if l.has&hasSource == 0 {
			continue
		}
		at := l.expect(last, l.sourceTick) + d.varint()
		l.learn(at)
		last = at * l.sourceTick
		rs[i].Source.NS = last
	}
}

func (d *decoder) fillServer(rs []Reading, lineOf []uint32) {
	for i := range rs {
		if l := &d.lines[lineOf[i]]; l.has&hasServer != 0 {
			rs[i].ServerNS = (floorDiv(serverBase(&rs[i]), l.serverTick) + d.varint()) * l.serverTick
		}
	}
}

func (d *decoder) fillEvent(rs []Reading, lineOf []uint32) {
	for i := range rs {
		r := &rs[i]
		switch d.lines[lineOf[i]].event {
		case eventSource:
			r.Stamp.EventNS = r.Source.NS
		case eventServer:
			r.Stamp.EventNS = r.ServerNS
		case eventIngest:
			r.Stamp.EventNS = r.IngestNS
		case eventDistance:
			r.Stamp.EventNS = r.IngestNS + d.varint()
		}
	}
}

func (d *decoder) fillMark(rs []Reading, lineOf []uint32) {
	for i := range rs {
		r := &rs[i]
		switch d.lines[lineOf[i]].mark {
		case markEvent:
			r.Stamp.WatermarkMS = FloorMS(r.Stamp.EventNS)
		case markDistance:
			r.Stamp.WatermarkMS = FloorMS(r.IngestNS) + d.varint()
		}
	}
}

func (d *decoder) fillSeq(rs []Reading, lineOf []uint32) {
	for i := range rs {
		if l := &d.lines[lineOf[i]]; l.has&hasSeqCol != 0 {
			l.seq += uint64(d.varint()) + 1
			rs[i].Seq = l.seq
		}
	}
}

func (d *decoder) fillID(rs []Reading, lineOf []uint32) {
	prev := ""
	for i := range rs {
		if d.lines[lineOf[i]].has&hasID != 0 {
			prev = d.front(prev)
			rs[i].ID = prev
		}
	}
}

func (d *decoder) fillRaw(rs []Reading, lineOf []uint32) {
	prev := ""
	for i := range rs {
		switch raw := d.lines[lineOf[i]].raw; {
		case raw >= rawTime:
			var buf [40]byte
			rs[i].Source.Raw = string(appendTime(buf[:0], rs[i].Source.NS, int(raw-rawTime)))
		case raw == rawText:
			prev = d.front(prev)
			rs[i].Source.Raw = prev
		}
	}
}

func (d *decoder) fillValue(rs []Reading, lineOf []uint32) {
	for i := range rs {
		l := &d.lines[lineOf[i]]
		switch l.kind {
		case Bool:
			rs[i].Value = BoolValue(d.bool())
		case Int:
			l.number += d.varint()
			rs[i].Value = IntValue(l.number)
		case Uint:
			rs[i].Value = UintValue(d.uvarint())
		case Float:
			rs[i].Value = d.float(l)
		case Text:
			rs[i].Value = TextValue(d.name(fieldRest))
		}
	}
}

func (d *decoder) float(l *decodedLine) Value {
	var f float64
	switch l.float {
	case formFloat64:
		if b := d.bytes(8); b != nil {
			f = math.Float64frombits(binary.LittleEndian.Uint64(b))
		}
	case formFloat32:
		if b := d.bytes(4); b != nil {
			f = float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
		}
	default:
		l.mantiss += d.varint()
		if l.float >= formSingle {
			f = decimalSingle(l.mantiss, l.float-formSingle)
		} else {
			f = decimal(l.mantiss, l.float)
		}
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		d.fail("a float that is no finite number")
	}
	return FloatValue(f)
}
