package configs

import (
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Tag is a node that a tag file names.
type Tag struct {
	Node   string // nsu=URI;s=NAME, or a browse path from the root
	Asset  string
	Device string
	Sensor string // empty: as the server calls the node
	Unit   string // UCUM; empty: the server's
	// Deadband goes before that of the rule, also where it is 0; nil: the rule's.
	Deadband    *Deadband
	Trigger     Trigger  // goes before that of the rule; empty: the rule's
	ExpectEvery Duration // 0: not known
	AlarmAfter  Duration // 0: its silence is no matter
	Line        int
}

// tagColumns are what a tag file may have, in any order.
var tagColumns = []string{"node", "asset", "device", "sensor", "unit", "deadband", "trigger", "expect_every", "alarm_after"}

// readTags reads a tag file: CSV with a header that names its columns (node and,
// as wanted, asset, device, sensor, unit, deadband, trigger, expect_every,
// alarm_after), separated by commas, semicolons or tabs, as spreadsheets write them. Lines that begin with #
// are comments. A deadband is a number, or percent of the node's range: 0.5%.
//
// Lines that are at fault are left out. The error is Faults then, or that of
// reading the file.
func readTags(path string) ([]Tag, error) {
	data, err := readFile(path)
	if err != nil {
		return nil, fmt.Errorf("cannot read the file: %w", err)
	}
	return ParseTags(path, data)
}

// ParseTags reads data as readTags does; name stands in faults.
func ParseTags(name string, data []byte) ([]Tag, error) {
	t := &tagReader{name: name, nodes: map[string]int{}, sensors: map[string]int{}}
	t.read(data)
	if len(t.faults) > 0 {
		return t.tags, t.faults.sort()
	}
	return t.tags, nil
}

type tagReader struct {
	name           string
	columns        []string
	line           int
	nodes, sensors map[string]int // by what must not come twice: its line
	tags           []Tag
	faults         Faults
}

func (t *tagReader) fault(column int, nearest, format string, args ...any) {
	t.faults = append(t.faults, Fault{File: t.name, Line: t.line, Column: column, Reason: fmt.Sprintf(format, args...), Nearest: nearest})
}

func (t *tagReader) read(data []byte) {
	t.line = 1
	data = bytes.TrimPrefix(data, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(data) {
		t.line = 1 + bytes.Count(data[:invalid(data)], []byte("\n"))
		t.fault(1, "", "not UTF-8 text; save the file as \"CSV UTF-8\"")
		return
	}
	r := csv.NewReader(bytes.NewReader(data))
	r.Comma, r.Comment, r.FieldsPerRecord, r.TrimLeadingSpace = separator(data), '#', -1, true
	for {
		record, err := r.Read()
		var wrong *csv.ParseError
		switch {
		case errors.Is(err, io.EOF):
			if t.columns == nil && len(t.faults) == 0 {
				t.fault(1, "", "no header; the first line names the columns: %s", strings.Join(tagColumns, ","))
			}
			return
		case errors.As(err, &wrong):
			t.line = wrong.Line
			t.fault(wrong.Column, "", "not CSV: %v", wrong.Err)
			return
		case err != nil:
			t.fault(1, "", "not CSV: %v", err)
			return
		}
		t.line, _ = r.FieldPos(0)
		t.record(record, func(i int) int { _, column := r.FieldPos(i); return column })
		if t.columns == nil {
			return // nothing below can be read
		}
	}
}

// invalid returns where data stops being UTF-8.
func invalid(data []byte) int {
	for i := 0; ; {
		r, size := utf8.DecodeRune(data[i:])
		if r == utf8.RuneError && size <= 1 {
			return i
		}
		i += size
	}
}

// separator returns what separates the columns of the header.
func separator(data []byte) rune {
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		for _, s := range ";\t" {
			if strings.ContainsRune(line, s) {
				return s
			}
		}
		break
	}
	return ','
}

func (t *tagReader) record(fields []string, column func(int) int) {
	for i := range fields {
		fields[i] = strings.TrimSpace(fields[i])
	}
	if t.columns == nil {
		t.header(fields, column)
		return
	}
	if len(fields) > len(t.columns) {
		t.fault(column(len(t.columns)), "", "more fields than the header has columns (%d); put quotes around a field with the separator in it", len(t.columns))
		return
	}
	before := len(t.faults)
	tag := Tag{Line: t.line}
	at := map[string]int{}
	for i, text := range fields {
		at[t.columns[i]] = column(i)
		t.field(&tag, t.columns[i], text, column(i))
	}
	if tag.Node == "" {
		t.fault(max(1, at["node"]), "", "no node")
	}
	t.once(t.nodes, tag.Node, at["node"], "node")
	if tag.Sensor == "" && tag.ExpectEvery != 0 {
		t.fault(at["expect_every"], "", "expect_every wants the sensor's name beside it")
	}
	if tag.Sensor == "" && tag.AlarmAfter != 0 {
		t.fault(at["alarm_after"], "", "alarm_after wants the sensor's name beside it")
	}
	if d := tag.Deadband; d != nil && *d != (Deadband{}) && tag.Trigger != "" && tag.Trigger != TriggerStatusValue {
		t.fault(at["trigger"], "", "servers pass over a deadband where the trigger is %s: leave one of them out", tag.Trigger)
	}
	if tag.AlarmAfter != 0 && tag.AlarmAfter < tag.ExpectEvery {
		t.fault(at["alarm_after"], "", "%v is below expect_every, %v: a sensor that speaks as expected would be called silent", tag.AlarmAfter, tag.ExpectEvery)
	}
	if tag.Sensor != "" {
		t.once(t.sensors, tag.Asset+"/"+tag.Sensor, at["sensor"], "asset and sensor")
	}
	if len(t.faults) == before {
		t.tags = append(t.tags, tag)
	}
}

func (t *tagReader) once(seen map[string]int, key string, column int, what string) {
	if line, ok := seen[key]; ok && key != "" {
		t.fault(column, "", "this %s stands in line %d already", what, line)
		return
	}
	seen[key] = t.line
}

func (t *tagReader) header(fields []string, column func(int) int) {
	before := len(t.faults)
	for i, name := range fields {
		switch {
		case !slices.Contains(tagColumns, name):
			t.fault(column(i), Nearest(name, tagColumns), "unknown column %q; there are %s", clip(name), strings.Join(tagColumns, ", "))
		case slices.Contains(fields[:i], name):
			t.fault(column(i), "", "the column %s stands in the header twice", name)
		}
	}
	if len(t.faults) == before && !slices.Contains(fields, "node") {
		t.fault(1, "", "no column node; the first line names the columns: %s", strings.Join(tagColumns, ","))
	}
	if len(t.faults) == before {
		t.columns = fields
	}
}

func (t *tagReader) field(tag *Tag, name, text string, column int) {
	if text == "" {
		return
	}
	switch name {
	case "node":
		if wrong := wrongNode(text); wrong != "" {
			t.fault(column, "", "%s", wrong)
		}
		tag.Node = text
	case "asset":
		tag.Asset = t.named(text, column)
	case "device":
		tag.Device = t.named(text, column)
	case "sensor":
		tag.Sensor = t.named(text, column)
	case "unit":
		if near, reason := wrongUnit(text); reason != "" {
			t.fault(column, near, "%s", reason)
		}
		tag.Unit = text
	case "deadband":
		t.deadband(tag, text, column)
	case "trigger":
		if all := tag.Trigger.values(); !slices.Contains(all, text) {
			t.fault(column, Nearest(text, all), "%q is no trigger; there are %s", clip(text), strings.Join(all, ", "))
			return
		}
		tag.Trigger = Trigger(text)
	case "expect_every":
		tag.ExpectEvery = t.duration(text, column, Duration(time.Millisecond))
	case "alarm_after":
		tag.AlarmAfter = t.duration(text, column, Duration(time.Second))
	}
}

func (t *tagReader) duration(text string, column int, least Duration) Duration {
	d, err := ParseDuration(text)
	var w *wrong
	switch {
	case errors.As(err, &w):
		t.fault(column, w.nearest, "%s", w.reason)
	case d < least || d > 366*Day:
		t.fault(column, "", "%s is out of range: %v to 366d", text, least)
	}
	return d
}

func (t *tagReader) named(text string, column int) string {
	if near, reason := wrongName(text); reason != "" {
		t.fault(column, near, "%s", reason)
	}
	return text
}

func (t *tagReader) deadband(tag *Tag, text string, column int) {
	number, percent := strings.CutSuffix(text, "%")
	v, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
	switch {
	case err != nil:
		t.fault(column, strings.Replace(text, ",", ".", 1), "%q is no deadband; write a number, or percent of the range such as 0.5%%", clip(text))
	case !(v >= 0) || percent && v > 100 || v > 1e300:
		t.fault(column, "", "%s is out of range: 0 and above, percent up to 100", text)
	case percent:
		tag.Deadband = &Deadband{Percent: v}
	default:
		tag.Deadband = &Deadband{Absolute: v}
	}
}
