package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"tidemark/gateway"
	"tidemark/history"
)

// Everything that a user sees of `tidemark tail` and `tidemark tags` is printed in
// this file.

// tailView prints readings in columns that widen as they must.
type tailView struct {
	w     io.Writer
	shown int
	name  int // width of its column
	value int // likewise
	input int // likewise
}

// tailHead is said again when it has left the screen.
const tailHead = 40

func (v *tailView) show(t *gateway.Tailed) error {
	if t.Reading == nil {
		_, err := fmt.Fprintf(v.w, "! %s left out: this terminal is too slow for them\n", count(t.Dropped, "reading"))
		return err
	}
	r := t.Reading
	name, value, source := printable(history.Name(r.Asset, r.Sensor)), valueText(r), sourceText(r)
	input := printable(r.Input)
	v.name, v.value = max(v.name, 24, utf8.RuneCountInString(name)), max(v.value, 12, utf8.RuneCountInString(value))
	v.input = max(v.input, 8, utf8.RuneCountInString(input))
	var b strings.Builder
	if v.shown%tailHead == 0 {
		v.columns(&b, "INGEST TIME", "SOURCE TIME", "INPUT", "SENSOR", "VALUE", "WHAT BECAME OF IT")
	}
	v.shown++
	v.columns(&b, timeOfDay(r.IngestTime), source, input, name, value, verdictText(r))
	_, err := io.WriteString(v.w, b.String())
	return err
}

func (v *tailView) columns(b *strings.Builder, ingest, source, input, name, value, what string) {
	line := fmt.Sprintf("%-12s  %-20s  %s  %s  %s  %s", ingest, source, padRight(input, v.input), padRight(name, v.name), padLeft(value, v.value), what)
	fmt.Fprintln(b, strings.TrimRight(line, " "))
}

func padRight(s string, n int) string {
	return s + strings.Repeat(" ", max(0, n-utf8.RuneCountInString(s)))
}

func padLeft(s string, n int) string {
	return strings.Repeat(" ", max(0, n-utf8.RuneCountInString(s))) + s
}

// timeOfDay is the time of day, to the millisecond; people who look at a tail know
// the date.
func timeOfDay(text string) string {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return "-"
	}
	return t.UTC().Format("15:04:05.000")
}

// sourceText is the source time, with its date where that is another than the
// arrival's.
func sourceText(r *history.Reading) string {
	if r.SourceTime == "" || r.IngestTime[:10] == r.SourceTime[:10] {
		return timeOfDay(r.SourceTime)
	}
	return moment(r.SourceTime)
}

// valueText is the value with its unit.
func valueText(r *history.Reading) string {
	text := string(r.Value)
	var s string
	if json.Unmarshal(r.Value, &s) == nil && strings.HasPrefix(text, `"`) {
		text = printable(s)
	}
	if text == "null" {
		text = "none"
	}
	return strings.TrimSpace(text + " " + printable(r.Unit))
}

// verdictText says what became of a reading, and what else there is to say of it.
func verdictText(r *history.Reading) string {
	words := []string{string(r.Verdict)}
	if r.Reason != "" {
		words = append(words, r.Reason)
	}
	if r.Quality != "good" {
		words = append(words, r.Quality+" quality")
	}
	words = append(words, r.Flags...)
	for _, d := range r.Delivery {
		if d != string(r.Verdict) {
			words = append(words, d)
		}
	}
	return strings.Join(words, " ")
}

// printTags prints a table of tags, the worst first.
func printTags(w io.Writer, t *gateway.Tags) error {
	var b strings.Builder
	tagVerdict(&b, t)
	if len(t.Tags) > 0 {
		rows := [][]string{{"STATE", "SENSOR", "LAST VALUE", "AGE", "READINGS", "FROM", "WHY"}}
		for i := range t.Tags {
			rows = append(rows, tagRow(&t.Tags[i]))
		}
		fmt.Fprintln(&b)
		table(&b, rows, "llrrrll")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// tagVerdict counts the tags by state.
func tagVerdict(b *strings.Builder, t *gateway.Tags) {
	counts := map[gateway.TagState]uint64{}
	for i := range t.Tags {
		counts[t.Tags[i].State]++
	}
	fmt.Fprintf(b, "%s  %s: %d good", t.Gateway, count(len(t.Tags), "tag"), counts[gateway.TagGood])
	for _, s := range gateway.TagStates() {
		if n := counts[s]; n > 0 && s != gateway.TagGood {
			fmt.Fprintf(b, ", %d %s", n, s)
		}
	}
	fmt.Fprintf(b, "  %s\n", moment(t.At))
	if t.Unlisted > 0 {
		fmt.Fprintf(b, "  ! %s of more series than are remembered\n", count(t.Unlisted, "reading"))
	}
}

func tagRow(t *gateway.Tag) []string {
	name := printable(history.Name(t.Asset, t.Sensor))
	if t.Lifecycle != "" {
		name += " (" + printable(t.Lifecycle) + ")"
	}
	if t.Sensor == "" {
		name = "-" // nobody knows what it would be called
	}
	value, age := "-", "-"
	if t.Last != nil {
		last := *t.Last
		last.Unit = cmp.Or(last.Unit, t.Unit)
		value = valueText(&last)
	}
	if t.AgeMS != nil {
		age = shortMS(max(0, *t.AgeMS))
	}
	from := t.Input
	if t.Address != "" {
		from += " " + printable(t.Address)
	}
	if t.Path != "" {
		from += " " + printable(t.Path)
	}
	return []string{string(t.State), name, value, age, fmt.Sprint(t.Readings), from, t.Why}
}
