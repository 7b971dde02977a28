package reading

import (
	"encoding/binary"
	"math"
)

// decoder reads a body: the mirror of encoder, section by section.
type decoder struct {
	cursor
	strings [fields][]string
	clocks  []*ClockSegment
	sources []*SourceSegment
	lines   []decodedLine
	used    struct { // by any line
		has   columns
		raw   bool
		event bool
		mark  bool
	}
}

type decodedForm struct {
	traits
	unit  string
	clock *ClockSegment
}

type decodedLine struct {
	*decodedForm
	tag                    Tag
	source                 *SourceSegment
	sourceTick, serverTick int64
	float                  uint8
	past
}

func (d *decoder) batch() *Batch {
	d.tables()
	d.what = "head"
	b := new(Batch)
	flags := d.byte()
	if flags >= batchConfigures<<1 {
		d.fail("unknown flags %#x", flags)
	}
	b.Emit = flags&batchEmits != 0
	b.Seq, b.GatewayMS, b.WallNS = d.uvarint(), d.varint(), d.varint()
	b.Clock = d.clock()
	if flags&batchConfigures != 0 {
		b.Config = append([]byte{}, d.bytes(d.uvarint())...)
	}
	b.Marks = d.marks()
	b.Readings = d.readings(math.MaxInt)
	return b
}

func (d *decoder) marks() []Mark {
	d.what = "marks"
	n := d.count(7)
	if n == 0 {
		return nil
	}
	marks := make([]Mark, n)
	for i := range marks {
		m := &marks[i]
		m.Kind, m.At = MarkKind(d.byte()), int(d.varint())
		for _, s := range [...]*string{&m.Input, &m.Device, &m.Asset, &m.Sensor} {
			*s = d.name(fieldRest)
		}
		m.TimeMS = d.varint()
	}
	return marks
}

// name reads a reference to a string.
func (d *decoder) name(field int) string {
	if i := d.ref(d.uvarint(), len(d.strings[field])); d.err == nil {
		return d.strings[field][i]
	}
	return ""
}

// clock reads a reference to a clock segment, 0 for none.
func (d *decoder) clock() *ClockSegment {
	n := d.uvarint()
	if n == 0 {
		return nil
	}
	if i := d.ref(n-1, len(d.clocks)); d.err == nil {
		return d.clocks[i]
	}
	return nil
}

func (d *decoder) tables() {
	for f := range d.strings {
		d.what = "strings"
		d.strings[f] = make([]string, d.count(2))
		prev := ""
		for i := range d.strings[f] {
			prev = d.front(prev)
			d.strings[f][i] = prev
		}
	}
	d.what = "clock segments"
	d.clocks = make([]*ClockSegment, d.count(19))
	for i := range d.clocks {
		d.clocks[i] = d.clockSegment()
	}
	d.what = "source segments"
	d.sources = make([]*SourceSegment, d.count(5))
	var id uint64
	for i := range d.sources {
		s := &SourceSegment{ID: id + uint64(d.varint()), LoNS: d.varint()}
		s.HiNS, s.Verdict = s.LoNS+d.varint(), SourceVerdict(d.byte())
		s.ZoneMin = int16(d.signed(16))
		d.sources[i], id = s, s.ID+1
	}
}

func (d *decoder) clockSegment() *ClockSegment {
	c := &ClockSegment{ID: d.uvarint(), Epoch: uint32(d.small(32))}
	if boot := d.bytes(8); boot != nil {
		c.Boot = binary.LittleEndian.Uint64(boot)
	}
	c.State, c.Method = ClockState(d.byte()), ClockMethod(d.byte())
	c.Traceable, c.Servers = d.bool(), d.byte()
	c.E0NS, c.RhoPPB, c.StartBootNS, c.StartGatewayMS, c.WallMinusBootNS = d.varint(), d.varint(), d.varint(), d.varint(), d.varint()
	return c
}

// tags reads the series that occur.
func (d *decoder) tags() []Tag {
	d.what = "series"
	tags := make([]Tag, d.count(int(fieldRest)))
	var next tagRefs
	for i := range tags {
		var s Series
		for f, name := range seriesFields(&s) {
			ref := uint32(d.ref(uint64(int64(next[f])+d.varint()), len(d.strings[f])))
			if d.err != nil {
				return nil
			}
			*name = d.strings[f][ref]
			next[f] = max(next[f], ref+1)
		}
		tags[i] = MakeTag(s)
	}
	return tags
}

func (d *decoder) forms() []decodedForm {
	d.what = "forms"
	forms := make([]decodedForm, d.count(traitsSize+2))
	for i := range forms {
		forms[i] = decodedForm{traits: d.traits(), unit: d.name(fieldRest), clock: d.clock()}
	}
	return forms
}

// readLines reads the tags, the forms and the lines made of them.
func (d *decoder) readLines() {
	tags, forms := d.tags(), d.forms()
	d.what = "lines"
	d.lines = make([]decodedLine, d.count(5))
	var tag, source int64
	for i := range d.lines {
		l := &d.lines[i]
		tag = int64(d.ref(uint64(tag+d.varint()), len(tags)))
		form := d.ref(d.uvarint(), len(forms))
		source = int64(d.ref(uint64(source+d.varint()), len(d.sources)+1))
		number := d.byte()
		l.float = d.byte()
		if number > coarsestTick<<2|coarsestTick || l.float > formSingle+maxDigits || l.float > maxDigits && l.float < formFloat32 {
			d.fail("unknown number forms %d, %d", number, l.float)
		}
		if d.err != nil {
			d.lines = nil
			return
		}
		l.tag, l.decodedForm = tags[tag], &forms[form]
		if source > 0 {
			l.source = d.sources[source-1]
		}
		l.sourceTick, l.serverTick = ticks[number>>2], ticks[number&3]
		tag, source = tag+1, source+1
		d.use(&l.traits)
	}
}

func (d *decoder) use(t *traits) {
	d.used.has |= t.has
	d.used.raw = d.used.raw || t.raw != rawNone
	d.used.event = d.used.event || t.event != eventNone
	d.used.mark = d.used.mark || t.mark != markNone
}

// bool reads a byte that is 0 or 1.
func (d *decoder) bool() bool {
	b := d.byte()
	if b > 1 {
		d.fail("%d is neither 0 nor 1", b)
	}
	return b == 1
}

// signed reads a number that fits into n bits with its sign.
func (d *decoder) signed(bits int) int64 { return unzigzag(d.small(bits)) }
