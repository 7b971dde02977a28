package mqtt

import (
	"encoding/binary"
	"errors"
	"hash/maphash"
	"io"
	"slices"
	"time"

	"tidemark/internal/broker"
	"tidemark/reading"
)

// entry is a message that the broker has not had our acknowledgement of.
type entry struct {
	token uint64 // of the last parcel that holds some of it; 0: the one being filled
	id    uint16
	qos   byte
	hash  uint64 // of topic and payload
}

// link is one connection's side of the reader: it fills a parcel with what the
// wire brings and hands it on before the wire has to wait.
//
// The reading goroutine of the connection owns it, but for what the
// reader's lock guards.
type link struct {
	r    *Reader
	wire *wire
	at   reading.Instant // of the last read

	parcel      reading.Parcel
	pending     []entry // of the parcel
	messages    int     // of the parcel
	redelivered int     // of these, those that wait for their commit already

	// ghosts are what an earlier connection of this session left unacknowledged,
	// by packet id. The broker sends them again under the same id (MQTT 5 §4.4);
	// what is still on its way to the disk is not delivered twice.
	ghosts map[uint16]entry

	// The reader's lock guards these.
	open    []entry // in order of receipt
	head    int     // open[:head] is acknowledged
	writing []entry // whose acknowledgements are being written
	useful  bool    // brought something
	ending  string  // why the connection ends; empty: of our own doing
	hungUp  bool    // the broker closed it without a word
}

// maxQueued is how many readings and rejects may wait for the sink. Beyond that
// the connection is not read on.
const maxQueued = 8 << 10

// bytesPerReading is about the least that a reading takes of the connection, for
// making room.
const bytesPerReading = 40

// roomFor returns room for about n readings.
func roomFor(n int) []reading.Reading {
	if n > spillAt/4 {
		return reading.TakeSlab()
	}
	return make([]reading.Reading, 0, n)
}

func (l *link) outstanding() int { return len(l.open) - l.head }

// waiting hands over what was read so far, be it in mid-message, and waits while
// the gateway is full.
func (l *link) waiting() {
	l.flush()
	l.pause()
}

// arrived takes the time. Whatever the broker sends proves that it is there: the
// answer to a ping may wait behind more than a slow gateway reads in a keep-alive.
func (l *link) arrived() {
	l.at = l.r.clk.Now()
	l.r.pinger.PingResp()
}

// connected takes over from the link before this one.
func (l *link) connected(resumed bool) { l.r.begin(l, resumed) }

func (l *link) refused(words string) {
	l.r.mu.Lock()
	l.r.words = words
	l.r.mu.Unlock()
}

func (l *link) disconnected(code broker.Code, words string) { l.r.dismissed(l, code, words) }

// broke notes what ends the connection; what follows from it says less.
func (l *link) broke(err error) {
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	if l.ending == "" {
		l.ending, l.hungUp = l.r.peer.Broke(err).Error(), errors.Is(err, io.EOF)
	}
}

// publish takes one message in.
func (l *link) publish(p *publish) {
	if l.r.closing.Load() {
		return // unacknowledged, it comes again
	}
	l.messages++
	e := entry{id: p.id, qos: p.qos}
	if p.qos > 0 {
		e.hash = l.r.hash(p)
		if g, ok := l.ghosts[p.id]; ok {
			delete(l.ghosts, p.id)
			if g.hash == e.hash {
				l.pending = append(l.pending, g)
				l.redelivered++
				return
			}
		}
		if p.dup && l.repeated(e) {
			l.redelivered++
			return
		}
	}
	if l.parcel.Readings == nil {
		l.parcel.Readings = roomFor(1 + l.wire.in.Buffered()/bytesPerReading)
	}
	m := Message{Topic: p.topic, Payload: p.payload, Retain: p.retain, Dup: p.dup, At: l.at}
	if p.size > 0 {
		l.r.decoder.TooLarge(&m, p.size, l.r.cfg.MaxPayload, &l.parcel)
	} else {
		l.r.decoder.Decode(&m, &l.parcel, l.waiting)
		l.r.ask(l.r.decoder.Rebirths())
	}
	if p.qos > 0 {
		l.pending = append(l.pending, e)
	}
	if len(l.parcel.Readings)+len(l.parcel.Rejects) >= spillAt {
		l.waiting()
	}
}

// repeated reports whether e came on this connection already and waits for its
// acknowledgement. MQTT 5 §4.4 forbids a broker to send it again; some do, around
// a reconnection.
func (l *link) repeated(e entry) bool {
	same := func(o entry) bool { return o.id == e.id && o.hash == e.hash }
	if slices.ContainsFunc(l.pending, same) {
		return true
	}
	l.r.mu.Lock()
	defer l.r.mu.Unlock()
	return slices.ContainsFunc(l.open[l.head:], same)
}

func (l *link) flush() {
	if l.messages > 0 || !l.empty() {
		l.r.take(l)
	}
}

func (l *link) empty() bool {
	return len(l.parcel.Readings)+len(l.parcel.Rejects)+len(l.parcel.Marks)+len(l.parcel.Memory) == 0
}

// pause holds reading back while the queue is full: the broker keeps the rest.
// The answers to our pings wait behind what we do not read, so the pinger is told
// not to miss them; our pings themselves go on and keep the connection.
func (l *link) pause() {
	for l.r.full() {
		timer := time.NewTimer(time.Duration(l.r.keepAlive.Load()) / 4)
		select {
		case <-l.wire.closed:
			timer.Stop()
			return
		case <-l.r.room:
		case <-timer.C:
		}
		timer.Stop()
		l.r.pinger.PingResp()
	}
}

// leftOver returns what is unacknowledged, by packet id. The reader's lock is held.
func (l *link) leftOver() map[uint16]entry {
	left := make(map[uint16]entry, l.outstanding()+len(l.ghosts))
	for id, g := range l.ghosts {
		left[id] = g // never came again on this link
	}
	for _, es := range [][]entry{l.writing, l.open[l.head:]} {
		for _, e := range es {
			left[e.id] = e
		}
	}
	return left
}

// due returns how many messages may be acknowledged when every parcel up to token
// is on disk. The reader's lock is held.
func (l *link) due(token uint64) int {
	for i, e := range l.open[l.head:] {
		if e.token > token {
			return i
		}
	}
	return l.outstanding()
}

// acknowledgements moves the first n open messages to those being written, and
// returns the packets, in the order of receipt that MQTT 5 §4.6 demands. They are
// no longer outstanding: the broker may answer with the next messages before the
// write returns. The reader's lock is held.
func (l *link) acknowledgements(packets []byte, n int) []byte {
	l.writing = append(l.writing[:0], l.open[l.head:l.head+n]...)
	for _, e := range l.writing {
		kind := byte(packetPuback << 4)
		if e.qos == 2 {
			kind = packetPubrec << 4
		}
		packets = binary.BigEndian.AppendUint16(append(packets, kind, 2), e.id)
	}
	if l.head += n; l.head == len(l.open) {
		l.open, l.head = l.open[:0], 0
	} else if l.head > 1<<10 && l.head > len(l.open)/2 {
		l.open = l.open[:copy(l.open, l.open[l.head:])]
		l.head = 0
	}
	return packets
}

func (r *Reader) hash(p *publish) uint64 {
	return maphash.Bytes(r.seed, p.topic)*31 + maphash.Bytes(r.seed, p.payload)
}
