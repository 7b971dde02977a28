package interop

import (
	"fmt"
	"math/rand/v2"
	"os"
	"syscall"
	"testing"
	"time"

	"tidemark/test/process"
)

func anyRevision(cell) int { return 0 }

// world is a gateway with everything that it needs.
type world struct {
	times   *timeServers
	in, up  *process.Mosquitto
	gateway *service
	out     *consumer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{times: newTimeServers(t, 3), in: process.NewMosquitto(t), up: process.NewMosquitto(t)}
	w.gateway = newService(t, w.times.addrs, w.in, w.up)
	w.out = newConsumer(t, w.up)
	return w
}

// settled waits for everything that the plan and the ticks must have led to.
func (w *world) settled(t *testing.T, p *plan, start time.Time, ticks func() int, revision func(cell) int) (distinct int) {
	t.Helper()
	process.Eventually(t, 60*time.Second, w.out.right(p, start, revision))
	process.Eventually(t, 60*time.Second, w.out.allClosed(p, start))
	distinct = p.distinct + ticks()
	process.Eventually(t, 20*time.Second, w.gateway.conserved(distinct, p.repeated))
	if err := w.out.sound(); err != nil {
		t.Error(err)
	}
	t.Logf("%d readings, %d published twice, %d windows: %s", distinct, p.repeated, len(p.truth), w.out.report())
	return distinct
}

// TestRightResults: thousands of readings with disorder within the budget and
// duplicates give exact sums at the first revision; what comes later corrects
// exactly once.
func TestRightResults(t *testing.T) {
	begin(t)
	w := newWorld(t)
	w.times.start(t)
	w.gateway.ready()
	const length = 20 * time.Second
	p := newPlan(1, 20, 20, length, false)
	start := nextWindow(0)
	device := newPublisher(t, w.in, "device")
	<-device.play(p, start)
	ticks := device.tick(start)
	once := func(cell) int { return 1 }
	process.Eventually(t, 30*time.Second, w.out.right(p, start, once))

	late := map[cell]bool{}
	for s := range 10 {
		// Still open: the last windows before the end, one of each of ten sensors.
		taken := length - time.Duration(1+s%2)*windowMS*time.Millisecond + 7*time.Millisecond
		r := send{taken: taken, sensor: fmt.Sprintf("s%02d", s), id: fmt.Sprintf("late-%d", s), value: 5000}
		p.add(r)
		ms := taken.Milliseconds()
		late[cell{r.sensor, ms - ms%windowMS}] = true
		if err := device.send(t.Context(), start, r); err != nil {
			t.Fatal(err)
		}
	}
	w.settled(t, p, start, ticks, func(c cell) int {
		if late[c] {
			return 2
		}
		return 1
	})
	w.gateway.stop()
}

// TestUplinkBrokerAway: a broker that is gone for a minute gets everything
// afterwards, once.
func TestUplinkBrokerAway(t *testing.T) {
	begin(t)
	w := newWorld(t)
	w.times.start(t)
	w.gateway.ready()
	p := newPlan(2, 20, 10, 70*time.Second, false)
	start := nextWindow(0)
	device := newPublisher(t, w.in, "device")
	played := device.play(p, start)
	time.Sleep(5 * time.Second)
	w.up.End(syscall.SIGTERM)
	time.Sleep(60 * time.Second)
	w.up.Start()
	<-played
	w.settled(t, p, start, device.tick(start), func(cell) int { return 1 })
	// What was in flight when the broker went may come again, no more.
	if w.out.repeats > 20 {
		t.Errorf("%d records came again", w.out.repeats)
	}
	w.gateway.stop()
}

// TestTimeServersGoneAndBack: a gateway that has never seen the time keeps its
// readings as pending and judges them later; one that loses the time goes on by
// what it knows.
func TestTimeServersGoneAndBack(t *testing.T) {
	begin(t)
	w := newWorld(t)
	w.gateway.Start()
	device := newPublisher(t, w.in, "device")
	// The store is born with the gateway: the plan begins in the next window.
	process.Eventually(t, 10*time.Second, w.gateway.clockIs("unknown"))
	p := newPlan(3, 10, 10, 40*time.Second, true)
	start := nextWindow(time.Second)
	played := device.play(p, start)
	time.Sleep(time.Until(start.Add(4 * time.Second)))
	if st, err := w.gateway.status(); err != nil || st.Inputs[0].PendingNow == 0 {
		t.Errorf("without the time readings must wait: %+v, %v", st, err)
	}
	w.times.start(t)
	process.Eventually(t, 15*time.Second, w.gateway.clockIs("synchronized"))
	w.times.stop()
	process.Eventually(t, 25*time.Second, w.gateway.clockIs("free_running"))
	w.times.start(t)
	process.Eventually(t, 15*time.Second, w.gateway.clockIs("synchronized"))
	<-played
	w.settled(t, p, start, device.tick(start), anyRevision)
	w.gateway.stop()
}

// TestBrokersAwayAtStart: nothing that is away at the start is an error.
func TestBrokersAwayAtStart(t *testing.T) {
	begin(t)
	w := newWorld(t)
	w.in.End(syscall.SIGTERM)
	w.up.End(syscall.SIGTERM)
	w.times.start(t)
	w.gateway.ready()
	time.Sleep(2 * time.Second)
	w.in.Start()
	w.up.Start()
	process.Eventually(t, 40*time.Second, func() error {
		// The gateway's session begins with its first connection: what is published
		// before that is nobody's.
		st, err := w.gateway.status()
		if err == nil && len(st.Because) > 0 {
			return fmt.Errorf("degraded: %+v", st.Because)
		}
		return err
	})
	p := newPlan(4, 5, 10, 6*time.Second, false)
	start := nextWindow(0)
	device := newPublisher(t, w.in, "device")
	<-device.play(p, start)
	w.settled(t, p, start, device.tick(start), func(cell) int { return 1 })
	w.gateway.stop()
}

// kills is how often TestKilledAtRandom kills the gateway.
const kills = 25

// TestKilledAtRandom: SIGKILL at random moments, at the start too, loses nothing
// that the broker had, counts nothing twice and gives no revision two contents.
func TestKilledAtRandom(t *testing.T) {
	begin(t)
	w := newWorld(t)
	w.times.start(t)
	w.gateway.ready()
	p := newPlan(5, 60, 10, 28*time.Second, true)
	start := nextWindow(0)
	device := newPublisher(t, w.in, "device")
	time.Sleep(time.Until(start))
	seed := uint64(os.Getpid()) // another story each time
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 5))
	played := device.play(p, start)
	for range kills {
		time.Sleep(time.Duration(dice.Int64N(int64(1500 * time.Millisecond))))
		w.gateway.End(syscall.SIGKILL)
		w.gateway.Start()
	}
	<-played
	ticks := device.tick(start)
	distinct := w.settled(t, p, start, ticks, anyRevision)
	w.gateway.stop()

	// What a restart recovers is what was there.
	w.gateway.Start()
	process.Eventually(t, 20*time.Second, w.gateway.conserved(distinct, p.repeated))
	w.gateway.stop()
}
