package opcua

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/gopcua/opcua/id"
	"github.com/gopcua/opcua/ua"

	"tidemark/reading"
)

// plantSpace has two presses with three tags each, a folder of the system's and
// hints.
func plantSpace() *space {
	s := newSpace()
	for _, asset := range []string{"press-1", "press-2"} {
		for _, tag := range []string{"temperature", "pressure", "speed"} {
			s.variable("Line3/"+asset+"/"+tag, id.Double)
		}
		s.variable("Line3/"+asset+"/_Hints/maximum", id.Double)
	}
	s.variable("Line3/_System/errors", id.UInt32)
	return s
}

// resolved returns the names of what a resolve finds, with their places, and what
// it reports, with the beginning of the sentence.
func resolved(t *testing.T, k *resolver, c caller) (names map[string]string, problems []problem) {
	t.Helper()
	items, problems, err := k.resolve(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	names = map[string]string{}
	for _, it := range items {
		if it.series.Input != "in" {
			t.Errorf("%s is of input %q", it.place, it.series.Input)
		}
		names[label(it.series)] = it.place
	}
	if len(names) != len(items) {
		t.Errorf("%d items have %d names", len(items), len(names))
	}
	return names, problems
}

func rules(rules ...Nodes) *resolver { return newResolver(Config{Input: "in", Nodes: rules}) }

var lineRule = Nodes{Under: "nsu=urn:plant;s=Line3", Match: "{asset}/{sensor}", Exclude: []string{"_System/**", "*/_Hints/**"}}

func place(path string) string { return "nsu=urn:plant;s=Line3/" + path }

var wholeLine = map[string]string{
	"press-1/temperature": place("press-1/temperature"), "press-1/pressure": place("press-1/pressure"), "press-1/speed": place("press-1/speed"),
	"press-2/temperature": place("press-2/temperature"), "press-2/pressure": place("press-2/pressure"), "press-2/speed": place("press-2/speed"),
}

// A server may be narrow in any way: the nodes are the same.
func TestNarrowServers(t *testing.T) {
	for name, narrow := range map[string]func(*space){
		"no limits":                    func(*space) {},
		"one operation at a time":      func(s *space) { s.most = 1 },
		"two, and does not say so":     func(s *space) { s.secret = 2 },
		"pages of one":                 func(s *space) { s.page = 1 },
		"pages of one, one open":       func(s *space) { s.page, s.points = 1, 1 },
		"pages of two, two open":       func(s *space) { s.page, s.points = 2, 2 },
		"all of it":                    func(s *space) { s.most, s.page, s.points = 2, 1, 1 },
		"namespaces in another order":  func(s *space) { s.uris = append(s.uris, "urn:other") },
		"a folder that leads to above": func(s *space) { s.folder("Line3/press-1").refer(s.folder("Line3"), id.Organizes) },
		"a child that is there twice":  func(s *space) { s.folder("Line3").refer(s.folder("Line3/press-1"), id.HasComponent) },
	} {
		s := plantSpace()
		narrow(s)
		names, problems := resolved(t, rules(lineRule), s)
		if d := cmp.Diff(wholeLine, names); d != "" || len(problems) > 0 {
			t.Errorf("%s: %+v %s", name, problems, d)
		}
	}
}

// A server that has no continuation points at all says so for the node, and the
// others are read.
func TestNoContinuationPoints(t *testing.T) {
	s := plantSpace()
	s.page, s.points = 2, 1
	s.open["held by somebody else"] = nil
	names, problems := resolved(t, rules(Nodes{Under: "nsu=urn:plant;s=Line3/press-1", Match: "{sensor}"}), s)
	if len(names) != 0 || len(problems) != 1 || !strings.Contains(problems[0].detail, "continuation points") {
		t.Errorf("%v %+v", names, problems)
	}
}

// A folder that cannot be looked into, or not to its end, is told, and what is known is
// read.
func TestWhatCannotBeLookedIntoIsTold(t *testing.T) {
	for name, spoil := range map[string]func(*space){
		"a folder without end":      func(s *space) { s.endless = "ns=2;s=Line3/attic" },
		"a folder that is closed":   func(s *space) { s.closed = "ns=2;s=Line3/attic" },
		"the beginning without end": func(s *space) { s.endless = "ns=2;s=Line3" },
	} {
		s := plantSpace()
		s.folder("Line3/attic")
		spoil(s)
		names, problems := resolved(t, rules(lineRule), s)
		if d := cmp.Diff(wholeLine, names); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		if len(problems) != 1 || !problems[0].served || !strings.Contains(problems[0].detail, " is not known, or not all of it: ") {
			t.Errorf("%s: %+v", name, problems)
		}
	}
}

// TestOneBadNodeNeverStopsTheOthers has a tag file in which every second line is
// wrong in a way of its own.
func TestOneBadNodeNeverStopsTheOthers(t *testing.T) {
	s := plantSpace()
	s.variable("Line3/blob", id.ByteString)
	s.variable("twins/a", id.Double)
	s.folder("twins").refer(s.add(nil, ua.NewStringNodeID(2, "other a"), "a", ua.NodeClassVariable), id.Organizes)
	tags := []Tag{{Node: place("press-1/temperature"), Asset: "p", Sensor: "t", Unit: "Cel", Line: "f:2"}, {Node: "/Objects/Line3/press-1/speed", Line: "f:3"}}
	want := map[string]string{"p/t": place("press-1/temperature"), "speed": place("press-1/speed")}
	faulty := []struct{ node, says string }{
		{"nsu=urn:plant;s=nowhere", "no such node"},
		{"nsu=urn:nobody;s=x", "no namespace"},
		{"ns=2;s=Line3/press-1/pressure", "by index"},
		{"press-1", "no node id"},
		{"nsu=urn:plant;x=1", "no node id"},
		{"/Objects/Line3/press-9/speed", "there is no"},
		{"/Objects//speed", "empty level"},
		{"/Objects/twins/a", "several nodes"},
		{"nsu=urn:plant;s=Line3/press-1", "no variable"},
		{"nsu=urn:plant;s=Line3/blob", "ByteString"},
	}
	for i, f := range faulty {
		tags = append(tags, Tag{Node: f.node, Sensor: fmt.Sprint("s", i), Line: fmt.Sprint("f:", i+4)})
	}
	names, problems := resolved(t, rules(Nodes{Tags: tags}, Nodes{Under: "/Objects/Line9", Match: "{sensor}"}), s)
	if d := cmp.Diff(want, names); d != "" {
		t.Error(d)
	}
	for _, f := range append(faulty, struct{ node, says string }{"/Objects/Line9", "there is no"}) {
		if !slices.ContainsFunc(problems, func(p problem) bool { return p.place == f.node && strings.Contains(p.detail, f.says) && !p.served }) {
			t.Errorf("%s: want a problem that says %q, got %+v", f.node, f.says, problems)
		}
	}
	if len(problems) != len(faulty)+1 {
		t.Errorf("%d problems, want %d", len(problems), len(faulty)+1)
	}
}

func TestTwoNodesWithOneNameAreRefused(t *testing.T) {
	s := plantSpace()
	both := rules(Nodes{Under: "nsu=urn:plant;s=Line3", Match: "*/{sensor}", Exclude: []string{"_System/**"}})
	names, problems := resolved(t, both, s)
	if len(names) != 0 || len(problems) != 6 {
		t.Errorf("%v %+v", names, problems)
	}
	// A device is no part of a feature's key: it does not tell them apart.
	names, problems = resolved(t, rules(Nodes{Under: "nsu=urn:plant;s=Line3", Match: "{device}/{sensor}", Exclude: []string{"_System/**"}}), s)
	if len(names) != 0 || len(problems) != 6 {
		t.Errorf("%v %+v", names, problems)
	}
	// A node that a first rule names is not another one for the second.
	names, problems = resolved(t, rules(Nodes{Tags: []Tag{{Node: place("press-1/speed"), Sensor: "v"}}}, lineRule), s)
	if len(names) != 6 || names["v"] == "" || len(problems) != 0 {
		t.Errorf("%v %+v", names, problems)
	}
}

// One that is read keeps its name when another one with that name appears.
func TestTheOneThatIsReadKeepsItsName(t *testing.T) {
	s := plantSpace()
	k := rules(Nodes{Under: "/Objects/Line3", Match: "press-*/**/{sensor}", AddNew: true, Exclude: []string{"press-2/**", "*/_Hints/**"}})
	if names, problems := resolved(t, k, s); len(names) != 3 || len(problems) != 0 {
		t.Fatalf("%v %+v", names, problems)
	}
	s.variable("Line3/press-1/second/speed", id.Double)
	names, problems := resolved(t, k, s)
	if names["speed"] != place("press-1/speed") || len(names) != 3 || !slices.ContainsFunc(problems, func(p problem) bool { return p.place == place("press-1/second/speed") && !p.served }) {
		t.Errorf("%v %+v", names, problems)
	}
}

func TestNewNodesAreReportedOrAdded(t *testing.T) {
	for _, add := range []bool{false, true} {
		s := plantSpace()
		rule := lineRule
		rule.AddNew = add
		var list []byte
		start := func() *resolver {
			return newResolver(Config{Input: "in", Nodes: []Nodes{rule}, KnownTags: list, KeepTags: func(data []byte) { list = data }})
		}
		resolved(t, start(), s)
		first := string(list)
		resolved(t, start(), s)
		if string(list) != first || first == "" {
			t.Errorf("add %v: the list changed from %s to %s", add, first, list)
		}
		s.variable("Line3/press-3/speed", id.Double)
		names, problems := resolved(t, start(), s)
		if _, read := names["press-3/speed"]; read != add || len(problems) != 1 || problems[0].served != add || problems[0].place != place("press-3/speed") {
			t.Errorf("add %v: read %v, %+v", add, read, problems)
		}
		// After a restart: known if added, still new if not.
		names, problems = resolved(t, start(), s)
		if _, read := names["press-3/speed"]; read != add || (len(problems) == 0) != add {
			t.Errorf("add %v, again: read %v, %+v", add, read, problems)
		}
		// A changed rule begins anew.
		rule.Exclude = []string{"_System/**", "*/_Hints/**", "press-2/**"}
		if names, problems = resolved(t, start(), s); len(names) != 4 || len(problems) != 0 {
			t.Errorf("add %v, other rule: %v %+v", add, names, problems)
		}
	}
}

func TestNodesThatGoAreReported(t *testing.T) {
	s := plantSpace()
	k := rules(lineRule)
	resolved(t, k, s)
	press := s.folder("Line3/press-1")
	press.below = press.below[1:]
	names, problems := resolved(t, k, s)
	if len(names) != 5 || len(problems) != 1 || problems[0].place != place("press-1/temperature") || problems[0].served {
		t.Errorf("%v %+v", names, problems)
	}
	// All of it is gone: one sentence, and the list stays.
	delete(s.nodes, "ns=2;s=Line3")
	if names, problems = resolved(t, k, s); len(names) != 0 || len(problems) != 1 {
		t.Errorf("%v %+v", names, problems)
	}
	s = plantSpace()
	if names, problems = resolved(t, k, s); len(names) != 6 || len(problems) != 0 {
		t.Errorf("%v %+v", names, problems)
	}
}

// After a restart the server's namespaces may have changed places (a report against
// gateways that keep the index).
func TestSwappedNamespaces(t *testing.T) {
	s := plantSpace()
	k := rules(lineRule)
	items, _, err := k.resolve(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	before := items[0]
	s.uris = []string{s.uris[0], "urn:plant", "urn:server"}
	swapped := map[string]*spaceNode{}
	for _, n := range s.nodes {
		if n.id.Namespace() == 2 {
			if err := n.id.SetNamespace(1); err != nil { // the references share it
				t.Fatal(err)
			}
		}
		swapped[n.id.String()] = n
	}
	s.nodes = swapped
	items, problems, err := k.resolve(t.Context(), s)
	if err != nil || len(items) != 6 || len(problems) != 0 {
		t.Fatalf("%d items, %+v, %v", len(items), problems, err)
	}
	if items[0].place != before.place || items[0].node.Namespace() != 1 {
		t.Errorf("%s at %v, was %s at %v", items[0].place, items[0].node, before.place, before.node)
	}
}

func TestUnitsAndRanges(t *testing.T) {
	s := newSpace()
	celsius := &ua.EUInformation{NamespaceURI: unece, UnitID: 4408652, DisplayName: ua.NewLocalizedText("°C")}
	for _, n := range []string{"range", "bare", "each"} {
		s.property(s.variable("u/"+n, id.Double), "EngineeringUnits", celsius)
	}
	s.property(s.at("ns=2;s=u/range"), "EURange", &ua.Range{High: 100})
	s.property(s.at("ns=2;s=u/each"), "EURange", &ua.Range{High: 100})
	s.property(s.variable("u/odd", id.Double), "EngineeringUnits", &ua.EUInformation{NamespaceURI: "urn:vendor", UnitID: 7, DisplayName: ua.NewLocalizedText("furlong")})
	s.variable("u/none", id.Double)
	half := Deadband{Percent: 0.5}
	k := rules(
		Nodes{Tags: []Tag{
			{Node: "nsu=urn:plant;s=u/bare", Sensor: "bare", Unit: "K", Line: "f.csv:2"},
			{Node: "nsu=urn:plant;s=u/each", Sensor: "each", Deadband: &Deadband{}, Line: "f.csv:3"}, // its own goes before, a 0 too
		}, Deadband: half},
		Nodes{Under: "/Objects/u", Match: "**/{sensor}", Deadband: half}, // properties are no sensors
	)
	items, problems, err := k.resolve(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, it := range items {
		got[it.series.Sensor] = fmt.Sprintf("%s %v", it.unit, it.deadband.Percent)
	}
	if d := cmp.Diff(map[string]string{"range": "Cel 0.5", "each": "Cel 0", "bare": "K 0", "odd": " 0", "none": " 0"}, got); d != "" {
		t.Error(d)
	}
	for _, says := range []string{"the configuration says K and the server Cel", `"furlong"`, "3 nodes have a deadband in percent"} {
		if !slices.ContainsFunc(problems, func(p problem) bool { return p.served && strings.Contains(p.detail, says) }) {
			t.Errorf("nothing says %q: %+v", says, problems)
		}
	}
}

func TestAliasesLifecyclesHistory(t *testing.T) {
	s := plantSpace()
	s.at("ns=2;s=Line3/press-1/speed").attributes[ua.AttributeIDUserAccessLevel] = valued(byte(1 | canReadHistory))
	lives := []reading.Lifecycle{{ID: "SN-1", FromNS: reading.NoTime}}
	k := newResolver(Config{Input: "in", Nodes: []Nodes{lineRule}, Assets: map[string]reading.Asset{"press-1": {Lifecycles: lives, Aliases: map[string]string{"speed": "velocity"}}}})
	items, _, err := k.resolve(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	for _, it := range items {
		first := it.series.Asset == "press-1"
		if (len(it.lifecycles) == 1) != first || it.history != (first && it.series.Sensor == "velocity") || it.series.Sensor == "speed" && first {
			t.Errorf("%+v history %v lifecycles %v", it.series, it.history, it.lifecycles)
		}
	}
}

// TestServersOwnTypes: a structure with an enumeration, a subtype of Double and a
// structure in it, as the server describes them.
func TestServersOwnTypes(t *testing.T) {
	s := newSpace()
	kind := func(n uint32, definition any, parent *ua.NodeID) *ua.NodeID {
		node := s.add(nil, ua.NewNumericNodeID(2, n), fmt.Sprint("type", n), ua.NodeClassDataType)
		node.parent = parent
		if definition != nil {
			node.attributes[ua.AttributeIDDataTypeDefinition] = valued(ua.NewExtensionObject(definition))
		}
		return node.id
	}
	state := kind(1, &ua.EnumDefinition{}, nil)
	length := kind(2, nil, kind(3, nil, ua.NewNumericNodeID(0, id.Double)))
	blob := kind(4, nil, ua.NewNumericNodeID(0, id.ByteString))
	inner := kind(5, &ua.StructureDefinition{DefaultEncodingID: ua.NewNumericNodeID(2, 105), Fields: []*ua.StructureField{
		{Name: "length", DataType: length, ValueRank: -1}, {Name: "any", DataType: ua.NewNumericNodeID(0, id.BaseDataType), ValueRank: -1},
	}}, nil)
	outer := kind(6, &ua.StructureDefinition{DefaultEncodingID: ua.NewNumericNodeID(2, 106), Fields: []*ua.StructureField{
		{Name: "state", DataType: state, ValueRank: -1}, {Name: "parts", DataType: inner, ValueRank: 1},
	}}, nil)
	own := kind(7, &ua.StructureDefinition{DefaultEncodingID: ua.NewNumericNodeID(2, 107), Fields: []*ua.StructureField{{Name: "self", DataType: ua.NewNumericNodeID(2, 7), ValueRank: 1}}}, nil)
	s.variable("t/structure", id.Double).typed(outer)
	s.variable("t/length", id.Double).typed(length)
	s.variable("t/blob", id.Double).typed(blob)
	s.variable("t/own", id.Double).typed(own)
	items, problems, err := rules(Nodes{Under: "/Objects/t", Match: "{sensor}"}).resolve(t.Context(), s)
	if err != nil || len(items) != 3 || len(problems) != 1 || !strings.Contains(problems[0].detail, "ByteString") {
		t.Fatalf("%d items, %+v, %v", len(items), problems, err)
	}
	it := &items[slices.IndexFunc(items, func(it item) bool { return it.series.Sensor == "structure" })]

	body := ua.NewBuffer(nil)
	body.WriteInt32(3)
	body.WriteInt32(1)
	body.WriteFloat64(1.5)
	body.WriteStruct(ua.MustVariant(uint16(9)))
	wire := ua.NewBuffer(nil)
	wire.WriteStruct(&ua.ExpandedNodeID{NodeID: ua.NewNumericNodeID(2, 106)})
	wire.WriteByte(ua.ExtensionObjectBinary)
	wire.WriteByteString(body.Bytes())
	sent := new(ua.ExtensionObject)
	if _, err := sent.Decode(wire.Bytes()); err != nil { // as it comes through the library
		t.Fatal(err)
	}
	got := map[string]float64{}
	p := taken(it, valued(sent))
	for _, r := range p.Readings {
		got[r.Tag.Value().Sensor] = r.Value.Float()
	}
	if d := cmp.Diff(map[string]float64{"structure.state": 3, "structure.parts[0].length": 1.5, "structure.parts[0].any": 9}, got); d != "" {
		t.Errorf("%s %+v", d, p.Rejects)
	}
}

func TestLostConnectionIsNoProblemOfANode(t *testing.T) {
	gone := errors.New("connection reset")
	for after := range 9 {
		s := plantSpace()
		_, _, err := rules(lineRule).resolve(t.Context(), &breaking{s, after, gone})
		if !errors.Is(err, gone) {
			t.Errorf("after %d calls: %v", after, err)
		}
	}
}

func TestFiveThousandNodesTakeFewCalls(t *testing.T) {
	s := newSpace()
	for i := range 5000 {
		s.property(s.variable(fmt.Sprintf("Line/a%d/s%d", i/100, i%100), id.Double), "EURange", &ua.Range{High: 1})
	}
	items, problems, err := rules(Nodes{Under: "/Objects/Line", Match: "{asset}/{sensor}", Deadband: Deadband{Percent: 1}}).resolve(t.Context(), s)
	if err != nil || len(items) != 5000 || len(problems) != 0 {
		t.Fatalf("%d items, %+v, %v", len(items), problems, err)
	}
	total := 0
	for _, n := range s.calls {
		total += n
	}
	if total > 35 {
		t.Errorf("%v: want no more than 35 calls", s.calls)
	}
}
