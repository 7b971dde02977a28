package opcua

import (
	"slices"
	"testing"

	"github.com/gopcua/opcua/id"
	"github.com/gopcua/opcua/ua"
)

// Whatever a server sends that becomes no reading is counted and told, and the values
// beside it are read.
func TestNothingIsDroppedInSilence(t *testing.T) {
	a := &ua.MonitoredItemNotification{ClientHandle: 0, Value: at(1, second(1))}
	for _, c := range []struct {
		name string
		say  func(p *peer, sub *peerSub)
		want string
	}{
		{"a value of a handle that no node has", func(p *peer, sub *peerSub) {
			p.tell(sub, &ua.DataChangeNotification{MonitoredItems: []*ua.MonitoredItemNotification{{ClientHandle: 99, Value: at(7, second(1))}, a}})
		}, "unknown_item"},
		{"events", func(p *peer, sub *peerSub) {
			p.tell(sub, &ua.EventNotificationList{})
			p.tell(sub, &ua.DataChangeNotification{MonitoredItems: []*ua.MonitoredItemNotification{a}})
		}, "unknown_notification"},
		{"a notification of no known type", func(p *peer, sub *peerSub) {
			p.tell(sub, &rawStructure{[]byte{1}})
			p.tell(sub, &ua.DataChangeNotification{MonitoredItems: []*ua.MonitoredItemNotification{a}})
		}, "unknown_notification"},
		{"another's subscription", func(p *peer, sub *peerSub) {
			for _, s := range p.Sessions {
				p.answerPublish(s, &peerSub{id: 4711}, &ua.NotificationMessage{SequenceNumber: 1, NotificationData: []*ua.ExtensionObject{ua.NewExtensionObject(&ua.EventNotificationList{})}})
			}
			p.tell(sub, &ua.DataChangeNotification{MonitoredItems: []*ua.MonitoredItemNotification{a}})
		}, "unknown_subscription"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, g := newPeer(t), &gateway{}
			p.space.variable("a", id.Double)
			r, _ := run(t, p, g, nil, "a")
			connected(t, r)
			p.say(at(0, second(0)), "a")
			got(t, g, "a", "(0)")
			p.patient()
			p.do(func() {
				for _, sub := range p.subs {
					c.say(p, sub)
				}
			})
			got(t, g, "a", "(0)", "1")
			until(t, "it is told", func() bool { return slices.Equal(g.rejected(), []string{c.want}) })
			g.do(func() {
				if x := g.rejects[0]; x.Detail == "" || x.Place == "" || x.IngestNS == 0 {
					t.Errorf("%+v", x)
				}
			})
		})
	}
}

// A position that this version cannot read is a stretch of which nothing is known.
func TestAnUnknownPositionIsAGap(t *testing.T) {
	p, g := newPeer(t), &gateway{memory: []byte{99}}
	p.space.variable("a", id.Double)
	_, _ = run(t, p, g, nil, "a")
	until(t, "there is a gap", func() bool { p.breathe(); return slices.Equal(g.reasons(), []string{"position_unknown"}) })
}
