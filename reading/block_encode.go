package reading

import (
	"encoding/binary"
	"math"
	"sync"
)

// table numbers distinct values in order of first use.
type table[K comparable] struct {
	index map[K]uint32
	keys  []K
}

func (t *table[K]) ref(k K) uint32 {
	i, ok := t.index[k]
	if !ok {
		if t.index == nil {
			t.index = make(map[K]uint32)
		}
		i = uint32(len(t.keys))
		t.index[k] = i
		t.keys = append(t.keys, k)
	}
	return i
}

func (t *table[K]) reset() {
	clear(t.index)
	clear(t.keys)
	t.keys = t.keys[:0]
}

// tagTable is a table of tags. refs, by a tag's number, is right where the key there is
// the tag, so that nothing need be cleared between two blocks.
type tagTable struct {
	refs []uint32
	keys []Tag
}

func (t *tagTable) ref(k Tag) uint32 {
	for int(k.number) >= len(t.refs) {
		t.refs = append(t.refs, 0)
	}
	i := t.refs[k.number]
	if int(i) >= len(t.keys) || t.keys[i] != k {
		i = uint32(len(t.keys))
		t.refs[k.number] = i
		t.keys = append(t.keys, k)
	}
	return i
}

func (t *tagTable) reset() {
	clear(t.keys)
	t.keys = t.keys[:0]
}

// Fields that have a string table each: those of a Series, and the rest (units,
// texts, names in marks).
const (
	fieldInput = iota
	fieldAsset
	fieldDevice
	fieldLifecycle
	fieldSensor
	fieldRest
	fields
)

type (
	tagRefs  [fieldRest]uint32
	formRefs struct {
		traits
		unit, clock uint32 // clock 0 is none
	}
	lineRefs struct{ tag, form, source uint32 } // source 0 is none
)

// encoder holds the tables of one block. Encoders are reused for their memory.
type encoder struct {
	strings [fields]table[string]
	clocks  table[ClockSegment]
	sources table[SourceSegment]
	tags    tagTable
	forms   table[formRefs]
	index   table[lineRefs]

	lines  []line
	latest []latest // by tag
	lineOf []uint32 // by reading

	head []byte
	col  [cols][]byte
	body []byte
}

// latest is a tag's last shape and its line: mostly the next one's too.
type latest struct {
	shape
	line uint32
}

var encoders = sync.Pool{New: func() any { return new(encoder) }}

func newEncoder() *encoder { return encoders.Get().(*encoder) }

// release forgets everything but the memory, so that a resting encoder pins no
// reading.
func (e *encoder) release() {
	for i := range e.strings {
		e.strings[i].reset()
	}
	e.clocks.reset()
	e.sources.reset()
	e.tags.reset()
	e.forms.reset()
	e.index.reset()
	clear(e.latest)
	e.latest, e.lines, e.lineOf = e.latest[:0], e.lines[:0], e.lineOf[:0]
	for i := range e.col {
		e.col[i] = e.col[i][:0]
	}
	e.head, e.body = e.head[:0], e.body[:0]
	encoders.Put(e)
}

func (e *encoder) batch(b *Batch) []byte {
	e.head = e.appendHead(e.head, b)
	return e.assemble(b.Readings)
}

func (e *encoder) single(r *Reading) []byte {
	var one [1]Reading
	one[0] = *r
	return e.assemble(one[:])
}

const (
	batchEmits byte = 1 << iota
	batchConfigures
)

func (e *encoder) appendHead(h []byte, b *Batch) []byte {
	var flags byte
	if b.Emit {
		flags |= batchEmits
	}
	if b.Config != nil {
		flags |= batchConfigures
	}
	h = append(h, flags)
	h = binary.AppendUvarint(h, b.Seq)
	h = appendZigzag(h, b.GatewayMS)
	h = appendZigzag(h, b.WallNS)
	h = binary.AppendUvarint(h, uint64(e.clockRef(b.Clock)))
	if b.Config != nil {
		h = binary.AppendUvarint(h, uint64(len(b.Config)))
		h = append(h, b.Config...)
	}
	h = binary.AppendUvarint(h, uint64(len(b.Marks)))
	for i := range b.Marks {
		m := &b.Marks[i]
		h = append(h, byte(m.Kind))
		h = appendZigzag(h, int64(m.At))
		for _, s := range [...]string{m.Input, m.Device, m.Asset, m.Sensor} {
			h = binary.AppendUvarint(h, uint64(e.strings[fieldRest].ref(s)))
		}
		h = appendZigzag(h, m.TimeMS)
	}
	return h
}

func (e *encoder) clockRef(c *ClockSegment) uint32 {
	if c == nil {
		return 0
	}
	return e.clocks.ref(*c) + 1
}

func (e *encoder) sourceRef(s *SourceSegment) uint32 {
	if s == nil {
		return 0
	}
	return e.sources.ref(*s) + 1
}

// assemble builds the body: tables, head, lines, columns.
func (e *encoder) assemble(readings []Reading) []byte {
	e.sort(readings)
	e.look(readings)
	e.writeColumns(readings)
	e.body = e.appendTables(e.body)
	e.body = append(e.body, e.head...)
	e.body = e.appendLines(e.body)
	e.body = binary.AppendUvarint(e.body, uint64(len(readings)))
	for _, c := range e.col {
		e.body = append(e.body, c...)
	}
	return e.body
}

// sort finds every reading's line.
func (e *encoder) sort(readings []Reading) {
	for i := range readings {
		r := &readings[i]
		s := shapeOf(r)
		tag := e.tags.ref(r.Tag)
		if int(tag) == len(e.latest) {
			e.nameTag(r.Tag.Value())
			e.latest = append(e.latest, latest{shape: s, line: e.lineRef(tag, &s)})
		} else if l := &e.latest[tag]; l.shape != s {
			l.shape, l.line = s, e.lineRef(tag, &s)
		}
		e.lineOf = append(e.lineOf, e.latest[tag].line)
	}
}

// nameTag enters a new tag's strings.
func (e *encoder) nameTag(s Series) {
	for f, name := range seriesFields(&s) {
		e.strings[f].ref(*name)
	}
}

func seriesFields(s *Series) [fieldRest]*string {
	return [...]*string{&s.Input, &s.Asset, &s.Device, &s.Lifecycle, &s.Sensor}
}

func (e *encoder) lineRef(tag uint32, s *shape) uint32 {
	form := e.forms.ref(formRefs{s.traits, e.strings[fieldRest].ref(s.unit), e.clockRef(s.clock)})
	ref := e.index.ref(lineRefs{tag, form, e.sourceRef(s.source)})
	if int(ref) == len(e.lines) {
		e.lines = append(e.lines, line{sourceTick: coarsestTick, serverTick: coarsestTick})
	}
	return ref
}

// look finds the form of every line's numbers.
func (e *encoder) look(readings []Reading) {
	again := false
	for i := range readings {
		r, l := &readings[i], &e.lines[e.lineOf[i]]
		if r.Source.NS != NoTime {
			l.sourceTick = tickOf(r.Source.NS, l.sourceTick)
		}
		if r.ServerNS != NoTime {
			l.serverTick = tickOf(r.ServerNS, l.serverTick)
		}
		if r.Value.kind == Float {
			l.fit.add(math.Float64frombits(r.Value.num))
			again = again || l.fit.again
		}
	}
	for _, look := range [...]func(*floatFit, float64){(*floatFit).addSingle, (*floatFit).check} {
		for i := 0; again && i < len(readings); i++ {
			if l := &e.lines[e.lineOf[i]]; l.fit.again && readings[i].Value.kind == Float {
				look(&l.fit, math.Float64frombits(readings[i].Value.num))
			}
		}
	}
}
