// Package crash kills the real binary at random moments, again and again, under
// load and with a real broker on both sides, and then asks for everything that was
// promised: nothing that a broker had is missing, nothing is counted twice, no
// revision has two contents, the sums hold to the last reading, the journal leads
// to what was committed with it, and every final value is the truth.
//
// It runs with TIDEMARK_INTEROP=1 only, and then a peer that is missing fails it.
// TIDEMARK_CRASH_CYCLES is how often it kills; the long form is 1000.
package crash

import (
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"tidemark/test/process"
)

// cycles is how often the gateway is killed if nobody says otherwise.
const cycles = 200

const (
	graceEvery = 10 // kills between two stops in order, which leave a checkpoint
	checkEvery = 25 // kills between two looks at the store that a kill left
)

func TestKilledAgainAndAgain(t *testing.T) {
	begin(t)
	n := cycles
	if v := os.Getenv("TIDEMARK_CRASH_CYCLES"); v != "" {
		var err error
		if n, err = strconv.Atoi(v); err != nil {
			t.Fatalf("TIDEMARK_CRASH_CYCLES: %v", err)
		}
	}
	seed := uint64(time.Now().UnixNano())
	t.Logf("%d kills, seed %d", n, seed)
	dice := rand.New(rand.NewPCG(seed, 1))

	up := process.NewMosquitto(t)
	d := newDevices(t, dice.Uint64())
	w := newWitness(t, up)
	g := newGateway(t, process.Scratch(t), build(t), up, d)
	g.Start()
	process.Eventually(t, 20*time.Second, g.connected) // the session is what the brokers keep from here on
	d.begin()

	began := time.Now()
	for i := 1; i <= n; i++ {
		time.Sleep(moment(dice))
		g.End(syscall.SIGKILL)
		if i%checkEvery == 0 {
			g.checkStore()
		}
		g.Start()
		if i%graceEvery == 0 {
			process.Eventually(t, 20*time.Second, g.connected) // before it listens to signals, SIGTERM is as good as SIGKILL
			time.Sleep(moment(dice))
			if code := g.End(syscall.SIGTERM); code != 0 {
				t.Fatalf("stopped in order, it ended with exit code %d", code)
			}
			g.Start()
		}
	}
	t.Logf("killed %d times in %v", n, time.Since(began).Round(time.Second))

	settle(t, g, w, d)
}

// begin leaves a test out where there is no broker for it.
func begin(t *testing.T) {
	t.Helper()
	if os.Getenv("TIDEMARK_INTEROP") == "" {
		t.Skip("set TIDEMARK_INTEROP=1 to run against mosquitto")
	}
	t.Parallel()
}

// settle has the devices end, and checks that everything of theirs is where it
// belongs, and that the gateway stops in order.
func settle(t *testing.T, g *service, w *witness, d *devices) {
	t.Helper()
	d.rest()
	process.Eventually(t, 90*time.Second, func() error { return w.right(d) })
	d.end()
	process.Eventually(t, 30*time.Second, func() error { return g.conserved(d) })
	if err := w.sound(); err != nil {
		t.Error(err)
	}
	if code := g.End(syscall.SIGTERM); code != 0 {
		t.Errorf("stopped in order, it ended with exit code %d", code)
	}
	t.Log(w.report(d))
	t.Log(g.checkStore())
}

// moment is how long a process lives: one in five dies while it starts.
func moment(dice *rand.Rand) time.Duration {
	if dice.IntN(5) == 0 {
		return time.Duration(dice.Int64N(int64(150 * time.Millisecond)))
	}
	return 150*time.Millisecond + time.Duration(dice.Int64N(int64(1200*time.Millisecond)))
}

// build makes the command under test.
func build(t *testing.T) string {
	t.Helper()
	binary, err := process.Build(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	return binary
}
