package mqtt

import (
	"strconv"

	"github.com/tidwall/gjson"
)

// jsonFormat reads JSON: one object, an array of elements, or an object with a
// member per element.
type jsonFormat struct {
	sub *subscription
	// each leads to the elements and, before them, to what stands around them; nil
	// where the payload is what holds the elements, or they need gjson to be found.
	each *plan
}

// inOnePass is the size up to which a payload is read and checked at once: should
// it turn out to be no JSON, what was made of it is taken back. A larger one is
// handed on in pieces, so it is checked first.
const inOnePass = 32 << 10

func newJSONFormat(s *subscription) *jsonFormat {
	f := &jsonFormat{sub: s}
	if s.Each != "" && s.Each != "@this" {
		paths := append(append([]string{}, s.plan.paths[:metaSlots]...), s.Each)
		p := newPlan(paths)
		f.each = &p
	}
	return f
}

func (f *jsonFormat) read(d *Decoder) {
	s := d.raw
	if len(s) > inOnePass {
		if p := (scanner{s: s}); !p.skip() || !p.end() {
			f.refuse(d, &p)
			return
		}
	}
	spill, before := d.spill, d.mark()
	if len(s) <= inOnePass {
		d.spill = nil
	}
	p := scanner{s: s}
	if !f.message(d, &p) || !p.end() {
		d.rollback(before)
		d.raw = s
		f.refuse(d, &p)
	}
	d.spill = spill
}

func (f *jsonFormat) refuse(d *Decoder, p *scanner) {
	if p.deep {
		d.malformed("too_deep", "nested deeper than "+strconv.Itoa(maxDepth)+" levels")
		return
	}
	d.malformed("not_json", "the payload is no JSON; send JSON, or declare another format")
}

// message reads the payload and reports whether it is JSON.
func (f *jsonFormat) message(d *Decoder, p *scanner) bool {
	c := p.next()
	switch {
	case f.each != nil:
		return f.below(d, p)
	case f.sub.Each == "@this" && (c == '[' || c == '{' && f.sub.naming == byKey):
		return f.elements(d, p)
	case f.sub.Each == "@this" && c != '{':
		d.malformed("not_an_array", "the payload is neither array nor object")
		return p.skip()
	}
	return f.element(d, p, -1, "")
}

// below reads the elements under Each, after what stands around them.
func (f *jsonFormat) below(d *Decoder, p *scanner) bool {
	start := p.i
	around := d.around[:metaSlots+1]
	clear(around)
	if !p.into(&f.each.tree, around) {
		return false
	}
	f.odd(p.s[start:p.i], f.each, around)
	d.enclosed = true
	each := around[metaSlots]
	inner := scanner{s: each.text}
	switch {
	case !each.exists():
		d.malformed("field_missing", "there is nothing at each, "+f.sub.Each)
		return true
	case each.kind != nested:
		d.malformed("not_an_array", "what is at each, "+f.sub.Each+", is neither array nor object")
		return true
	case each.text[0] == '[' || f.sub.naming == byKey:
		return f.elements(d, &inner)
	}
	return f.element(d, &inner, -1, "")
}

func (f *jsonFormat) elements(d *Decoder, p *scanner) bool {
	return p.each(func(i int, name string, _ bool) bool {
		d.breathe()
		return f.element(d, p, i, name)
	})
}

// element reads one element and hands it on.
func (f *jsonFormat) element(d *Decoder, p *scanner, index int, key string) bool {
	c := p.next()
	start, slots := p.i, d.clear()
	value := field{kind: nested}
	if c == '{' || c == '[' {
		if !p.members(&f.sub.plan.tree, slots) {
			return false
		}
		value.text = p.s[start:p.i]
		f.odd(value.text, &f.sub.plan, slots)
	} else {
		ok := false
		if value, ok = p.any(); !ok {
			return false
		}
	}
	if index >= 0 {
		d.raw = p.s[start:p.i]
	}
	if !d.begin(index) {
		return true
	}
	switch f.sub.naming {
	case byField:
		d.fields()
	case byKey:
		d.named(key, value)
	default:
		d.named("", value)
	}
	return true
}

// odd looks up what one pass does not find.
func (f *jsonFormat) odd(raw string, p *plan, slots []field) {
	for _, slot := range p.odd {
		slots[slot] = fromGJSON(gjson.Get(raw, p.paths[slot]))
	}
}

func fromGJSON(v gjson.Result) field {
	switch v.Type {
	case gjson.String:
		return field{wording, v.Str}
	case gjson.Number:
		return field{numeric, v.Raw}
	case gjson.True:
		return field{kind: yes}
	case gjson.False:
		return field{kind: no}
	case gjson.JSON:
		return field{nested, v.Raw}
	}
	if v.Exists() {
		return field{kind: null}
	}
	return field{}
}
