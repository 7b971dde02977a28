package windowing_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tidemark/reading"
	"tidemark/windowing"
)

// The stories of testdata/*.txt: commands, ----, what the engine says, and an
// empty line. `go test -run Stories -update` writes what it says anew. Numbers are
// seconds. The commands:
//
//	engine KEY=NUMBER … functions=LIST scope=NAME …   a new engine of one feature, f
//	tune KEY=NUMBER …                                  the same feature, tuned anew
//	read NAME TIME VALUE [KEY=…] [FLAG …]              one reading, a batch
//	batch [TIME]                                       what follows, up to end, is one
//	end                                                batch; with a time it emits
//	advance TIME                                       gateway time; emits
//	mark KIND INPUT [KEY=…]                            something about a partition
//	restart                                            snapshot and restore
//
// NAME is input, input/sensor or input/asset/sensor.
type story struct {
	config windowing.Config
	e      *windowing.Engine
	now    int64
	open   *reading.Batch
	show   []string
	said   []string
}

func TestStories(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) { tell(t, file) })
	}
}

func tell(t *testing.T, file string) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	s := new(story)
	var told bytes.Buffer
	for chapter := range strings.SplitSeq(strings.TrimRight(string(text), "\n"), "\n\n") {
		commands, _, tells := strings.Cut(chapter+"\n", "----\n")
		told.WriteString(commands)
		s.said = nil
		for line := range strings.Lines(commands) {
			if err := s.do(line); err != nil {
				t.Fatalf("%s: %s: %v", file, strings.TrimSpace(line), err)
			}
		}
		if tells {
			told.WriteString("----\n")
			for _, l := range s.said {
				told.WriteString(l + "\n")
			}
		}
		told.WriteString("\n")
	}
	got := strings.TrimRight(told.String(), "\n") + "\n"
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(string(text), got); diff != "" && !*update {
		t.Errorf("%s (-want +got)\n%s", file, diff)
	}
}

func (s *story) do(line string) error {
	line, _, _ = strings.Cut(line, "#")
	words := strings.Fields(line)
	if len(words) == 0 {
		return nil
	}
	switch args := words[1:]; words[0] {
	case "engine":
		return s.begin(args)
	case "tune":
		if err := s.set(args); err != nil {
			return err
		}
		return s.step(&reading.Batch{Config: windowing.AppendConfig(nil, &s.config)})
	case "read":
		r, err := s.read(args)
		if err != nil || s.open != nil {
			if err == nil {
				s.open.Readings = append(s.open.Readings, r)
			}
			return err
		}
		return s.step(&reading.Batch{Readings: []reading.Reading{r}})
	case "batch":
		s.open = &reading.Batch{}
		if len(args) > 0 {
			s.now, s.open.Emit = millis(args[0]), true
		}
		return nil
	case "end":
		b := s.open
		s.open = nil
		return s.step(b)
	case "advance":
		s.now = millis(args[0])
		return s.step(&reading.Batch{Emit: true})
	case "mark":
		return s.mark(args)
	case "restart":
		e, err := windowing.Restore(s.e.AppendSnapshot(nil))
		s.e = e
		return err
	}
	return fmt.Errorf("no such command")
}

func (s *story) begin(args []string) (err error) {
	s.config = windowing.Config{FloorMS: reading.NoTime, LateIdentityMS: windowing.Forever, Features: []windowing.Feature{{
		ID: windowing.FeatureID{Name: "f", Version: 1}, SizeMS: 10_000, AllowedLatenessMS: 5_000, Functions: []string{"count", "sum"},
	}}}
	s.now, s.show = reading.NoTime, nil
	if err = s.set(args); err != nil {
		return err
	}
	s.e, err = windowing.New(s.config)
	if err != nil {
		s.said = append(s.said, "error: "+err.Error())
	}
	return nil
}

// set sets what key=value names.
func (s *story) set(args []string) error {
	f := &s.config.Features[0]
	durations := map[string]*int64{
		"size": &f.SizeMS, "every": &f.EveryMS, "offset": &f.OffsetMS, "disorder": &f.OutOfOrdernessMS, "lateness": &f.AllowedLatenessMS,
		"idle": &f.IdleAfterMS, "flush": &f.FlushAfterMS, "correct": &f.CorrectEveryMS, "lag": &f.MaxLagMS, "hold": &f.MaxHoldMS,
		"floor": &s.config.FloorMS, "horizon": &s.config.DuplicateHorizonMS, "late_identity": &s.config.LateIdentityMS,
	}
	for _, arg := range args {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "functions":
			f.Functions = strings.Split(value, ",")
		case "scope":
			f.Scope, _ = windowing.ParseScope(value)
		case "group":
			f.Group = value
		case "empty":
			f.EmitEmpty = true
		case "explicit":
			s.config.Explicit = true
		case "windows":
			s.config.MaxOpenWindows, _ = strconv.Atoi(value)
		case "show":
			s.show = strings.Split(value, ",")
		default:
			if durations[key] == nil {
				return fmt.Errorf("no setting %q", key)
			}
			*durations[key] = millis(value)
		}
	}
	return nil
}

func millis(text string) int64 {
	seconds, err := strconv.ParseFloat(text, 64)
	if err != nil {
		panic(err)
	}
	return int64(seconds * 1000)
}

// read makes a reading.
func (s *story) read(args []string) (reading.Reading, error) {
	name := strings.Split(args[0], "/")
	series := reading.Series{Input: name[0], Sensor: "s"}
	if len(name) > 1 {
		series.Sensor = name[len(name)-1]
	}
	if len(name) > 2 {
		series.Asset = name[1]
	}
	seconds, err := strconv.ParseFloat(args[1], 64)
	if err != nil {
		return reading.Reading{}, err
	}
	r := accepted(series, int64(seconds*1e9), parseValue(args[2]))
	r.Stamp.Policy = reading.PolicyTrusted
	for _, arg := range args[3:] {
		key, value, _ := strings.Cut(arg, "=")
		switch key {
		case "id":
			r.ID = value
		case "seq":
			r.HasSeq = true
			r.Seq, err = strconv.ParseUint(value, 10, 64)
		case "device":
			series.Device = value
		case "lifecycle":
			series.Lifecycle = value
		case "vouches":
			r.Stamp.WatermarkMS = millis(value)
		case "bound":
			r.Stamp.EventBound = reading.MakeBound(millis(value) * 1e6)
		case "judged":
			r.Stamp.Policy = reading.PolicyReject
		case "bad":
			r.Quality.Level = reading.Bad
		case "uncertain":
			r.Quality.Level = reading.Uncertain
		case "initial":
			r.Delivery, r.Stamp.WatermarkMS = reading.Initial, reading.NoTime
		case "historical":
			r.Delivery, r.Stamp.WatermarkMS = reading.Historical, reading.NoTime
		case "certified":
			r.Delivery, r.Stamp.WatermarkMS, r.Stamp.Flags = reading.Rejudged, reading.NoTime, reading.RetroCorrected
		case "quarantined":
			r.Stamp = reading.Stamp{Disposition: reading.Quarantine, Reason: reading.Future, EventNS: reading.NoTime, WatermarkMS: reading.NoTime}
		case "pending":
			r.Stamp = reading.Stamp{Disposition: reading.Pending, Reason: reading.GWUnknown, EventNS: reading.NoTime, WatermarkMS: reading.NoTime}
		default:
			err = fmt.Errorf("no property %q", key)
		}
	}
	r.Tag = reading.MakeTag(series)
	return r, err
}

// parseValue reads integers, floats (with a point), true, false, null, and text.
func parseValue(text string) reading.Value {
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return reading.IntValue(i)
	}
	if u, err := strconv.ParseUint(text, 10, 64); err == nil {
		return reading.UintValue(u)
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil {
		return reading.FloatValue(f)
	}
	switch text {
	case "true", "false":
		return reading.BoolValue(text == "true")
	case "null":
		return reading.Value{}
	}
	return reading.TextValue(text)
}

func (s *story) mark(args []string) error {
	kinds := map[string]reading.MarkKind{
		"exists": reading.MarkExists, "remove": reading.MarkRemove, "watermark": reading.MarkWatermark, "idle": reading.MarkIdle,
		"active": reading.MarkActive, "catchup": reading.MarkCatchUpBegin, "caught-up": reading.MarkCatchUpEnd,
	}
	m := reading.Mark{Kind: kinds[args[0]], Input: args[1], TimeMS: reading.NoTime}
	if m.Kind == 0 {
		return fmt.Errorf("no mark %q", args[0])
	}
	for _, arg := range args[2:] {
		switch key, value, _ := strings.Cut(arg, "="); key {
		case "device":
			m.Device = value
		case "asset":
			m.Asset = value
		case "sensor":
			m.Sensor = value
		case "time":
			m.TimeMS = millis(value)
		default:
			return fmt.Errorf("no property %q", key)
		}
	}
	if s.open != nil {
		m.At = len(s.open.Readings)
		s.open.Marks = append(s.open.Marks, m)
		return nil
	}
	return s.step(&reading.Batch{Marks: []reading.Mark{m}})
}

func (s *story) step(b *reading.Batch) error {
	if s.e == nil {
		return fmt.Errorf("there is no engine")
	}
	b.GatewayMS = s.now
	out := s.e.Step(b)
	for i := range out.Emissions {
		m := &out.Emissions[i]
		line := new(bench).line(m)
		if name := strings.Trim(strings.Join([]string{m.Asset, m.Sensor, m.Lifecycle}, "/"), "/"); name != "s" && name != "" && m.Kind <= windowing.EmitLate {
			line = name + " " + line
		}
		if m.Kind == windowing.EmitFeature && slices.Contains(s.show, "coverage") {
			covered := "not known"
			if m.Coverage.CoveredMS >= 0 {
				covered = fmt.Sprint(float64(m.Coverage.CoveredMS) / 1000)
			}
			line += fmt.Sprintf(" (observed %d, covered %s, gap %g, certain %d)", m.Coverage.Observed,
				covered, float64(m.Coverage.LongestGapMS)/1000, m.Coverage.Certain)
		}
		if m.Kind == windowing.EmitFeature && slices.Contains(s.show, "inputs") {
			line += fmt.Sprintf(" (active %v, idle %v, stalled %v)", m.Inputs.Active, m.Inputs.Idle, m.Inputs.Stalled)
		}
		s.said = append(s.said, line)
	}
	for _, f := range out.Faults {
		s.said = append(s.said, "fault: "+f.Reason)
	}
	return nil
}

// Every rule of SEMANTICS part 1 is cited by a test or a story.
func TestEveryRuleIsCited(t *testing.T) {
	doc, err := os.ReadFile("../docs/SEMANTICS.md")
	if err != nil {
		t.Fatal(err)
	}
	part1, _, _ := strings.Cut(string(doc), "# Part 2")
	rule := regexp.MustCompile(`\b[WFLCGIDHN]\d+\b`)
	var cited []byte
	for _, pattern := range []string{"*_test.go", "testdata/*.txt"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			cited = append(cited, text...)
		}
	}
	found := map[string]bool{}
	for _, r := range rule.FindAll(cited, -1) {
		found[string(r)] = true
	}
	rules := rule.FindAllString(part1, -1)
	if len(rules) < 50 {
		t.Fatalf("only %d mentions of rules in SEMANTICS", len(rules))
	}
	for _, r := range rules {
		if !found[r] {
			found[r] = true
			t.Errorf("no test cites %s", r)
		}
	}
}
