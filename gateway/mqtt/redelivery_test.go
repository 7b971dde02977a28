package mqtt_test

import (
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/gateway/mqtt"
)

// The connection breaks twenty times under traffic, with acknowledgements on
// their way. What was not acknowledged comes again, in order and under its packet
// id; nothing is lost, and twice comes only what had its acknowledgement lost.
func TestNothingIsLostOverBrokenConnections(t *testing.T) {
	b := newBroker(t)
	r, s, _ := start(t, b.url(), nil)
	const total, window = 2000, 50
	seen := map[int64]int{}
	finished := make(chan struct{})
	go func() {
		defer close(finished)
		for len(seen) < total {
			p := s.take(t)
			for _, rd := range p.Readings {
				v, _ := rd.Value.Int()
				seen[v]++
			}
			time.AfterFunc(3*time.Millisecond, func() { r.Committed(p.Token) })
		}
	}()
	var open []int // unacknowledged at the broker
	sent, lost := 0, 0
	for drop := range 21 {
		p := b.accept(drop > 0)
		for _, v := range open {
			p.publish(qos1|dup, uint16(v+1), fmt.Sprint(v))
		}
		until := min(total, sent+97)
		for sent < until || drop == 20 && len(open) > 0 {
			if len(open) < window && sent < total {
				p.publish(qos1, uint16(sent+1), fmt.Sprint(sent))
				open = append(open, sent)
				sent++
				continue
			}
			if got := p.acks(1)[0]; int(got) != open[0]+1 {
				t.Fatalf("acknowledged %d, want %d", got, open[0]+1)
			}
			open = open[1:]
			if len(open) == 0 && sent == total {
				break
			}
		}
		if drop < 20 {
			p.Conn.(*net.TCPConn).SetLinger(0) // a broken connection, not one that the broker closes
			p.Close()
			lost += len(open) // at most: acknowledged, and we do not know
		}
	}
	<-finished
	twice := 0
	for _, n := range seen {
		twice += n - 1
	}
	if len(seen) != total || twice > lost {
		t.Errorf("%d values, %d twice, %d acknowledgements lost", len(seen), twice, lost)
	}
}

// What an earlier connection left unacknowledged comes again; as long as it is on
// its way to the disk it is not delivered twice, and its commit acknowledges it.
func TestRedeliveryIsRecognised(t *testing.T) {
	b := newBroker(t)
	r, s, _ := start(t, b.url(), nil)
	p := b.accept(false)
	for id := range uint16(4) {
		p.publish(qos1, id+1, fmt.Sprint(id))
	}
	s.collect(t, 4)
	r.Committed(0)
	p.Close()

	p = b.accept(true)
	p.publish(qos1|dup, 1, "0")
	p.publish(qos1|dup, 2, "99") // not what it was: the broker counts anew
	p.publish(qos1|dup, 3, "2")
	p.publish(qos1, 5, "4")
	values, token := s.collect(t, 2)
	if !slices.Equal(values, []int64{99, 4}) {
		t.Errorf("delivered %v", values)
	}
	p.silent()
	p.Close()

	p = b.accept(true) // and once more
	p.publish(qos1|dup, 4, "3")
	p.publish(qos1|dup, 1, "0")
	p.publish(qos1|dup, 2, "99")
	p.publish(qos1|dup, 3, "2")
	p.publish(qos1|dup, 5, "4")
	s.empty(t)
	r.Committed(token)
	if got := p.acks(5); !slices.Equal(got, []uint16{4, 1, 2, 3, 5}) {
		t.Errorf("acknowledged %v", got)
	}
	if st := r.Status(); st.Redelivered != 7 || st.Messages != 13 || st.Readings != 6 {
		t.Errorf("got %+v", st)
	}
}

func TestCommittedWhileAwayIsAcknowledgedAtOnce(t *testing.T) {
	b := newBroker(t)
	r, s, _ := start(t, b.url(), nil)
	p := b.accept(false)
	p.publish(qos1, 1, "0")
	_, token := s.collect(t, 1)
	p.Close()
	eventually(t, "waiting", func() bool {
		st := r.Status()
		return st.State == mqtt.Waiting && strings.HasPrefix(st.Problem, "the connection to "+b.ln.Addr().String()+" broke: ")
	})
	r.Committed(token)
	p = b.accept(true)
	p.publish(qos1|dup, 1, "0")
	if got := p.acks(1); got[0] != 1 {
		t.Errorf("acknowledged %v", got)
	}
	s.empty(t)
}

func TestLostSessionDeliversAgain(t *testing.T) {
	b := newBroker(t)
	r, s, _ := start(t, b.url(), nil)
	p := b.accept(false)
	p.publish(qos1, 1, "0")
	s.collect(t, 1)
	p.Close()
	p = b.accept(false)
	p.publish(qos1, 1, "0")
	if got, _ := s.collect(t, 1); got[0] != 0 {
		t.Errorf("got %v", got)
	}
	if n := r.Status().Reconnects; n != 1 {
		t.Errorf("%d reconnects", n)
	}
}
