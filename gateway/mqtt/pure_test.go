package mqtt

import (
	"bytes"
	"errors"
	"io"
	"math"
	"net"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tidemark/reading"
)

func TestMatchTopic(t *testing.T) {
	for _, c := range []struct {
		pattern, topic, want string // want: asset device sensor lifecycle; - is no match
	}{
		{"vib/{asset}/{device}/telemetry", "vib/p1/d1/telemetry", "p1 d1  "},
		{"vib/{asset}/{device}/telemetry", "vib/p1/telemetry", "-"},
		{"vib/{asset}/{device}/telemetry", "vib/p1/d1/telemetry/x", "-"},
		{"{sensor}", "a", "  a "},
		{"{sensor}", "", "   "},
		{"{sensor}", "$SYS", "-"},
		{"#", "$SYS/x", "-"},
		{"$SYS/#", "$SYS/x", "   "},
		{"#", "a/b", "   "},
		{"a/#", "a", "   "},
		{"a/#", "ab", "-"},
		{"a/+/{lifecycle}/#", "a/b/c", "   c"},
		{"a/+/{lifecycle}/#", "a/b/c/d/e", "   c"},
		{"a/+", "a/", "   "},
		{"a/+", "a", "-"},
		{"/{asset}", "/x", "x   "},
	} {
		p, err := parsePattern(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		got := "-"
		if n, ok := p.match(c.topic); ok {
			got = strings.Join([]string{n[assetPart], n[devicePart], n[sensorPart], n[lifecyclePart]}, " ")
		}
		if got != c.want {
			t.Errorf("%s on %s: got %q, want %q", c.pattern, c.topic, got, c.want)
		}
	}
}

func TestTimes(t *testing.T) {
	const day = 1767225600 // 2026-01-01
	for _, c := range []struct {
		text  string
		ns    int64
		zoned bool
		fault reading.TimeFault
	}{
		{"2026-01-01T00:00:00Z", day * 1e9, true, 0},
		{"2026-01-01t00:00:00.123456789z", day*1e9 + 123456789, true, 0},
		{"2026-01-01 00:00:00.1234567899Z", day*1e9 + 123456789, true, 0},
		{"2026-01-01T01:00:00+01:00", day * 1e9, true, 0},
		{"2025-12-31T18:15:00-0545", day * 1e9, true, 0},
		{"2026-01-01T00:00:00", day * 1e9, false, 0},
		{"2026-01-01T00:00:00,5", day*1e9 + 5e8, false, 0},
		{"2016-12-31T23:59:60Z", 1483228800 * 1e9, true, 0},
		{"2024-02-29T00:00:00Z", 1709164800 * 1e9, true, 0},
		{"1969-12-31T23:59:59.5Z", -5e8, true, 0},
		{"2023-02-29T00:00:00Z", reading.NoTime, false, reading.TimeUnparseable},
		{"2026-01-01T24:00:00Z", reading.NoTime, false, reading.TimeUnparseable},
		{"2026-01-01T00:00:00.Z", reading.NoTime, false, reading.TimeUnparseable},
		{"2026-01-01T00:00:00+1", reading.NoTime, false, reading.TimeUnparseable},
		{"2026-01-01", reading.NoTime, false, reading.TimeUnparseable},
		{"01/02/2026 00:00:00", reading.NoTime, false, reading.TimeUnparseable},
		{"9999-12-31T23:59:59Z", reading.NoTime, true, reading.TimeRange},
		{"0001-01-01T00:00:00Z", reading.NoTime, true, reading.TimeRange},
	} {
		if ns, zoned, fault := parseRFC3339(c.text); ns != c.ns || zoned != c.zoned || fault != c.fault {
			t.Errorf("%s: got %d %v %v", c.text, ns, zoned, fault)
		}
	}
}

func TestNumericTimes(t *testing.T) {
	for _, c := range []struct {
		raw  string
		unit reading.TimeUnit
		ns   int64
		kept bool // Raw
	}{
		{"1767225600", reading.UnitSeconds, 1767225600e9, false},
		{"1767225600123", reading.UnitMillis, 1767225600123e6, false},
		{"1767225600123456", reading.UnitMicros, 1767225600123456e3, false},
		{"1767225600123456789", reading.UnitNanos, 1767225600123456789, false},
		{"1767225600.123456789", reading.UnitSeconds, 1767225600123456789, true},
		{"1767225600.1234567891", reading.UnitSeconds, 1767225600123456789, true},
		{"1767225600123.5", reading.UnitMillis, 1767225600123500000, true},
		{"1.7672256e9", reading.UnitSeconds, 1767225600e9, true},
		{"0.5", reading.UnitNanos, 0, true},
		{"-0.5", reading.UnitNanos, -1, true}, // towards the past
		{"-1.5", reading.UnitSeconds, -1500000000, true},
		{"0.00000000000000000000000000000000000001", reading.UnitSeconds, 0, true},
		{"1767225600.00000000000000000000000000000000000000", reading.UnitSeconds, 1767225600e9, true},
	} {
		got := numericTime(c.raw, c.unit)
		if got.NS != c.ns || got.Fault != 0 || !got.Zoned || (got.Raw != "") != c.kept {
			t.Errorf("%s %v: got %+v", c.raw, c.unit, got)
		}
	}
	for _, raw := range []string{"1e30", "9223372037", "18446744073709551616", "-1e40", "1e999999999999"} {
		if got := numericTime(raw, reading.UnitSeconds); got.Fault != reading.TimeRange || got.NS != reading.NoTime || got.Raw != raw {
			t.Errorf("%s: got %+v", raw, got)
		}
	}
	for _, raw := range []string{"", "-", ".", "1e", "1e+", "0x1", "1 ", "NaN"} {
		if got := numericTime(raw, reading.UnitSeconds); got.Fault != reading.TimeUnparseable {
			t.Errorf("%s: got %+v", raw, got)
		}
	}
}

// The standard library is the second method.
func TestTimesAgreeWithTheStandardLibrary(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		ns := rapid.Int64Range(math.MinInt64/2, math.MaxInt64/2).Draw(t, "ns")
		zone := time.FixedZone("", 60*rapid.IntRange(-14*60, 14*60).Draw(t, "zone"))
		text := time.Unix(0, ns).In(zone).Format(time.RFC3339Nano)
		if got, zoned, fault := parseRFC3339(text); got != ns || !zoned || fault != 0 {
			t.Fatalf("%s: got %d, want %d", text, got, ns)
		}
	})
}

func TestWindow(t *testing.T) {
	quiet := func(w *window, n int) {
		for i := 1; i <= n; i++ {
			w.grown(i)
		}
		w.acknowledging(n, stallQuiet)
		w.resumed(0)
	}
	w := window{ceiling: 2048}
	quiet(&w, 20)
	quiet(&w, 7)
	quiet(&w, 20)
	quiet(&w, 20)
	if w.limit != 0 {
		t.Error("guessed from two in a row")
	}
	w.acknowledging(20, stallQuiet-1) // says nothing
	quiet(&w, 20)
	if w.limit != 20 {
		t.Fatalf("limit %d", w.limit)
	}
	holds := 0
	for range 100 {
		if stalled, _ := w.grown(19); stalled {
			t.Fatal("stalled below the limit")
		}
		stalled, hold := w.grown(20)
		if !stalled {
			t.Fatal("not stalled at the limit")
		}
		if hold > 0 {
			holds++
		}
	}
	if holds != 2 || w.small() { // at 16 and 64
		t.Errorf("doubted %d times, small %v before it waited for long", holds, w.small())
	}
	w.acknowledging(20, probeFor)
	if w.resumed(stallQuiet); w.small() {
		t.Error("small though nothing waited: the source is slow")
	}
	w.acknowledging(20, probeFor)
	if w.resumed(0); !w.small() {
		t.Error("not small though it waited for long")
	}
	if stalled, _ := w.grown(21); stalled || w.limit != 0 || w.small() {
		t.Error("a further message did not disprove the guess")
	}
	for range 5 {
		quiet(&w, 20)
	}
	if w.limit != 0 {
		t.Error("a wrong guess costs no more evidence")
	}
	quiet(&w, 20)
	if w.limit != 20 {
		t.Error("never guesses again")
	}
	if stalled, hold := w.grown(2048); !stalled || hold != 0 {
		t.Error("the Receive Maximum is no stall")
	}
}

// A source that sends one message now and then stands still after each as well;
// but an acknowledgement makes nothing come.
func TestSlowSourceIsNoWindow(t *testing.T) {
	w := window{ceiling: 2048}
	for range 100 {
		w.grown(1)
		w.acknowledging(1, 300*time.Millisecond)
		w.resumed(400 * time.Millisecond)
	}
	if w.limit != 0 {
		t.Errorf("learnt a window of %d from a slow source", w.limit)
	}
}

func TestRetry(t *testing.T) {
	var r retry
	now := int64(0)
	delay := func(attempt int) time.Duration { return r.delay(attempt, now, 1) }
	connection := func(lasts time.Duration) {
		r.connected(now)
		now += int64(lasts)
		r.lost(now, false)
	}
	if d := delay(0); d != 0 {
		t.Errorf("the first attempt waits %v", d)
	}
	if d := delay(1); d != 2*retryFirst {
		t.Errorf("the second waits %v", d)
	}
	if d := delay(50); d != retryMax {
		t.Errorf("the last waits %v", d)
	}
	if d := r.delay(50, now, 0); d != retryMax/2 {
		t.Errorf("spread to %v", d)
	}
	connection(time.Hour)
	if d := delay(0); d != retryFirst {
		t.Errorf("after a good connection %v", d)
	}
	for range 3 {
		connection(time.Second)
	}
	if d := delay(0); d != retryFirst<<3 {
		t.Errorf("after three that did not last %v", d)
	}
	r.connected(now)
	if r.lost(now, true); delay(0) != retryFirst {
		t.Errorf("after one that brought something %v", delay(0))
	}
	for range 3 {
		connection(time.Second)
		r.takenOver(now)
	}
	if d := delay(0); d != takeoverRetry || !r.contended(now) {
		t.Errorf("after three takeovers %v", d)
	}
	now += int64(time.Hour)
	r.takenOver(now) // still
	if !r.contended(now) {
		t.Error("forgot too early")
	}
	r.connected(now)
	now += int64(takeoverSpan) + 1
	if r.contended(now) {
		t.Error("never forgives")
	}
}

// mosquitto 2.0.11 closes the loser's connection without a word.
func TestHangupsAreNamed(t *testing.T) {
	var r retry
	now := int64(0)
	r.delay(0, now, 1)
	hangUp := func(lasts time.Duration) {
		r.connected(now)
		now += int64(lasts)
		r.lost(now, true)
		r.hungUp(now)
	}
	for range hangupLimit - 1 {
		hangUp(time.Second)
	}
	if r.suspicious(now) {
		t.Error("too early")
	}
	r.unreachable() // a broker that restarts
	hangUp(time.Second)
	if r.suspicious(now) {
		t.Error("a broker that was away is no fight")
	}
	for range hangupLimit {
		hangUp(hangupSpan - 1)
	}
	if d := r.delay(0, now, 1); !r.suspicious(now) || d != hangupRetry {
		t.Errorf("after %d hang-ups %v", hangupLimit, d)
	}
	if hangUp(hangupSpan); r.suspicious(now) {
		t.Error("a connection that lasted is no fight")
	}
	for range hangupLimit {
		hangUp(time.Second)
	}
	r.connected(now)
	if now += int64(takeoverSpan) + 1; r.suspicious(now) {
		t.Error("never forgives")
	}
}

func TestTakeoversFarApartAreNoFight(t *testing.T) {
	var r retry
	for i := range int64(10) {
		r.takenOver(i * int64(takeoverSpan))
		if r.contended(i * int64(takeoverSpan)) {
			t.Fatal("contended")
		}
	}
}

func TestCatchUpBounds(t *testing.T) {
	old := []reading.Reading{{Source: reading.SourceTime{NS: 0}, IngestNS: int64(time.Hour)}}
	ahead := []reading.Reading{{Source: reading.SourceTime{NS: int64(time.Hour)}, IngestNS: 0}}
	retained := []reading.Reading{{Delivery: reading.Initial, Source: reading.SourceTime{NS: 5}, IngestNS: 5}}
	c := catchUp{max: 10 * time.Minute}
	if c.connect(false, 0); c.readings("a", old, 1) != nil {
		t.Error("a new session has no backlog")
	}
	c.connect(true, 0)
	for i, rs := range [][]reading.Reading{old, ahead, retained} {
		if marks := c.readings("a", rs, 1); len(marks) != map[int]int{0: 1}[i] || !c.active {
			t.Errorf("%d: %v", i, marks)
		}
	}
	c.connect(false, int64(time.Minute)) // a broker that forgot us does not end it
	if marks := c.readings("a", old, int64(time.Minute)); len(marks) != 0 || !c.active {
		t.Errorf("reconnected: %v", marks)
	}
	if marks := c.readings("a", old, int64(12*time.Minute)); len(marks) != 1 || marks[0].Kind != reading.MarkCatchUpEnd {
		t.Errorf("after max: %v", marks)
	}
	c.connect(true, 0)
	if marks, again := c.wait("a", 0, int64(catchUpQuiet)); marks != nil || again != 0 || c.active {
		t.Error("without a backlog there is nothing to say")
	}
	c.connect(true, 0)
	c.readings("a", old, 0)
	if marks, again := c.wait("a", 1, int64(11*time.Minute)); len(marks) != 1 || again != 0 {
		t.Error("a broker that waits for us for ever must not hold the watermark for ever")
	}
}

// heard notes what a wire brings.
type heard struct{ publishes []publish }

func (h *heard) waiting()          {}
func (h *heard) arrived()          {}
func (h *heard) connected(bool)    {}
func (h *heard) disconnected(byte) {}
func (h *heard) broke(error)       {}
func (h *heard) publish(p *publish) {
	q := *p
	q.topic, q.payload = bytes.Clone(p.topic), bytes.Clone(p.payload)
	h.publishes = append(h.publishes, q)
}

// trickle is a connection that brings a few bytes at a time.
type trickle struct {
	net.Conn
	from io.Reader
	step int
}

func (c *trickle) Read(p []byte) (int, error) { return c.from.Read(p[:min(len(p), c.step)]) }
func (c *trickle) Close() error               { return nil }

func TestWirePassesTheRestOn(t *testing.T) {
	stream := "\x20\x03\x00\x00\x00" + "\x32\x0a\x00\x03a/b\x00\x07\x00\x31\x32" + "\xd0\x00" + "\x30\x06\x00\x01x\x00\x33\x34"
	for _, step := range []int{1, 2, 3, 1000} {
		var h heard
		w := newWire(&trickle{from: strings.NewReader(stream), step: step}, &h, 100)
		rest, err := io.ReadAll(w)
		if err != nil || string(rest) != "\x20\x03\x00\x00\x00\xd0\x00" {
			t.Errorf("passed on %x, %v", rest, err)
		}
		if len(h.publishes) != 2 || string(h.publishes[0].topic) != "a/b" || h.publishes[0].id != 7 ||
			string(h.publishes[0].payload) != "12" || string(h.publishes[1].payload) != "34" {
			t.Errorf("took %+v", h.publishes)
		}
	}
}

func TestWireTakesLargePackets(t *testing.T) {
	for _, n := range []int{readBuffer - 20, readBuffer, readBuffer + 1, 200_000, 200_001, 400_000} {
		payload := strings.Repeat("x", n)
		body := "\x00\x01t\x00\x09\x00" + payload
		var h heard
		w := newWire(&trickle{from: strings.NewReader(string(frame(0x32, body)) + "\xd0\x00"), step: 1 << 20}, &h, 200_000)
		if rest, err := io.ReadAll(w); err != nil || string(rest) != "\xd0\x00" || len(h.publishes) != 1 {
			t.Fatalf("%d: passed on %x, %v, took %d", n, rest, err, len(h.publishes))
		}
		p := h.publishes[0]
		if n <= 200_000 && (p.size != 0 || string(p.payload) != payload) || n > 200_000 && (p.size != n || len(p.payload) != maxExcerpt) || p.id != 9 {
			t.Errorf("%d: size %d, %d bytes", n, p.size, len(p.payload))
		}
	}
}

func frame(head byte, body string) []byte {
	b := []byte{head}
	for n := len(body); ; {
		c := byte(n & 0x7f)
		if n >>= 7; n > 0 {
			c |= 0x80
		}
		if b = append(b, c); n == 0 {
			return append(b, body...)
		}
	}
}

func TestWireRefusesNonsense(t *testing.T) {
	for _, stream := range []string{"\x32\xff\xff\xff\xff\x01", "\x36\x05\x00\x01t\x00\x01", "\x32\x02\x00\x09", "\x32\x03\x00\x01t", "\x32\x05\x00\x01t\x00\x00",
		"\x32\x06\x00\x01t\x00\x01\x05", "\x32\x05\x00\x00\x00\x01\x00", "\x90\xff\xff\xff\x7f", "HTTP/1.1 400 Bad Request\r\n\r\n"} {
		w := newWire(&trickle{from: strings.NewReader(stream), step: 100}, &heard{}, 100)
		if _, err := io.ReadAll(w); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("%q: %v", stream, err)
		}
	}
}

func FuzzWire(f *testing.F) {
	f.Add([]byte("\x20\x03\x00\x00\x00\x32\x0a\x00\x03a/b\x00\x07\x00\x31\x32\xd0\x00\xe0\x01\x8e"))
	f.Add([]byte("\x30\x06\x00\x01x\x00\x33\x34"))
	f.Add([]byte("\x32\x06\x00\x01t\x00\x01\x05"))
	f.Add(frame(0x32, "\x00\x01t\x00\x09\x00"+strings.Repeat("x", 300)))
	f.Fuzz(func(t *testing.T, stream []byte) {
		var first, second heard
		a, aerr := io.ReadAll(newWire(&trickle{from: bytes.NewReader(stream), step: 1}, &first, 100))
		b, berr := io.ReadAll(newWire(&trickle{from: bytes.NewReader(stream), step: 1 << 20}, &second, 100))
		if !bytes.Equal(a, b) || len(first.publishes) != len(second.publishes) || (aerr == nil) != (berr == nil) {
			t.Fatalf("how a stream is cut matters: %x %v, %x %v", a, aerr, b, berr)
		}
		for _, p := range first.publishes {
			if len(p.payload) > maxExcerpt || p.size == 0 && len(p.payload) > 100 {
				t.Fatalf("kept %d bytes", len(p.payload))
			}
		}
	})
}

func TestTimeWithoutZoneIsOfTheConfiguredOne(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	if err != nil {
		t.Skip("no time zone data:", err)
	}
	for _, c := range []struct {
		sent, want string
		loc        *time.Location
	}{
		{"2026-07-01T12:00:00", "2026-07-01T10:00:00Z", berlin},
		{"2026-01-01T12:00:00", "2026-01-01T11:00:00Z", berlin},
		{"2026-10-25T02:30:00", "2026-10-25T00:30:00Z", berlin}, // comes twice; the first
		{"2026-07-01T12:00:00", "2026-07-01T12:00:00Z", nil},
		{"2026-07-01T12:00:00+05:00", "2026-07-01T07:00:00Z", berlin}, // its own
	} {
		got := inZone(sourceTime(field{wording, c.sent}, reading.UnitNone), c.loc)
		if at := time.Unix(0, got.NS).UTC().Format(time.RFC3339); at != c.want || got.Raw != c.sent {
			t.Errorf("%s in %v: %s (sent %q), want %s", c.sent, c.loc, at, got.Raw, c.want)
		}
	}
}
