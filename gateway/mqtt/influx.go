package mqtt

import (
	"strings"
)

// influxFormat reads InfluxDB line protocol:
//
//	measurement,tag=value field=12i,other="text" 1767225600000000000
//
// Tags and fields are found by their names, the measurement as @measurement.
// Backslashes escape as InfluxDB has it: commas, spaces and equals signs in names,
// quotes and backslashes in texts.
type influxFormat struct {
	sub    *subscription
	values []pair
}

func (f *influxFormat) read(d *Decoder) {
	text := d.raw
	several := strings.IndexByte(strings.TrimRight(text, "\r\n"), '\n') >= 0
	for i := 0; text != ""; {
		line := cutLine(&text)
		if line == "" || line[0] == '#' {
			continue
		}
		d.breathe()
		d.raw = line
		index := -1
		if several {
			index = i
		}
		i++
		f.line(d, line, index)
	}
}

// cutLine takes the next line off; a line break in a quoted text belongs to it.
func cutLine(text *string) string {
	s, quoted := *text, false
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '"':
			quoted = !quoted
		case '\n':
			if !quoted {
				*text = s[i+1:]
				return strings.TrimSpace(s[:i])
			}
		}
	}
	if quoted { // a stray quote takes no other line along
		if i := strings.IndexByte(s, '\n'); i >= 0 {
			*text = s[i+1:]
			return strings.TrimSpace(s[:i])
		}
	}
	*text = ""
	return strings.TrimSpace(s)
}

func (f *influxFormat) line(d *Decoder, line string, index int) {
	slots := d.clear()
	f.values = f.values[:0]
	why := f.parse(line, slots)
	if why != "" {
		d.malformed("not_line_protocol", "the line is no line protocol: "+why)
		return
	}
	d.flat(index, f.values)
}

// parse fills the slots and the values, and returns what is wrong.
func (f *influxFormat) parse(line string, slots []field) (why string) {
	plan := &f.sub.plan
	measurement, rest := influxToken(line, ", ")
	if measurement == "" {
		return "it begins with no measurement"
	}
	plan.putNamed(influxMeasurement, field{wording, measurement}, slots)
	for rest != "" && rest[0] == ',' {
		var key, value string
		key, rest = influxToken(rest[1:], "=, ")
		if key == "" || rest == "" || rest[0] != '=' {
			return "a tag is no key=value"
		}
		value, rest = influxToken(rest[1:], ", ")
		plan.putNamed(key, field{wording, value}, slots)
	}
	for rest = strings.TrimLeft(rest, " "); ; rest = rest[1:] {
		var key string
		key, rest = influxToken(rest, "=, ")
		if key == "" || rest == "" || rest[0] != '=' {
			return "a field is no key=value"
		}
		v, after, ok := influxValue(rest[1:])
		if !ok {
			return "the value of field " + short(key) + " is neither number, boolean nor quoted text"
		}
		rest = after
		if !plan.putNamed(key, v, slots) {
			f.values = append(f.values, pair{key, v})
		}
		if rest == "" || rest[0] != ',' {
			break
		}
	}
	if rest = strings.Trim(rest, " "); rest != "" {
		if d, ok := parseDecimal(rest); !ok || d.exp != 0 {
			return "what follows the fields is no time"
		}
		slots[slotTime] = field{numeric, rest}
	}
	return ""
}

// influxToken reads a name up to one of the ends, without its escapes.
func influxToken(s, ends string) (token, rest string) {
	escaped := false
	i := 0
	for ; i < len(s); i++ {
		if s[i] == '\\' && i+1 < len(s) && strings.IndexByte(", =", s[i+1]) >= 0 {
			escaped = true
			i++
			continue
		}
		if strings.IndexByte(ends, s[i]) >= 0 {
			break
		}
	}
	token, rest = s[:i], s[i:]
	if escaped {
		token = influxEscapes.Replace(token)
	}
	return token, rest
}

var (
	influxEscapes = strings.NewReplacer(`\,`, `,`, `\ `, ` `, `\=`, `=`)
	influxQuotes  = strings.NewReplacer(`\"`, `"`, `\\`, `\`)
)

func influxValue(s string) (f field, rest string, ok bool) {
	if s != "" && s[0] == '"' {
		for i := 1; i < len(s); i++ {
			switch s[i] {
			case '\\':
				i++
			case '"':
				text := s[1:i]
				if strings.IndexByte(text, '\\') >= 0 {
					text = influxQuotes.Replace(text)
				}
				return field{wording, text}, s[i+1:], true
			}
		}
		return f, s, false
	}
	end := strings.IndexAny(s, ", ")
	if end < 0 {
		end = len(s)
	}
	word, rest := s[:end], s[end:]
	switch word {
	case "t", "T", "true", "True", "TRUE":
		return field{kind: yes}, rest, true
	case "f", "F", "false", "False", "FALSE":
		return field{kind: no}, rest, true
	}
	whole := strings.TrimRight(word, "iu")
	d, ok := parseDecimal(whole)
	if len(word)-len(whole) > 1 || whole != word && d.exp != 0 {
		return f, rest, false
	}
	if !ok && notFinite(word) {
		return field{wording, word}, rest, true
	}
	return field{numeric, whole}, rest, ok
}
