package clock_test

import (
	"context"
	"encoding/binary"
	"net"
	"testing"
	"time"

	"tidemark/clock"
)

// ntpServer answers every request on loopback as shape says.
func ntpServer(t *testing.T, shape func(answer []byte) []byte) string {
	t.Helper()
	pc, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { pc.Close(); <-done })
	go func() {
		defer close(done)
		req := make([]byte, 512)
		for {
			n, from, err := pc.ReadFrom(req)
			if err != nil {
				return
			}
			if a := shape(goodAnswer(req[:n])); a != nil {
				pc.WriteTo(a, from)
			}
		}
	}()
	return pc.LocalAddr().String()
}

func ntpTime(t time.Time) uint64 {
	return uint64(t.Unix()+2208988800)<<32 | uint64(t.Nanosecond())<<32/1e9
}

func goodAnswer(req []byte) []byte {
	a := make([]byte, 48)
	now := time.Now()
	a[0], a[1], a[2], a[3] = 4<<3|4, 2, 6, 0xE9
	binary.BigEndian.PutUint32(a[4:], 66)
	binary.BigEndian.PutUint32(a[8:], 100)
	binary.BigEndian.PutUint32(a[12:], 0x0A000301)
	binary.BigEndian.PutUint64(a[16:], ntpTime(now.Add(-time.Minute)))
	copy(a[24:32], req[40:48])
	binary.BigEndian.PutUint64(a[32:], ntpTime(now))
	binary.BigEndian.PutUint64(a[40:], ntpTime(now))
	return a
}

func shift(a []byte, at int, d time.Duration) {
	v := binary.BigEndian.Uint64(a[at:])
	binary.BigEndian.PutUint64(a[at:], uint64(int64(v)+int64(d.Seconds()*(1<<32))))
}

func TestQueryTakesOnlyWhatCanBeTime(t *testing.T) {
	kiss := func(code string) func([]byte) []byte {
		return func(a []byte) []byte { a[1] = 0; copy(a[12:16], code); return a }
	}
	for name, tc := range map[string]struct {
		shape       func([]byte) []byte
		fault, kiss string
	}{
		"good":                                 {shape: func(a []byte) []byte { return a }},
		"leap second announced":                {shape: func(a []byte) []byte { a[0] |= 1 << 6; return a }},
		"RATE":                                 {shape: kiss("RATE"), fault: "kiss", kiss: "RATE"},
		"DENY":                                 {shape: kiss("DENY"), fault: "kiss", kiss: "DENY"},
		"an experiment":                        {shape: kiss("XFOO"), fault: "kiss", kiss: "XFOO"},
		"RATE of one that is not synchronized": {shape: func(a []byte) []byte { a[0] |= 3 << 6; return kiss("RATE")(a) }, fault: "kiss", kiss: "RATE"},
		"INIT, as ntpd starts":                 {shape: func(a []byte) []byte { a[0] |= 3 << 6; return kiss("INIT")(a) }, fault: "leap_alarm"},
		"chronyd without a source":             {shape: func(a []byte) []byte { a[0] |= 3 << 6; return kiss("\x00\x00\x00\x00")(a) }, fault: "leap_alarm"},
		"leap alarm":                           {shape: func(a []byte) []byte { a[0] |= 3 << 6; return a }, fault: "leap_alarm"},
		"stratum 16":                           {shape: func(a []byte) []byte { a[1] = 16; return a }, fault: "stratum"},
		"wrong origin":                         {shape: func(a []byte) []byte { a[24] ^= 1; return a }, fault: "wrong_origin"},
		"short":                                {shape: func(a []byte) []byte { return a[:20] }, fault: "malformed"},
		"empty":                                {shape: func(a []byte) []byte { return a[:0] }, fault: "malformed"},
		"client mode":                          {shape: func(a []byte) []byte { a[0] = 4<<3 | 3; return a }, fault: "malformed"},
		"zero transmit time":                   {shape: func(a []byte) []byte { clear(a[40:48]); return a }, fault: "bad_transmit"},
		"transmit before receive": {shape: func(a []byte) []byte { shift(a, 40, -time.Second); return a },
			fault: "bad_transmit"},
		"stale reference": {shape: func(a []byte) []byte { shift(a, 16, -48*time.Hour); return a }, fault: "stale"},
		"root distance":   {shape: func(a []byte) []byte { binary.BigEndian.PutUint32(a[8:], 20<<16); return a }, fault: "distance"},
		"silent":          {shape: func([]byte) []byte { return nil }, fault: "timeout"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			addr := ntpServer(t, tc.shape)
			ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
			defer cancel()
			_, err := clock.QueryNTP(ctx, addr)
			if err == nil && tc.fault == "" {
				return
			}
			if err == nil {
				t.Fatalf("accepted, want fault %s", tc.fault)
			}
			if f, k := clock.FaultOf(err); f != tc.fault || k != tc.kiss {
				t.Errorf("fault %s %s, want %s %s (%v)", f, k, tc.fault, tc.kiss, err)
			}
		})
	}
}

// An answer that comes from somebody else is none.
func TestQueryHearsOnlyWhomItAsked(t *testing.T) {
	other, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	asked, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		req := make([]byte, 512)
		if n, from, err := asked.ReadFrom(req); err == nil {
			other.WriteTo(goodAnswer(req[:n]), from)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err = clock.QueryNTP(ctx, asked.LocalAddr().String())
	if f, _ := clock.FaultOf(err); err == nil || f != "timeout" {
		t.Errorf("%v, want a timeout", err)
	}
	asked.Close()
	<-done
}

func TestQueryMeasures(t *testing.T) {
	addr := ntpServer(t, func(a []byte) []byte {
		shift(a, 32, 50*time.Millisecond)
		shift(a, 40, 50*time.Millisecond)
		return a
	})
	r, err := clock.QueryNTP(t.Context(), addr)
	if err != nil {
		t.Fatal(err)
	}
	theta, lambda := r.Measured()
	if off := theta - 50e6; max(off, -off) > lambda {
		t.Errorf("50 ms ahead measured as %d ± %d ns", theta, lambda)
	}
}

func TestQueryOfNothing(t *testing.T) {
	for _, addr := range []string{"127.0.0.1:1", "nowhere.invalid"} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		if _, err := clock.QueryNTP(ctx, addr); err == nil {
			t.Errorf("%s answers", addr)
		}
		cancel()
	}
}
