package trace

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// token is one JSON value as it stands in a line that json.Valid has passed; nil
// where there is none or it is null. Traces are long, and this is several times
// faster than to decode into structures.
type token []byte

// kind names the token's type for errors.
func (t token) kind() string {
	switch t[0] {
	case '{':
		return "an object"
	case '[':
		return "an array"
	case '"':
		return "a string"
	case 't', 'f':
		return "a boolean"
	}
	return "a number"
}

// text returns a string's bytes, of the line itself where nothing is escaped.
func (t token) text(field string) ([]byte, error) {
	if t == nil {
		return nil, nil
	}
	if t[0] != '"' {
		return nil, fmt.Errorf("%s cannot be %s", field, t.kind())
	}
	inner := t[1 : len(t)-1]
	if bytes.IndexByte(inner, '\\') < 0 && utf8.Valid(inner) {
		return inner, nil
	}
	var s string
	if err := json.Unmarshal(t, &s); err != nil {
		return nil, fmt.Errorf("%s: %w", field, err)
	}
	return []byte(s), nil
}

// members calls f for each member of an object, in order.
func (t token) members(f func(key []byte, value token) error) error {
	rest := space(t[1:])
	for rest[0] != '}' {
		var key, value token
		key, rest = next(rest)
		name, err := key.text("a name")
		if err != nil {
			return err
		}
		value, rest = next(space(space(rest)[1:])) // after the colon
		if value[0] == 'n' {
			value = nil
		}
		if err := f(name, value); err != nil {
			return err
		}
		rest = comma(rest)
	}
	return nil
}

// elements calls f for each element of an array, in order.
func (t token) elements(f func(i int, value token) error) error {
	rest := space(t[1:])
	for i := 0; rest[0] != ']'; i++ {
		var value token
		value, rest = next(rest)
		if err := f(i, value); err != nil {
			return err
		}
		rest = comma(rest)
	}
	return nil
}

// comma skips what separates one value from the next, if anything.
func comma(b []byte) []byte {
	if b = space(b); b[0] == ',' {
		b = space(b[1:])
	}
	return b
}

func space(b []byte) []byte {
	for len(b) > 0 && (b[0] == ' ' || b[0] == '\t' || b[0] == '\n' || b[0] == '\r') {
		b = b[1:]
	}
	return b
}

// next splits the value at the front of b from what follows.
func next(b []byte) (value token, rest []byte) {
	n := 0
	switch b[0] {
	case '"':
		n = quoted(b)
	case '{', '[':
		for depth := 0; ; {
			switch b[n] {
			case '"':
				n += quoted(b[n:])
				continue
			case '{', '[':
				depth++
			case '}', ']':
				depth--
			}
			if n++; depth == 0 {
				return token(b[:n]), b[n:]
			}
		}
	default:
		for n < len(b) && bytes.IndexByte([]byte(",]} \t\r\n"), b[n]) < 0 {
			n++
		}
	}
	return token(b[:n]), b[n:]
}

// quoted returns the length of the string at the front of b.
func quoted(b []byte) int {
	for n := 1; ; n++ {
		switch b[n] {
		case '\\':
			n++
		case '"':
			return n + 1
		}
	}
}
