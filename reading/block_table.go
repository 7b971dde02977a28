package reading

import "encoding/binary"

func (e *encoder) appendTables(b []byte) []byte {
	for i := range e.strings {
		b = binary.AppendUvarint(b, uint64(len(e.strings[i].keys)))
		prev := ""
		for _, s := range e.strings[i].keys {
			b = appendFront(b, prev, s)
			prev = s
		}
	}
	b = binary.AppendUvarint(b, uint64(len(e.clocks.keys)))
	for i := range e.clocks.keys {
		b = appendClock(b, &e.clocks.keys[i])
	}
	b = binary.AppendUvarint(b, uint64(len(e.sources.keys)))
	var id uint64
	for _, s := range e.sources.keys {
		b = appendZigzag(b, int64(s.ID-id))
		b = appendZigzag(b, s.LoNS)
		b = appendZigzag(b, s.HiNS-s.LoNS)
		b = append(b, byte(s.Verdict))
		b = appendZigzag(b, int64(s.ZoneMin))
		id = s.ID + 1
	}
	return b
}

func appendClock(b []byte, c *ClockSegment) []byte {
	b = binary.AppendUvarint(b, c.ID)
	b = binary.AppendUvarint(b, uint64(c.Epoch))
	b = binary.LittleEndian.AppendUint64(b, c.Boot)
	traceable := byte(0)
	if c.Traceable {
		traceable = 1
	}
	b = append(b, byte(c.State), byte(c.Method), traceable, c.Servers)
	for _, v := range [...]int64{c.E0NS, c.RhoPPB, c.StartBootNS, c.StartGatewayMS, c.WallMinusBootNS} {
		b = appendZigzag(b, v)
	}
	return b
}

// appendLines appends the tags, the forms and the lines made of them.
func (e *encoder) appendLines(b []byte) []byte {
	b = binary.AppendUvarint(b, uint64(len(e.tags.keys)))
	var next tagRefs
	for _, tag := range e.tags.keys {
		s := tag.Value()
		for f, name := range seriesFields(&s) {
			ref := e.strings[f].ref(*name)
			b = appendZigzag(b, int64(ref)-int64(next[f]))
			next[f] = max(next[f], ref+1)
		}
	}
	b = binary.AppendUvarint(b, uint64(len(e.forms.keys)))
	for i := range e.forms.keys {
		f := &e.forms.keys[i]
		b = f.traits.append(b)
		b = binary.AppendUvarint(b, uint64(f.unit))
		b = binary.AppendUvarint(b, uint64(f.clock))
	}
	b = binary.AppendUvarint(b, uint64(len(e.lines)))
	var tag, source uint32
	for i, r := range e.index.keys {
		l := &e.lines[i]
		b = appendZigzag(b, int64(r.tag)-int64(tag))
		b = binary.AppendUvarint(b, uint64(r.form))
		b = appendZigzag(b, int64(r.source)-int64(source))
		b = append(b, l.sourceTick<<2|l.serverTick, l.fit.form())
		tag, source = r.tag+1, r.source+1
	}
	return b
}
