package reading

import (
	"encoding/binary"
	"time"
)

// traits are what few combinations of occur in a block, however many readings it
// has. What varies with every reading stands in columns; traits say which.
type traits struct {
	status      uint32
	flags       Flags
	level       Level
	delivery    Delivery
	fault       TimeFault
	timeUnit    TimeUnit
	disposition Disposition
	reason      Reason
	basis       Basis
	policy      Policy
	eventBound  Bound
	ingestBound Bound
	timeQuality uint8
	kind        Kind
	has         columns
	raw         uint8 // how Source.Raw is stored
	event       eventForm
	mark        markForm
}

// columns tells which optional columns a line's readings stand in.
type columns uint8

const (
	hasSeq    columns = 1 << iota // Reading.HasSeq itself
	hasSeqCol                     // Seq is not zero
	hasID
	hasZone // SourceTime.Zoned itself
	hasSource
	hasServer
)

// eventForm is how Stamp.EventNS is stored.
type eventForm uint8

const (
	eventNone     eventForm = iota // NoTime
	eventSource                    // Source.NS
	eventServer                    // ServerNS
	eventIngest                    // IngestNS
	eventDistance                  // distance from IngestNS
)

// markForm is how Stamp.WatermarkMS is stored.
type markForm uint8

const (
	markNone     markForm = iota // NoTime
	markEvent                    // FloorMS of EventNS
	markDistance                 // distance from FloorMS of IngestNS
)

// How Source.Raw is stored: not at all, as text, or as the RFC 3339 UTC form of
// Source.NS with raw-rawTime fractional digits.
const (
	rawNone uint8 = iota
	rawText
	rawTime
	rawLast = rawTime + 9
)

// shape is everything of a reading that its line says, but for its tag and the
// forms of its numbers.
type shape struct {
	traits
	unit   string
	clock  *ClockSegment
	source *SourceSegment
}

func shapeOf(r *Reading) shape {
	s := &r.Stamp
	return shape{
		traits: traits{
			status: r.Quality.Status, flags: s.Flags, level: r.Quality.Level, delivery: r.Delivery,
			fault: r.Source.Fault, timeUnit: r.Source.Unit,
			disposition: s.Disposition, reason: s.Reason, basis: s.Basis, policy: s.Policy,
			eventBound: s.EventBound, ingestBound: s.IngestBound, timeQuality: s.TimeQuality,
			kind: r.Value.kind, has: columnsOf(r), raw: rawForm(&r.Source),
			event: eventFormOf(r), mark: markFormOf(s),
		},
		unit: r.Unit, clock: s.Clock, source: s.Source,
	}
}

func columnsOf(r *Reading) (has columns) {
	if r.HasSeq {
		has |= hasSeq
	}
	if r.Seq != 0 {
		has |= hasSeqCol
	}
	if r.ID != "" {
		has |= hasID
	}
	if r.Source.Zoned {
		has |= hasZone
	}
	if r.Source.NS != NoTime {
		has |= hasSource
	}
	if r.ServerNS != NoTime {
		has |= hasServer
	}
	return has
}

func eventFormOf(r *Reading) eventForm {
	switch r.Stamp.EventNS {
	case NoTime:
		return eventNone
	case r.Source.NS:
		return eventSource
	case r.ServerNS:
		return eventServer
	case r.IngestNS:
		return eventIngest
	}
	return eventDistance
}

func markFormOf(s *Stamp) markForm {
	switch s.WatermarkMS {
	case NoTime:
		return markNone
	case FloorMS(s.EventNS):
		return markEvent
	}
	return markDistance
}

func rawForm(t *SourceTime) uint8 {
	if t.Raw == "" {
		return rawNone
	}
	digits := max(len(t.Raw)-len("2006-01-02T15:04:05.Z"), 0)
	if t.NS == NoTime || digits > 9 {
		return rawText
	}
	var buf [40]byte
	if string(appendTime(buf[:0], t.NS, digits)) != t.Raw {
		return rawText
	}
	return rawTime + uint8(digits)
}

// timeLayouts[n] is RFC 3339 with n fractional digits.
var timeLayouts = [10]string{
	"2006-01-02T15:04:05Z07:00",
	"2006-01-02T15:04:05.0Z07:00", "2006-01-02T15:04:05.00Z07:00", "2006-01-02T15:04:05.000Z07:00",
	"2006-01-02T15:04:05.0000Z07:00", "2006-01-02T15:04:05.00000Z07:00", "2006-01-02T15:04:05.000000Z07:00",
	"2006-01-02T15:04:05.0000000Z07:00", "2006-01-02T15:04:05.00000000Z07:00", "2006-01-02T15:04:05.000000000Z07:00",
}

func appendTime(b []byte, ns int64, digits int) []byte {
	return time.Unix(0, ns).UTC().AppendFormat(b, timeLayouts[digits])
}

func (t *traits) append(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(t.status))
	b = binary.AppendUvarint(b, uint64(t.flags))
	return append(b, byte(t.level), byte(t.delivery), byte(t.fault), byte(t.timeUnit),
		byte(t.disposition), byte(t.reason), byte(t.basis), byte(t.policy),
		byte(t.eventBound), byte(t.ingestBound), t.timeQuality,
		byte(t.kind), byte(t.has), t.raw, byte(t.event), byte(t.mark))
}

// traitsSize is the least that append takes.
const traitsSize = 18

// traits reads what traits.append wrote. Enumerations that only name something
// pass through unchecked; those that steer the decoder are checked.
func (d *decoder) traits() (t traits) {
	t.status = uint32(d.small(32))
	t.flags = Flags(d.small(16))
	t.level, t.delivery, t.fault, t.timeUnit = Level(d.byte()), Delivery(d.byte()), TimeFault(d.byte()), TimeUnit(d.byte())
	t.disposition, t.reason, t.basis, t.policy = Disposition(d.byte()), Reason(d.byte()), Basis(d.byte()), Policy(d.byte())
	t.eventBound, t.ingestBound, t.timeQuality = Bound(d.byte()), Bound(d.byte()), d.byte()
	t.kind, t.has, t.raw, t.event, t.mark = Kind(d.byte()), columns(d.byte()), d.byte(), eventForm(d.byte()), markForm(d.byte())
	switch {
	case t.kind > Text:
		d.fail("unknown kind of value %d", t.kind)
	case t.has >= hasServer<<1:
		d.fail("unknown columns %#x", uint8(t.has))
	case t.raw > rawLast:
		d.fail("unknown form of source text %d", t.raw)
	case t.event > eventDistance:
		d.fail("unknown form of event time %d", t.event)
	case t.mark > markDistance:
		d.fail("unknown form of watermark %d", t.mark)
	case t.raw >= rawTime && t.has&hasSource == 0:
		d.fail("source text of a source time that is not there")
	}
	return t
}
