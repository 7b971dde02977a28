package opcua

import (
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/gopcua/opcua/id"
	"github.com/gopcua/opcua/ua"
	"github.com/rs/zerolog"
)

// What has no value for this login, and will have none, is told from what has none at
// the moment.
func TestVisitTellsWhatCannotBeRead(t *testing.T) {
	refused := func(code ua.StatusCode) *ua.DataValue {
		return &ua.DataValue{EncodingMask: ua.DataValueStatusCode, Status: code}
	}
	p := newPeer(t)
	want := map[string]string{} // by path: part of why it cannot be read
	add := func(path string, dataType uint32, level byte, dv *ua.DataValue, unread string) {
		n := p.space.variable(path, dataType)
		n.attributes[ua.AttributeIDUserAccessLevel] = valued(level)
		n.attributes[ua.AttributeIDValue] = dv
		want[path] = unread
	}
	add("good", id.Double, canRead, valued(1.5), "")
	add("closed", id.Double, 0, refused(ua.StatusBadNotReadable), "may not read it (BadNotReadable)")
	add("denied", id.Double, canRead, refused(ua.StatusBadUserAccessDenied), "may not read it (BadUserAccessDenied)")
	add("open all the same", id.Double, 0, valued(1.5), "")
	add("away", id.Double, canRead, refused(ua.StatusBadNoCommunication), "")
	add("blob", id.ByteString, canRead, valued([]byte{1}), "ByteString")
	add("blob of no type", id.BaseDataType, canRead, valued([]byte{1}), "ByteString")
	u, err := url.Parse(p.URL())
	if err != nil {
		t.Fatal(err)
	}
	v, err := Look(t.Context(), Config{Input: "in", Endpoint: u, Security: "none"}, host{time.Now()}, zerolog.Nop())
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	nodes, _, err := v.Tree(t.Context(), "/Objects", 3)
	if err != nil || len(nodes) != len(want) {
		t.Fatalf("%d of %d nodes, %v", len(nodes), len(want), err)
	}
	for _, n := range nodes {
		if w := want[n.Path[0]]; (n.Unread == "") != (w == "") || !strings.Contains(n.Unread, w) {
			t.Errorf("%s: %q, want %q", n.Path[0], n.Unread, w)
		}
	}
}
