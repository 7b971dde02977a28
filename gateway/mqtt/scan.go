package mqtt

import (
	"strings"

	"github.com/tidwall/gjson"
)

// maxDepth is how many levels a payload may nest, so that a hostile one costs
// bounded time and memory.
const maxDepth = 512

// scanner reads JSON (RFC 8259) once from front to back, and on the way picks out
// what a plan wants. Beyond the standard it takes NaN, Infinity and -Infinity,
// which some encoders write where JSON has no number, as text: the rest of the
// message is not lost for them.
//
// Its methods return false at the first thing that is no JSON.
type scanner struct {
	s     string
	i     int
	depth int
	deep  bool // it is too deep, rather than wrong
}

func (p *scanner) space() {
	for p.i < len(p.s) {
		switch p.s[p.i] {
		case ' ', '\n', '\t', '\r':
			p.i++
		default:
			return
		}
	}
}

// next returns the next byte that is no space, 0 at the end.
func (p *scanner) next() byte {
	if p.i < len(p.s) && p.s[p.i] > ' ' {
		return p.s[p.i]
	}
	if p.space(); p.i < len(p.s) {
		return p.s[p.i]
	}
	return 0
}

// end reports whether nothing follows.
func (p *scanner) end() bool { return p.next() == 0 && p.i == len(p.s) }

// any reads one value.
func (p *scanner) any() (f field, ok bool) {
	c := p.next()
	start := p.i
	switch c {
	case '"':
		f.kind = wording
		f.text, ok = p.text()
		return f, ok
	case '{', '[':
		ok = p.members(nil, nil)
		return field{nested, p.s[start:p.i]}, ok
	case 't':
		return field{kind: yes}, p.literal("true")
	case 'f':
		return field{kind: no}, p.literal("false")
	case 'n':
		return field{kind: null}, p.literal("null")
	case 'N':
		return field{wording, "NaN"}, p.literal("NaN")
	case 'I':
		return field{wording, "Infinity"}, p.literal("Infinity")
	case '-':
		if rest := p.s[p.i+1:]; rest != "" && (rest[0] == 'I' || rest[0] == 'N') {
			ok = p.literal("-Infinity") || p.literal("-NaN")
			return field{wording, p.s[start:p.i]}, ok
		}
	}
	ok = p.number()
	return field{numeric, p.s[start:p.i]}, ok
}

func (p *scanner) literal(word string) bool {
	if !strings.HasPrefix(p.s[p.i:], word) {
		return false
	}
	p.i += len(word)
	return true
}

func (p *scanner) number() bool {
	s, i := p.s, p.i
	if i < len(s) && s[i] == '-' {
		i++
	}
	whole := i
	for i < len(s) && s[i]-'0' <= 9 {
		i++
	}
	if i == whole || s[whole] == '0' && i > whole+1 {
		return false
	}
	if i < len(s) && s[i] == '.' {
		i++
		from := i
		for i < len(s) && s[i]-'0' <= 9 {
			i++
		}
		if i == from {
			return false
		}
	}
	if i < len(s) && s[i]|0x20 == 'e' {
		if i++; i < len(s) && (s[i] == '+' || s[i] == '-') {
			i++
		}
		from := i
		for i < len(s) && s[i]-'0' <= 9 {
			i++
		}
		if i == from {
			return false
		}
	}
	p.i = i
	return true
}

// text reads a string; the scanner stands at its opening quote.
func (p *scanner) text() (string, bool) {
	s, start := p.s, p.i
	for i := start + 1; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			p.i = i + 1
			return s[start+1 : i], true
		case c == '\\':
			if !p.escaped(i) {
				return "", false
			}
			return gjson.Parse(s[start:p.i]).Str, true
		case c < ' ':
			return "", false
		}
	}
	return "", false
}

// escaped goes to the end of a string from its first escape on.
func (p *scanner) escaped(i int) bool {
	for s := p.s; i < len(s); i++ {
		switch c := s[i]; {
		case c == '"':
			p.i = i + 1
			return true
		case c < ' ':
			return false
		case c != '\\':
			continue
		}
		if i++; i == len(s) {
			return false
		}
		switch s[i] {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		case 'u':
			for range 4 {
				if i++; i == len(s) || !strings.ContainsRune("0123456789abcdefABCDEF", rune(s[i])) {
					return false
				}
			}
		default:
			return false
		}
	}
	return false
}

// into reads one value of which n wants something.
func (p *scanner) into(n *node, slots []field) bool {
	c := p.next()
	if start := p.i; len(n.below) > 0 && (c == '{' || c == '[') {
		ok := p.members(n, slots)
		n.put(field{nested, p.s[start:p.i]}, slots)
		return ok
	}
	f, ok := p.any()
	n.put(f, slots)
	return ok
}

// members reads an object or an array, whose elements are named by their index,
// and fills slots with what n wants; nil wants nothing.
func (p *scanner) members(n *node, slots []field) bool {
	return p.each(func(i int, name string, array bool) bool {
		if n != nil {
			if array {
				name = decimalName(i)
			}
			if c := n.child(name, i); c != nil {
				return p.into(c, slots)
			}
		}
		return p.skip()
	})
}

// skip reads one value of which nothing is wanted.
func (p *scanner) skip() bool {
	_, ok := p.any()
	return ok
}

// each reads an object or an array: visit reads the value of each member and
// returns whether it could.
func (p *scanner) each(visit func(i int, name string, array bool) bool) bool {
	open := p.next()
	closing, array := byte('}'), open == '['
	if array {
		closing = ']'
	}
	if p.depth++; p.depth > maxDepth {
		p.deep = true
		return false
	}
	p.i++
	if p.next() == closing {
		p.i++
		p.depth--
		return true
	}
	for i := 0; ; i++ {
		name := ""
		if !array {
			ok := false
			if p.next() != '"' {
				return false
			}
			if name, ok = p.text(); !ok || p.next() != ':' {
				return false
			}
			p.i++
		}
		if !visit(i, name, array) {
			return false
		}
		switch p.next() {
		case ',':
			p.i++
		case closing:
			p.i++
			p.depth--
			return true
		default:
			return false
		}
	}
}

var smallNames = [...]string{"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}

// decimalName is an array's index as a path has it.
func decimalName(i int) string {
	if i < len(smallNames) {
		return smallNames[i]
	}
	var b [20]byte
	at := len(b)
	for ; i > 0; i /= 10 {
		at--
		b[at] = byte('0' + i%10)
	}
	return string(b[at:])
}
