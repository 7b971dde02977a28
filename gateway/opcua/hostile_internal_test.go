package opcua

import (
	"bytes"
	"encoding/binary"
	"reflect"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/gopcua/opcua/id"
	"github.com/gopcua/opcua/ua"

	"tidemark/internal/uaserver"
)

// poisons are notifications that the library's codec cannot be given.
func poisons() map[string][]byte {
	// One value of the handle 0: a DataValue with a value only.
	value := func(variant ...byte) []byte {
		return slices.Concat([]byte{1, 0, 0, 0, 0, 0, 0, 0, ua.DataValueValue}, variant, []byte{0xff, 0xff, 0xff, 0xff})
	}
	number := func(n int32) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(n)) }
	const array = ua.VariantArrayValues
	int32s := byte(ua.TypeIDInt32) | array
	return map[string][]byte{
		"a negative length":      value(append([]byte{int32s}, number(-5)...)...),
		"a length of the most":   value(append([]byte{int32s}, number(1<<31-1)...)...),
		"dimensions of the most": value(slices.Concat([]byte{int32s | ua.VariantArrayDimensions}, number(1), number(7), number(1<<31-1))...),
		// 641 · 6700417 = 2^32 + 1, and 65536 · 65536 = 2^32: as the library counts, 1 and 0.
		"dimensions of one":      value(slices.Concat([]byte{int32s | ua.VariantArrayDimensions}, number(1), number(7), number(2), number(641), number(6700417))...),
		"dimensions of none":     value(slices.Concat([]byte{int32s | ua.VariantArrayDimensions}, number(0), number(3), number(1<<16), number(1<<16), number(1))...),
		"variants in variants":   value(bytes.Repeat([]byte{byte(ua.TypeIDVariant)}, 1<<20)...),
		"arrays in arrays":       value(bytes.Repeat(append([]byte{byte(ua.TypeIDVariant) | array}, number(1)...), 1<<17)...),
		"a diagnosis of another": value(append([]byte{byte(ua.TypeIDDiagnosticInfo)}, bytes.Repeat([]byte{ua.DiagnosticInfoInnerDiagnosticInfo}, 1<<20)...)...),
		"an unknown type":        value(0x3f),
		"cut short":              {1, 0, 0, 0, 0, 0},
		"too many items":         {0xff, 0xff, 0xff, 0x7f},
	}
}

// poisoned is a notification message with body for the data of its notification.
func poisoned(body []byte) *ua.ExtensionObject {
	return &ua.ExtensionObject{
		TypeID: ua.NewFourByteExpandedNodeID(0, id.DataChangeNotification_Encoding_DefaultBinary), EncodingMask: ua.ExtensionObjectBinary,
		Value: &rawStructure{body},
	}
}

// A server that sends what would end the process, or fill its memory, costs a message of
// its own: told, counted and missing. What it says before and after is read, and so is
// every other server.
func TestAHostileServerCostsItsOwnMessages(t *testing.T) {
	other, theirs := newPeer(t), &gateway{}
	other.space.variable("a", id.Double)
	r, _ := run(t, other, theirs, nil, "a")
	connected(t, r)
	defer debug.SetMaxStack(debug.SetMaxStack(16 << 20))
	t.Run("servers", func(t *testing.T) {
		for name, body := range poisons() {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				sendsPoison(t, body)
			})
		}
	})
	other.say(at(1, second(1)), "a")
	got(t, theirs, "a", "(1)")
}

func sendsPoison(t *testing.T, body []byte) {
	p, g := newPeer(t), &gateway{}
	p.space.variable("a", id.Double)
	r, _ := run(t, p, g, nil, "a")
	connected(t, r)
	p.say(at(0, second(0)), "a")
	got(t, g, "a", "(0)")
	p.patient()
	p.do(func() {
		for _, sub := range p.subs {
			p.publishMessage(sub, poisoned(body))
		}
	})
	p.say(at(1, second(1)), "a")
	got(t, g, "a", "(0)", "1")
	until(t, "the message is told and missing", func() bool {
		return slices.Contains(g.rejected(), "undecodable") && slices.Contains(g.reasons(), "message_lost")
	})
	if s := r.Status(); s.State != Connected || p.count("CreateSession") != 1 {
		t.Errorf("%+v", s)
	}
}

// The fields of a structure that only the server knows are decoded later, and are no
// way around.
func TestAHostileStructureIsRefused(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(16 << 20))
	s := &structure{name: "s", fields: []structField{{name: "any", scalar: ua.TypeIDVariant}}}
	for name, body := range map[string][]byte{
		"a negative length":    {byte(ua.TypeIDInt32) | ua.VariantArrayValues, 0xfb, 0xff, 0xff, 0xff},
		"variants in variants": bytes.Repeat([]byte{byte(ua.TypeIDVariant)}, 1<<20),
	} {
		if err := s.walk(body, func(string, any, int) {}, 0); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

// What the server says of types is forgotten with the message.
func TestNamesOfTypesTakeNoRoom(t *testing.T) {
	name := ua.NewExpandedNodeID(ua.NewNumericNodeID(0, id.Range_Encoding_DefaultBinary), strings.Repeat("u", 1<<20), 0)
	b, err := name.Encode()
	if err != nil || structureType(b) != reflect.TypeFor[*ua.Range]() {
		t.Fatal(err)
	}
	allocated := func() (m runtime.MemStats) {
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m
	}
	before := allocated()
	for i := range 50 {
		b[len(b)-1-i] = 'v'
		structureType(b)
	}
	if after := allocated(); after.HeapAlloc > before.HeapAlloc+10<<20 {
		t.Errorf("%d MB more", (after.HeapAlloc-before.HeapAlloc)>>20)
	}
}

// FuzzDecode: whatever a server sends, it is an answer or an error. The library's codec
// is given nothing that scan has not gone through.
func FuzzDecode(f *testing.F) {
	seed := func(resp ua.Response) {
		resp.SetHeader(uaserver.Header(epoch, 1, ua.StatusOK))
		b, err := ua.NewFourByteExpandedNodeID(0, ua.ServiceTypeID(resp)).Encode()
		if err != nil {
			f.Fatal(err)
		}
		body, err := ua.Encode(resp)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(append(b, body...))
	}
	notified := func(data ...*ua.ExtensionObject) *ua.PublishResponse {
		return &ua.PublishResponse{NotificationMessage: &ua.NotificationMessage{SequenceNumber: 1, NotificationData: data}}
	}
	seed(notified(ua.NewExtensionObject(&ua.DataChangeNotification{MonitoredItems: []*ua.MonitoredItemNotification{
		{ClientHandle: 0, Value: at(1, second(1))}, {ClientHandle: 1, Value: valued([]int32{1, 2, 3})}, {ClientHandle: 1, Value: valued([][]string{{"a"}, {"b"}})},
		{ClientHandle: 2, Value: valued(ua.NewExtensionObject(&ua.Range{High: 1}))},
	}})))
	seed(notified(ua.NewExtensionObject(&ua.StatusChangeNotification{Status: ua.StatusBadTimeout, DiagnosticInfo: &ua.DiagnosticInfo{}})))
	for _, body := range poisons() {
		seed(notified(poisoned(body[:min(len(body), 200)])))
	}
	seed(&ua.BrowseResponse{Results: []*ua.BrowseResult{{ContinuationPoint: []byte{1}, References: newSpace().at("i=84").below}}})
	seed(&ua.HistoryReadResponse{Results: []*ua.HistoryReadResult{{HistoryData: ua.NewExtensionObject(&ua.HistoryData{DataValues: []*ua.DataValue{archived(1)}})}}})
	seed(&ua.ServiceFault{})
	f.Fuzz(func(t *testing.T, b []byte) {
		resp, err := decodeScanned(b)
		if (resp == nil) == (err == nil) {
			t.Fatalf("%v, %v", resp, err)
		}
		publish, ok := resp.(*ua.PublishResponse)
		if !ok {
			return
		}
		// What was decoded is delivered without a panic too.
		g := &gateway{}
		r := &Reader{clk: host{}, sink: g, byID: map[uint32]*subscription{}}
		for range 3 {
			r.plan = append(r.plan, &monitored{item: *press()})
		}
		r.subs, r.per = []*subscription{{id: 1}}, perSubscription
		m := &message{seq: 1, data: publish.NotificationMessage.NotificationData}
		if err := r.deliver(t.Context(), r.subs[0], m); err != nil {
			t.Fatal(err)
		}
	})
}
