package gateway

import "tidemark/reading"

// catcher is who has an input catch up (SEMANTICS G4). The engine knows only
// whether it does; that there may be two reasons at once is known here.
type catcher uint8

const (
	byReader  catcher = 1 << iota // a resumed session brings what was kept meanwhile
	byPending                     // pending readings are judged again
)

// catchUp begins or ends one reason for an input to catch up, and puts the mark
// into the batch where the engine must hear of it: at the front when it begins,
// so that nothing of this batch moves the watermark past what is still to come.
func (p *pipeline) catchUp(input string, by catcher, on bool) {
	was := p.catching[input]
	now := was &^ by
	if on {
		now = was | by
	}
	p.catching[input] = now
	switch {
	case on && was == 0:
		p.insertMark(reading.MarkCatchUpBegin, input)
	case !on && was != 0 && now == 0:
		p.appendMark(reading.MarkCatchUpEnd, input)
	}
}

// resumeCatchUp settles what a crash left: the engine may still hold an input
// back for somebody who no longer exists. An input with pending readings goes on
// catching up until they are decided; the others are let go, and a reader that
// resumes its session begins anew.
func (p *pipeline) resumeCatchUp() {
	if p.seq == 0 {
		return
	}
	for _, input := range p.inputs {
		if p.ledger.Counts.input(input).PendingNow() > 0 {
			p.catching[input] = byPending
			p.insertMark(reading.MarkCatchUpBegin, input)
		} else {
			p.appendMark(reading.MarkCatchUpEnd, input)
		}
	}
}

// readerMark takes a reader's mark into the batch; at is the number of the
// batch's readings before the parcel.
func (p *pipeline) readerMark(m reading.Mark, at int) {
	whole := m.Device == "" && m.Asset == "" && m.Sensor == ""
	switch {
	case whole && m.Kind == reading.MarkCatchUpBegin:
		p.catchUp(m.Input, byReader, true)
	case whole && m.Kind == reading.MarkCatchUpEnd:
		p.catchUp(m.Input, byReader, false)
	case whole && m.Kind == reading.MarkActive:
		p.isAlive(m)
	default:
		m.At += at
		p.batch.Marks = append(p.batch.Marks, m)
	}
}

// appendMark puts a mark about an input behind the batch's readings so far.
func (p *pipeline) appendMark(kind reading.MarkKind, input string) {
	p.batch.Marks = append(p.batch.Marks, reading.InputMark(kind, input, len(p.batch.Readings)))
}

// insertMark puts a mark about an input before everything else in the batch.
func (p *pipeline) insertMark(kind reading.MarkKind, input string) {
	p.batch.Marks = append([]reading.Mark{reading.InputMark(kind, input, 0)}, p.batch.Marks...)
}
