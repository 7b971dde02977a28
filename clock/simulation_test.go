package clock_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"tidemark/clock"
	"tidemark/reading"
)

// TestSimulation runs gateways with drifting clocks against servers over
// asymmetric and lossy paths, some of them liars, with outages, steps and
// sources that are right and wrong. TIDEMARK_SIM_HOURS sets how many hours,
// TIDEMARK_SIM_SEED the first seed.
func TestSimulation(t *testing.T) {
	hours := envInt("TIDEMARK_SIM_HOURS", 200)
	first := uint64(envInt("TIDEMARK_SIM_SEED", 1))
	const run = 20 // hours of one seed
	var total tally
	for seed := first; total.hours < hours; seed++ {
		total.add(simulate(t, seed, run))
	}
	t.Logf("%d hours: %d of %d samples outside the bound, %.1f %% trusted, %d readings of right clocks (%d accused), %d of %d wrong clocks named in time",
		total.hours, total.outside, total.samples, 100*float64(total.trusted)/float64(total.samples), total.right, total.accused, total.named, total.wrong)
	if float64(total.outside) > 1e-4*float64(total.samples) {
		t.Errorf("%d of %d samples lie outside the stated bound", total.outside, total.samples)
	}
	if 10*total.trusted < 8*total.samples {
		t.Errorf("trusted in %d of %d samples: too careful to be of use", total.trusted, total.samples)
	}
	if total.accused > 0 {
		t.Errorf("%d readings of right clocks were accused", total.accused)
	}
	if total.named != total.wrong {
		t.Errorf("%d of %d wrong clocks were named rightly within 30 readings", total.named, total.wrong)
	}
}

func envInt(key string, def int) int {
	if n, err := strconv.Atoi(os.Getenv(key)); err == nil {
		return n
	}
	return def
}

type tally struct{ hours, samples, outside, trusted, right, accused, wrong, named int }

func (a *tally) add(b tally) {
	a.hours += b.hours
	a.samples += b.samples
	a.outside += b.outside
	a.trusted += b.trusted
	a.right += b.right
	a.accused += b.accused
	a.wrong += b.wrong
	a.named += b.named
}

func simulate(t *testing.T, seed uint64, hours int) (out tally) {
	synctest.Test(t, func(t *testing.T) {
		rng := rand.New(rand.NewPCG(seed, 42))
		w := newWorld()
		w.rng = rand.New(rand.NewPCG(seed, 43))
		w.drift = rng.Int64N(300_001) - 150_000
		w.ofs = rng.Int64N(int64(time.Second)) - int64(time.Second/2)
		cfg := clock.Config{Servers: randomServers(w, rng)}
		c := clock.NewOn(cfg, clock.Options{Log: zerolog.Nop()}, w.device())
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- c.Run(ctx) }()
		s := &sim{t: t, w: w, c: c, rng: rng, out: &out, seed: seed}
		s.sources()
		for range hours * 360 {
			time.Sleep(10 * time.Second)
			s.trouble()
			s.sample()
			s.readings()
		}
		cancel()
		<-done
		s.finish()
		out.hours = hours
	})
	return out
}

// randomServers makes three to five servers, fewer than half of them liars.
func randomServers(w *world, rng *rand.Rand) (names []string) {
	n := 3 + rng.IntN(3)
	liars := rng.IntN((n-1)/2 + 1)
	for i := range n {
		name := fmt.Sprintf("10.0.0.%d", i+1)
		s := &fakeServer{stratum: 2, lost: rng.Float64() * 0.2,
			out: time.Duration(rng.Int64N(int64(40 * time.Millisecond))), back: time.Duration(rng.Int64N(int64(40 * time.Millisecond))),
			off: time.Duration(rng.Int64N(20e6) - 10e6), disp: 15 * time.Millisecond} // within what it says
		if i < liars {
			s.off = time.Duration(rng.Int64N(int64(10*time.Second)) - int64(5*time.Second))
		}
		w.servers[name] = s
		names = append(names, name)
	}
	return names
}

// sim is one gateway with its sources.
type sim struct {
	t        *testing.T
	w        *world
	c        *clock.Clock
	rng      *rand.Rand
	out      *tally
	seed     uint64
	devices  []*device
	outUntil time.Time
}

// device is a simulated source.
type device struct {
	name   string
	wander int64 // amplitude of a slow swing, disciplined as clocks are
	off    int64 // of its clock
	want   reading.SourceVerdict
	frozen bool
	unit   bool // sends seconds declared as milliseconds
	n      int  // readings
	named  bool
	stamp  int64
}

func (s *sim) sources() {
	add := func(d device) { d.name = fmt.Sprintf("d%d", len(s.devices)); s.devices = append(s.devices, &d) }
	for range 4 {
		add(device{wander: s.rng.Int64N(int64(300 * time.Millisecond)), off: s.rng.Int64N(int64(400*time.Millisecond)) - int64(200*time.Millisecond)})
	}
	add(device{off: 3*second + s.rng.Int64N(14*second), want: reading.SourceOffsetAhead})
	add(device{off: []int64{60, -300, 120, 330, 540}[s.rng.IntN(5)] * 60 * second, want: reading.SourceTZShaped})
	add(device{frozen: true, stamp: s.now()})
	add(device{unit: true})
}

func (s *sim) now() int64 {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	return s.w.trueNS()
}

// trouble makes servers vanish for a while and somebody step the clock.
func (s *sim) trouble() {
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	switch {
	case s.outUntil.IsZero() && s.rng.IntN(3000) == 0:
		s.outUntil = time.Now().Add(time.Duration(s.rng.Int64N(int64(40 * time.Minute))))
		for _, v := range s.w.servers {
			v.err = clock.TimeoutError()
		}
	case !s.outUntil.IsZero() && time.Now().After(s.outUntil):
		s.outUntil = time.Time{}
		for _, v := range s.w.servers {
			v.err = nil
		}
	case s.rng.IntN(2000) == 0:
		off := s.w.wall() - s.w.trueNS()
		s.w.ofs -= off // a daemon sets it right, or an operator wrong
		if s.rng.IntN(3) == 0 {
			s.w.ofs += s.rng.Int64N(20*second) - 10*second
		}
	}
}

// sample compares true time with what the clock states.
func (s *sim) sample() {
	now := s.c.Now()
	s.w.mu.Lock()
	off := now.WallNS - s.w.trueNS()
	s.w.mu.Unlock()
	s.out.samples++
	if !now.State.Trusted() {
		return
	}
	s.out.trusted++
	if max(off, -off) > now.BoundNS {
		s.out.outside++
	}
}

// readings lets every device send one reading that has travelled for a while.
func (s *sim) readings() {
	for _, d := range s.devices {
		s.send(d)
	}
}

func (s *sim) send(d *device) {
	trusted := s.c.Now().State == reading.ClockSynchronized
	r := live(s.c, s.w, "s", 0)
	r.Tag = reading.MakeTag(reading.Series{Input: "in", Device: d.name, Sensor: "s"})
	at := s.now()
	delay := s.rng.Int64N(200e6)
	if d.want == reading.SourceOK && !d.frozen && !d.unit {
		switch s.rng.IntN(20) {
		case 0:
			delay += s.rng.Int64N(15 * second)
		case 1:
			delay += s.rng.Int64N(hour)
		}
	}
	swing := math.Sin(2 * math.Pi * float64(at-genesis.UnixNano()) / float64(6*hour)) // at most 90 ppm
	ts := at - delay + d.off + int64(float64(d.wander)*swing)
	if d.frozen {
		ts = d.stamp
	}
	r.Source.NS = ts
	if d.unit {
		r.Source = reading.SourceTime{NS: ts / 1e9 * 1e6, Zoned: true, Unit: reading.UnitMillis}
	}
	s.c.JudgeReading(&r, clock.InputPolicy{})
	s.check(d, r.Stamp, trusted)
}

func (s *sim) check(d *device, st reading.Stamp, trusted bool) {
	right := reading.OK
	switch {
	case d.frozen:
		right = reading.Frozen
	case d.unit:
		right = reading.UnitMismatch
	case d.want == reading.SourceOffsetAhead:
		right = reading.OffsetAhead
	case d.want == reading.SourceTZShaped:
		right = reading.TZShaped
	default:
		s.out.right++
		if st.Disposition == reading.Quarantine {
			s.out.accused++
			s.t.Errorf("seed %d: a right clock is accused of %v (%d ns ± %d)", s.seed, st.Reason, d.off, st.IngestBound.NS())
		}
		return
	}
	if d.named || !trusted && !d.frozen && !d.unit {
		return // the thirty readings count from the first that can be judged
	}
	d.n++
	if st.Reason == right {
		d.named = true
		if d.n <= 30 {
			s.out.named++
		}
	}
}

// finish counts the wrong clocks, and prints those that were not named.
func (s *sim) finish() {
	for _, d := range s.devices {
		if d.want == reading.SourceOK && !d.frozen && !d.unit {
			continue
		}
		if !d.named && d.n < 30 {
			continue // a gateway that was hardly ever synchronized has not had its thirty readings
		}
		s.out.wrong++
		if !d.named || d.n > 30 {
			s.t.Logf("seed %d: %+v was named after %d readings", s.seed, *d, d.n)
		}
	}
}
