package opcua

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/gopcua/opcua/ua"
	"pgregory.net/rapid"

	"tidemark/reading"
)

var arrival = reading.Instant{WallNS: 1767225600e9}

func taken(it *item, dv *ua.DataValue) reading.Parcel {
	var p reading.Parcel
	it.take(dv, arrival, 0, &p)
	return p
}

func valued(v any) *ua.DataValue {
	return &ua.DataValue{EncodingMask: ua.DataValueValue, Value: ua.MustVariant(v)}
}

func press() *item {
	return &item{place: "nsu=urn:plant;s=x", series: reading.Series{Input: "in", Asset: "press", Sensor: "x"}}
}

// asSent has the value of every scalar type as its reading shows it (SEMANTICS N3:
// integers exact to the last).
func TestScalarsAreExact(t *testing.T) {
	for name, c := range map[string]struct {
		sent any
		want reading.Value
	}{
		"Boolean":        {true, reading.BoolValue(true)},
		"SByte":          {int8(-128), reading.IntValue(-128)},
		"Byte":           {byte(255), reading.IntValue(255)},
		"Int16":          {int16(math.MinInt16), reading.IntValue(math.MinInt16)},
		"UInt16":         {uint16(math.MaxUint16), reading.IntValue(math.MaxUint16)},
		"Int32":          {int32(math.MinInt32), reading.IntValue(math.MinInt32)},
		"UInt32":         {uint32(math.MaxUint32), reading.IntValue(math.MaxUint32)},
		"Int64 lowest":   {int64(math.MinInt64), reading.IntValue(math.MinInt64)},
		"Int64 2^53+1":   {int64(1<<53 + 1), reading.IntValue(1<<53 + 1)},
		"UInt64 highest": {uint64(math.MaxUint64), reading.UintValue(math.MaxUint64)},
		"Float":          {float32(0.1), reading.FloatValue(float64(float32(0.1)))},
		"Double":         {0.1, reading.FloatValue(0.1)},
		"NaN":            {math.NaN(), reading.Value{}},
		"infinite":       {math.Inf(-1), reading.Value{}},
		"String":         {"grün", reading.TextValue("grün")},
		"DateTime":       {time.Date(2026, 1, 2, 3, 4, 5, 678900, time.UTC), reading.TextValue("2026-01-02T03:04:05.0006789Z")},
		"DateTime null":  {time.Time{}, reading.Value{}},
		"XmlElement":     {ua.XMLElement("<a/>"), reading.TextValue("<a/>")},
		"StatusCode":     {ua.StatusBadNoData, reading.IntValue(0x809B0000)},
		"LocalizedText":  {ua.NewLocalizedTextWithLocale("läuft", "de"), reading.TextValue("läuft")},
		"QualifiedName":  {&ua.QualifiedName{NamespaceIndex: 2, Name: "q"}, reading.TextValue("q")},
		"Guid":           {ua.NewGUID("72962B91-FA75-4AE6-8D28-B404DC7DAF63"), reading.TextValue("72962B91-FA75-4AE6-8D28-B404DC7DAF63")},
		"NodeId":         {ua.NewStringNodeID(1, "Line"), reading.TextValue("ns=1;s=Line")},
	} {
		p := taken(press(), valued(c.sent))
		if len(p.Readings) != 1 || len(p.Rejects) != 0 || p.Readings[0].Value != c.want {
			t.Errorf("%s: got %+v, want %+v", name, p, c.want)
			continue
		}
		bad := c.want.Kind() == reading.Missing
		if q := p.Readings[0].Quality.Level; (q == reading.Bad) != bad {
			t.Errorf("%s: quality %v", name, q)
		}
	}
}

func TestNoValueOfASensor(t *testing.T) {
	for name, c := range map[string]struct {
		sent   any
		reason string
	}{
		"ByteString":          {[]byte{1, 2}, "byte_string"},
		"long text":           {string(make([]byte, maxText+1)), "text_too_long"},
		"nested DataValue":    {[]*ua.DataValue{valued(1.0)}, "type_unsupported"},
		"foreign structure":   {&ua.ExtensionObject{EncodingMask: ua.ExtensionObjectBinary, TypeID: ua.NewFourByteExpandedNodeID(3, 77)}, "structure_unknown"},
		"structure as XML":    {&ua.ExtensionObject{EncodingMask: ua.ExtensionObjectXML, TypeID: ua.NewFourByteExpandedNodeID(3, 77), Value: new(ua.XMLElement)}, "structure_unknown"},
		"more than one reads": {make([]int32, maxElements+5), "too_many_elements"},
	} {
		p := taken(press(), valued(c.sent))
		if len(p.Rejects) != 1 || p.Rejects[0].Reason != c.reason || p.Rejects[0].Detail == "" || p.Rejects[0].IngestNS != arrival.WallNS {
			t.Errorf("%s: %+v, want one reject with reason %s", name, p.Rejects, c.reason)
		}
	}
}

func TestPartsAreNamed(t *testing.T) {
	f := func(sent any, want map[string]float64) {
		t.Helper()
		got := map[string]float64{}
		for _, r := range taken(press(), valued(sent)).Readings {
			got[r.Tag.Value().Sensor] = r.Value.Float()
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("%T: %s", sent, d)
		}
	}
	f([]float64{1, 2}, map[string]float64{"x[0]": 1, "x[1]": 2})
	f(ua.ByteArray{7, 8}, map[string]float64{"x[0]": 7, "x[1]": 8})
	f([][]int16{{1, 2}, {3, 4}}, map[string]float64{"x[0][0]": 1, "x[0][1]": 2, "x[1][0]": 3, "x[1][1]": 4})
	f([]*ua.Variant{ua.MustVariant(1.5), ua.MustVariant([]int32{4})}, map[string]float64{"x[0]": 1.5, "x[1][0]": 4})
	f(ua.NewExtensionObject(&ua.Range{Low: -1, High: 7}), map[string]float64{"x.Low": -1, "x.High": 7})
	f([]*ua.ExtensionObject{ua.NewExtensionObject(&ua.Range{High: 7})}, map[string]float64{"x[0].Low": 0, "x[0].High": 7})
}

// TestForeignStructure takes a structure of the server's own apart by what the
// server says of it: an optional field that is absent, an array, a structure in it.
func TestForeignStructure(t *testing.T) {
	inner := &structure{name: "inner", fields: []structField{{name: "low", scalar: ua.TypeIDInt16}, {name: "text", scalar: ua.TypeIDLocalizedText}}}
	outer := &structure{name: "outer", kind: ua.StructureTypeStructureWithOptionalFields, fields: []structField{
		{name: "count", scalar: ua.TypeIDUint64},
		{name: "absent", scalar: ua.TypeIDDouble, optional: true},
		{name: "there", scalar: ua.TypeIDFloat, optional: true},
		{name: "list", scalar: ua.TypeIDByte, array: true},
		{name: "in", nested: inner},
	}}
	buf := ua.NewBuffer(nil)
	buf.WriteUint32(2) // the second optional field only
	buf.WriteUint64(math.MaxUint64)
	buf.WriteFloat32(1.5)
	buf.WriteInt32(2)
	buf.Write([]byte{8, 9})
	buf.WriteInt16(-3)
	buf.WriteStruct(ua.NewLocalizedText("ok"))
	it := press()
	it.structures = map[string]*structure{"ns=3;i=77": outer}
	whole := &ua.ExtensionObject{EncodingMask: ua.ExtensionObjectBinary, TypeID: ua.NewFourByteExpandedNodeID(3, 77), Value: &rawStructure{buf.Bytes()}}
	got := map[string]reading.Value{}
	p := taken(it, valued(whole))
	for _, r := range p.Readings {
		got[r.Tag.Value().Sensor] = r.Value
	}
	want := map[string]reading.Value{
		"x.count": reading.UintValue(math.MaxUint64), "x.there": reading.FloatValue(1.5), "x.list[0]": reading.IntValue(8), "x.list[1]": reading.IntValue(9),
		"x.in.low": reading.IntValue(-3), "x.in.text": reading.TextValue("ok"),
	}
	if d := cmp.Diff(want, got, cmp.Comparer(func(a, b reading.Value) bool { return a == b })); d != "" || len(p.Rejects) > 0 {
		t.Errorf("%s\nrejects: %+v", d, p.Rejects)
	}
	for cut := range buf.Bytes() {
		whole.Value = &rawStructure{buf.Bytes()[:cut]}
		if p := taken(it, valued(whole)); len(p.Rejects) != 1 || p.Rejects[0].Reason != "structure_unknown" {
			t.Errorf("cut at %d: rejects %+v", cut, p.Rejects)
		}
	}
}

func TestUnion(t *testing.T) {
	it := press()
	it.structures = map[string]*structure{"ns=3;i=77": {name: "u", kind: ua.StructureTypeUnion, fields: []structField{{name: "a", scalar: ua.TypeIDDouble}, {name: "b", scalar: ua.TypeIDInt32}}}}
	f := func(body []byte, want int, rejects int) {
		t.Helper()
		p := taken(it, valued(&ua.ExtensionObject{EncodingMask: ua.ExtensionObjectBinary, TypeID: ua.NewFourByteExpandedNodeID(3, 77), Value: &rawStructure{body}}))
		if len(p.Readings) != want || len(p.Rejects) != rejects {
			t.Errorf("%v: %+v", body, p)
		}
	}
	f([]byte{2, 0, 0, 0, 5, 0, 0, 0}, 1, 0)
	f([]byte{0, 0, 0, 0}, 0, 0)
	f([]byte{3, 0, 0, 0}, 0, 1)
}

// TestTimesAndQuality has the DataValues of public reports: absent, null and
// impossible times, status bits beside the severity, a bad value that is stale.
func TestTimesAndQuality(t *testing.T) {
	at := time.Date(2026, 1, 1, 12, 0, 0, 100, time.UTC)
	null := reading.SourceTime{NS: reading.NoTime, Fault: reading.TimeNull}
	const value, status, source, server, sourcePico, serverPico = ua.DataValueValue, ua.DataValueStatusCode, ua.DataValueSourceTimestamp, ua.DataValueServerTimestamp, ua.DataValueSourcePicoseconds, ua.DataValueServerPicoseconds
	for name, c := range map[string]struct {
		dv       ua.DataValue
		source   reading.SourceTime
		serverNS int64
		level    reading.Level
		code     uint32
	}{
		"nothing at all":               {ua.DataValue{}, null, reading.NoTime, reading.Bad, 0},
		"no time":                      {ua.DataValue{EncodingMask: value}, null, reading.NoTime, reading.Good, 0},
		"1601":                         {ua.DataValue{EncodingMask: value | source | server}, null, reading.NoTime, reading.Good, 0},
		"fields that are not declared": {ua.DataValue{EncodingMask: value, SourceTimestamp: at, Status: ua.StatusBad}, null, reading.NoTime, reading.Good, 0},
		"both times":                   {ua.DataValue{EncodingMask: value | source | server, SourceTimestamp: at, ServerTimestamp: at}, reading.SourceTime{NS: at.UnixNano(), Zoned: true}, at.UnixNano(), reading.Good, 0},
		"picoseconds":                  {ua.DataValue{EncodingMask: value | source | sourcePico | server | serverPico, SourceTimestamp: at, SourcePicoseconds: 4200, ServerTimestamp: at, ServerPicoseconds: 199}, reading.SourceTime{NS: at.UnixNano() + 42, Zoned: true}, at.UnixNano() + 1, reading.Good, 0},
		"finer than a nanosecond":      {ua.DataValue{EncodingMask: value | source | sourcePico, SourceTimestamp: at, SourcePicoseconds: 4207}, reading.SourceTime{NS: at.UnixNano() + 42, Zoned: true, Raw: "2026-01-01T12:00:00.00000014207Z"}, reading.NoTime, reading.Good, 0},
		"picoseconds above their end":  {ua.DataValue{EncodingMask: value | source | sourcePico, SourceTimestamp: at, SourcePicoseconds: 60000}, reading.SourceTime{NS: at.UnixNano() + 99, Zoned: true, Raw: "2026-01-01T12:00:00.00000019999Z"}, reading.NoTime, reading.Good, 0},
		"overflow":                     {ua.DataValue{EncodingMask: value | status, Status: 0x480}, null, reading.NoTime, reading.Good, 0x480},
		"limit bits, no overflow":      {ua.DataValue{EncodingMask: value | status, Status: 0xC0}, null, reading.NoTime, reading.Good, 0xC0},
		"uncertain":                    {ua.DataValue{EncodingMask: value | status, Status: ua.StatusUncertainLastUsableValue}, null, reading.NoTime, reading.Uncertain, 0x40900000},
		"bad and stale":                {ua.DataValue{EncodingMask: value | status | source, Status: ua.StatusBadSensorFailure, SourceTimestamp: at}, reading.SourceTime{NS: at.UnixNano(), Zoned: true}, reading.NoTime, reading.Bad, 0x808C0000},
		"severity 3":                   {ua.DataValue{EncodingMask: value | status, Status: 0xC0000000}, null, reading.NoTime, reading.Bad, 0xC0000000},
		"good, no value":               {ua.DataValue{EncodingMask: status | source, SourceTimestamp: at}, reading.SourceTime{NS: at.UnixNano(), Zoned: true}, reading.NoTime, reading.Bad, 0},
		"the end of time":              {ua.DataValue{EncodingMask: value | source, SourceTimestamp: ticks(2650467743990000000)}, reading.SourceTime{NS: reading.NoTime, Fault: reading.TimeRange, Raw: "9999-12-31T23:59:59Z"}, reading.NoTime, reading.Good, 0},
		"the largest tick":             {ua.DataValue{EncodingMask: value | source, SourceTimestamp: ticks(math.MaxInt64)}, reading.SourceTime{NS: reading.NoTime, Fault: reading.TimeRange, Raw: "9999-12-31T23:59:59Z"}, reading.NoTime, reading.Good, 0},
	} {
		c.dv.Value = ua.MustVariant(1.5)
		p := taken(press(), &c.dv)
		if len(p.Readings) != 1 {
			t.Errorf("%s: %+v", name, p)
			continue
		}
		r := p.Readings[0]
		if r.Source != c.source || r.ServerNS != c.serverNS || r.Quality != (reading.Quality{Level: c.level, Status: c.code}) {
			t.Errorf("%s: got %+v server %d quality %+v", name, r.Source, r.ServerNS, r.Quality)
		}
	}
}

// ticks is how the library reads a DateTime off the wire.
func ticks(n uint64) time.Time {
	buf := ua.NewBuffer(nil)
	buf.WriteUint64(n)
	return ua.NewBuffer(buf.Bytes()).ReadTime()
}

// A node that has spoken in parts says of each of them that it is gone.
func TestAbsentValueReachesEveryPart(t *testing.T) {
	it := press()
	taken(it, valued([]float64{1, 2}))
	p := taken(it, &ua.DataValue{EncodingMask: ua.DataValueStatusCode, Status: ua.StatusBadNotConnected})
	if len(p.Readings) != 2 || p.Readings[1].Tag.Value().Sensor != "x[1]" || p.Readings[1].Quality.Level != reading.Bad || p.Readings[1].Value != (reading.Value{}) {
		t.Errorf("%+v", p.Readings)
	}
}

func TestLifecycleBySourceTime(t *testing.T) {
	it := press()
	it.lifecycles = []reading.Lifecycle{{ID: "SN-1", FromNS: 100e9}, {ID: "SN-2", FromNS: 200e9}}
	f := func(sec int64, want string) {
		t.Helper()
		dv := valued(1.0)
		dv.EncodingMask |= ua.DataValueSourceTimestamp
		dv.SourceTimestamp = time.Unix(sec, 0)
		if got := taken(it, dv).Readings[0].Tag.Value().Lifecycle; got != want {
			t.Errorf("at %d s: %q, want %q", sec, got, want)
		}
	}
	f(99, "")
	f(100, "SN-1")
	f(199, "SN-1")
	f(200, "SN-2")
}

// TestEveryVariantIsReadOrRefused: whatever a variant holds, and however it came
// over the wire, each part of it becomes a reading with that exact value or a
// reject with a reason.
func TestEveryVariantIsReadOrRefused(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := anyVariant(t)
		wire, err := v.Encode()
		if err != nil {
			t.Skip(err)
		}
		back := new(ua.Variant)
		if _, err := back.Decode(wire); err != nil {
			t.Fatalf("%v: %v", v.Value(), err)
		}
		sent, came := taken(press(), &ua.DataValue{EncodingMask: ua.DataValueValue, Value: v}), taken(press(), &ua.DataValue{EncodingMask: ua.DataValueValue, Value: back})
		if len(sent.Readings)+len(sent.Rejects) == 0 && v.ArrayLength() != 0 {
			t.Fatalf("%v became nothing", v.Value())
		}
		if len(sent.Readings) != len(came.Readings) || len(sent.Rejects) != len(came.Rejects) {
			t.Fatalf("%v: %d and %d readings", v.Value(), len(sent.Readings), len(came.Readings))
		}
		for i := range sent.Readings {
			if a, b := sent.Readings[i], came.Readings[i]; a.Value != b.Value || a.Tag != b.Tag {
				t.Fatalf("%+v came back as %+v", a, b)
			}
		}
		for _, r := range came.Rejects {
			if r.Reason == "" || r.Detail == "" || r.Place == "" {
				t.Fatalf("reject without a reason: %+v", r)
			}
		}
	})
}

func anyVariant(t *rapid.T) *ua.Variant {
	scalars := map[string]func() any{
		"bool": func() any { return rapid.Bool().Draw(t, "v") }, "int8": func() any { return rapid.Int8().Draw(t, "v") },
		"byte": func() any { return rapid.Byte().Draw(t, "v") }, "int16": func() any { return rapid.Int16().Draw(t, "v") },
		"uint16": func() any { return rapid.Uint16().Draw(t, "v") }, "int32": func() any { return rapid.Int32().Draw(t, "v") },
		"uint32": func() any { return rapid.Uint32().Draw(t, "v") }, "int64": func() any { return rapid.Int64().Draw(t, "v") },
		"uint64": func() any { return rapid.Uint64().Draw(t, "v") }, "float32": func() any { return rapid.Float32().Draw(t, "v") },
		"float64": func() any { return rapid.Float64().Draw(t, "v") }, "string": func() any { return rapid.String().Draw(t, "v") },
		"bytes":   func() any { return rapid.SliceOf(rapid.Byte()).Draw(t, "v") },
		"text":    func() any { return ua.NewLocalizedText(rapid.String().Draw(t, "v")) },
		"time":    func() any { return time.Unix(0, rapid.Int64Range(-9e18, 9e18).Draw(t, "v")/100*100).UTC() },
		"status":  func() any { return ua.StatusCode(rapid.Uint32().Draw(t, "v")) },
		"ints":    func() any { return rapid.SliceOfN(rapid.Int64(), 0, 5).Draw(t, "v") },
		"bools":   func() any { return rapid.SliceOfN(rapid.Bool(), 0, 5).Draw(t, "v") },
		"strings": func() any { return rapid.SliceOfN(rapid.String(), 0, 5).Draw(t, "v") },
		"matrix":  func() any { return [][]float64{{rapid.Float64().Draw(t, "v"), 1}, {2, 3}} },
		"range":   func() any { return ua.NewExtensionObject(&ua.Range{Low: rapid.Float64().Draw(t, "v")}) },
		"node":    func() any { return ua.NewNumericNodeID(rapid.Uint16().Draw(t, "ns"), rapid.Uint32().Draw(t, "v")) },
	}
	names := make([]string, 0, len(scalars))
	for n := range scalars {
		names = append(names, n)
	}
	return ua.MustVariant(scalars[rapid.SampledFrom(sorted(names)).Draw(t, "type")]())
}
