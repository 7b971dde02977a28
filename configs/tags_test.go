package configs_test

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tidemark/configs"
)

func TestTagFiles(t *testing.T) {
	temp := configs.Tag{Node: "nsu=u;s=T", Asset: "press", Sensor: "temp", Unit: "Cel", Deadband: &configs.Deadband{Percent: 0.5}, ExpectEvery: configs.Duration(time.Second), Line: 2}
	for name, c := range map[string]struct {
		text   string
		tags   []configs.Tag
		faults string
	}{
		"all columns":          {"node,asset,sensor,unit,deadband,trigger,expect_every\nnsu=u;s=T,press,temp,Cel,0.5%,,1s\n", []configs.Tag{temp}, ""},
		"deadbands of 0":       {"node,deadband\ni=1,0\ni=2,0%\ni=3\n", []configs.Tag{{Node: "i=1", Deadband: &configs.Deadband{}, Line: 2}, {Node: "i=2", Deadband: &configs.Deadband{}, Line: 3}, {Node: "i=3", Line: 4}}, ""},
		"a trigger":            {"node,trigger\ni=1,status\ni=2,status_value_timestamp\n", []configs.Tag{{Node: "i=1", Trigger: configs.TriggerStatus, Line: 2}, {Node: "i=2", Trigger: configs.TriggerStatusValueTimestamp, Line: 3}}, ""},
		"no trigger":           {"node,trigger\ni=1,value\n", nil, `t.csv:2:5: "value" is no trigger; there are status_value, status, status_value_timestamp`},
		"trigger, deadband":    {"node,trigger,deadband\ni=1,status,1\n", nil, "t.csv:2:5: servers pass over a deadband where the trigger is status: leave one of them out"},
		"as a spreadsheet has": {"\xef\xbb\xbfnode;asset;sensor;unit;deadband;expect_every\r\n\"nsu=u;s=T\"; press ;temp;Cel;0.5%;1s\r\n", []configs.Tag{temp}, ""},
		"tabs, other order":    {"sensor\tnode\nt\t/Objects/Line 3/T\n", []configs.Tag{{Node: "/Objects/Line 3/T", Sensor: "t", Line: 2}}, ""},
		"comments":             {"# ours\n\nnode\n# theirs\ni=85\n", []configs.Tag{{Node: "i=85", Line: 5}}, ""},
		"short lines":          {"node,asset,sensor\nnsu=u;i=1\nnsu=u;i=2,press\n", []configs.Tag{{Node: "nsu=u;i=1", Line: 2}, {Node: "nsu=u;i=2", Asset: "press", Line: 3}}, ""},
		"empty":                {"", nil, "t.csv:1:1: no header; the first line names the columns: node,asset,device,sensor,unit,deadband,trigger,expect_every,alarm_after"},
		"only comments":        {"# x\n", nil, "t.csv:1:1: no header; the first line names the columns: node,asset,device,sensor,unit,deadband,trigger,expect_every,alarm_after"},
		"no header":            {"nsu=u;s=T,press,temp\n", nil, `t.csv:1:1: unknown column "nsu=u"; there are node, asset, device, sensor, unit, deadband, trigger, expect_every, alarm_after` + "\n" + `t.csv:1:7: unknown column "s=T,press,temp"; there are node, asset, device, sensor, unit, deadband, trigger, expect_every, alarm_after`},
		"misspelt column":      {"node,aset\n", nil, `t.csv:1:6: unknown column "aset"; there are node, asset, device, sensor, unit, deadband, trigger, expect_every, alarm_after (did you mean "asset"?)`},
		"column twice":         {"node,unit,unit\n", nil, "t.csv:1:11: the column unit stands in the header twice"},
		"no column node":       {"asset,sensor\n", nil, "t.csv:1:1: no column node; the first line names the columns: node,asset,device,sensor,unit,deadband,trigger,expect_every,alarm_after"},
		"Latin 1":              {"node,asset\nnsu=u;s=T,\xfc\n", nil, `t.csv:2:1: not UTF-8 text; save the file as "CSV UTF-8"`},
		"open quote":           {"node\n\"nsu=u;s=T\nnsu=u;s=U\n", nil, `t.csv:3:11: not CSV: extraneous or missing " in quoted-field`},
		"one bad line": {"node,asset,sensor,unit,deadband,expect_every\nnsu=u;s=T,press,temp,Cel,0.5%,1s\nns=2;s=U,a,b,°C,\"0,5\",10\n", []configs.Tag{temp},
			"t.csv:3:1: a namespace goes by its URI: its index may be another one after the server's next start; write nsu=URI;… (`tidemark browse` shows it)\n" +
				`t.csv:3:14: "°C" is no UCUM unit (did you mean "Cel"?)` + "\n" + `t.csv:3:18: "0,5" is no deadband; write a number, or percent of the range such as 0.5% (did you mean "0.5"?)` + "\n" +
				"t.csv:3:24: 10 needs a unit: ns, us, ms, s, m, h or d"},
		"no node":          {"node,sensor\n,x\n", nil, "t.csv:2:1: no node"},
		"node id without":  {"node\nLine3.Temp\n", nil, "t.csv:2:1: this is no node id; write nsu=URI;s=NAME (or i=, g=, b= in place of s=), or a browse path such as /Objects/Line3"},
		"too many fields":  {"node,sensor\nnsu=u;s=T,x,y\n", nil, "t.csv:2:13: more fields than the header has columns (2); put quotes around a field with the separator in it"},
		"node twice":       {"node\ni=1\ni=2\ni=1\n", []configs.Tag{{Node: "i=1", Line: 2}, {Node: "i=2", Line: 3}}, "t.csv:4:1: this node stands in line 2 already"},
		"name twice":       {"node,asset,sensor\ni=1,a,s\ni=2,a,s\ni=3,b,s\n", []configs.Tag{{Node: "i=1", Asset: "a", Sensor: "s", Line: 2}, {Node: "i=3", Asset: "b", Sensor: "s", Line: 4}}, "t.csv:3:7: this asset and sensor stands in line 2 already"},
		"due, and unnamed": {"node,expect_every\ni=1,1s\n", nil, "t.csv:2:5: expect_every wants the sensor's name beside it"},
		"alarm, unnamed":   {"node,alarm_after\ni=1,1m\n", nil, "t.csv:2:5: alarm_after wants the sensor's name beside it"},
		"alarms too early": {"node,sensor,expect_every,alarm_after\ni=1,a,10s,5s\n", nil, "t.csv:2:11: 5s is below expect_every, 10s: a sensor that speaks as expected would be called silent"},
		"alarm":            {"node,sensor,alarm_after\ni=1,a,1m\n", []configs.Tag{{Node: "i=1", Sensor: "a", AlarmAfter: configs.Duration(time.Minute), Line: 2}}, ""},
		"out of range":     {"node,deadband,expect_every,sensor\ni=1,-1,1s,a\ni=2,101%,1s,b\ni=3,NaN,1ns,c\n", nil, "t.csv:2:5: -1 is out of range: 0 and above, percent up to 100\nt.csv:3:5: 101% is out of range: 0 and above, percent up to 100\nt.csv:4:5: NaN is out of range: 0 and above, percent up to 100\nt.csv:4:9: 1ns is out of range: 1ms to 366d"},
	} {
		tags, err := configs.ParseTags("t.csv", []byte(c.text))
		got := ""
		if err != nil {
			got = err.Error()
		}
		if d := cmp.Diff(c.tags, tags); d != "" || got != c.faults {
			t.Errorf("%s: %s\ngot faults:\n%s\nwant:\n%s", name, d, got, c.faults)
		}
	}
}

func TestCheckFilesReadsTagFiles(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "t.csv", "node,unit\ni=1,rpm\n")
	file := filepath.Join(dir, "c.yaml")
	c, err := configs.Parse(file, []byte(`inputs: [{name: a, opcua: {endpoint: "opc.tcp://h", nodes: [{tags: t.csv}]}}]`), "h")
	if err != nil {
		t.Fatal(err)
	}
	faults, _ := c.CheckFiles()
	want := filepath.Join(dir, "t.csv") + `:2:5: "rpm" is no UCUM unit (did you mean "{rpm}/min"?)`
	if !strings.Contains(faults.Error(), want) {
		t.Errorf("got %q, want %q among it", faults.Error(), want)
	}
}

func FuzzTagFile(f *testing.F) {
	f.Add("node,asset,sensor,unit,deadband,trigger,expect_every\nnsu=u;s=T,press,temp,Cel,0.5%,1s\n")
	f.Add("node;sensor\n\"nsu=u;s=T\";x\n")
	f.Add("\xef\xbb\xbf# c\nnode\n\"a\nb\"\n")
	f.Fuzz(func(t *testing.T, text string) {
		tags, err := configs.ParseTags("t.csv", []byte(text))
		var faults configs.Faults
		if err != nil && !errors.As(err, &faults) {
			t.Fatalf("%v", err)
		}
		for _, fault := range faults {
			if fault.Line < 1 || fault.Column < 1 || fault.Reason == "" {
				t.Fatalf("a fault without a place: %+v", fault)
			}
		}
		if err == nil && len(tags) == 0 && strings.Count(text, "\n") > 0 && !strings.Contains(text, "node") {
			t.Fatalf("neither tags nor faults of %q", text)
		}
		nodes := map[string]bool{}
		for _, tag := range tags {
			if tag.Node == "" || nodes[tag.Node] {
				t.Fatalf("%+v", tag)
			}
			nodes[tag.Node] = true
		}
	})
}
