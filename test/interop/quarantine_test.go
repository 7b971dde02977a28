package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"tidemark/gateway"
	"tidemark/test/process"
)

// command runs a command that asks the running gateway, and reads what it prints.
func (s *service) command(into any, args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, binary, append(args, "-c", s.config, "--json")...).Output()
	if err != nil {
		if ee, ok := err.(*exec.ExitError); ok {
			err = fmt.Errorf("%v: %w: %s", args, err, ee.Stderr)
		}
		return err
	}
	return json.Unmarshal(out, into)
}

// TestQuarantineOverKills: readings that are too old go into quarantine while the
// gateway is killed again and again, and out of it while it is killed: each of them
// once.
func TestQuarantineOverKills(t *testing.T) {
	begin(t)
	w := newWorld(t)
	w.times.start(t)
	w.gateway.ready()
	device := newPublisher(t, w.in, "device")
	seed := uint64(os.Getpid())
	t.Logf("seed %d", seed)
	dice := rand.New(rand.NewPCG(seed, 7))

	start := time.Now()
	const n = 1200
	old := every(n, 5*time.Millisecond, func(i int, _ time.Duration) time.Time {
		return start.Add(-30*24*time.Hour + time.Duration(i)*time.Second)
	}, func(i int) int { return i })
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		device.sendStamped("d1", start, old)
	}()
	for range 6 {
		time.Sleep(time.Duration(dice.Int64N(int64(1500 * time.Millisecond))))
		w.gateway.End(syscall.SIGKILL)
		w.gateway.Start()
	}
	<-sent
	process.Eventually(t, 30*time.Second, func() error {
		var q gateway.Quarantine
		if err := w.gateway.command(&q, "quarantine", "list"); err != nil {
			return err
		}
		if q.Count != n || q.Gone != 0 || len(q.Groups) != 1 || q.Groups[0].Reason != "TOO_OLD" {
			return fmt.Errorf("in quarantine: %+v, want %d", q, n)
		}
		return nil
	})

	for range 3 {
		go func() { var r gateway.Release; _ = w.gateway.command(&r, "quarantine", "release", "--all") }()
		time.Sleep(time.Duration(dice.Int64N(int64(60 * time.Millisecond))))
		w.gateway.End(syscall.SIGKILL)
		w.gateway.Start()
		process.Eventually(t, 20*time.Second, w.gateway.clockIs("synchronized"))
	}
	process.Eventually(t, 30*time.Second, func() error {
		var q gateway.Quarantine
		var r gateway.Release
		if err := w.gateway.command(&q, "quarantine", "list"); err != nil {
			return err
		}
		if q.Count > 0 && !q.Releasing {
			_ = w.gateway.command(&r, "quarantine", "release", "--all")
			return fmt.Errorf("%d are left, and are released now", q.Count)
		}
		st, err := w.gateway.status()
		if err != nil {
			return err
		}
		in := st.Inputs[0]
		if c := in.Counts; c.ReleasedAccepted != n || c.ReleasedDuplicate+c.ReleasedQuarantined != 0 || in.QuarantinedNow != 0 || !st.Conserved {
			return fmt.Errorf("%+v, want %d released", c, n)
		}
		return nil
	})
	w.gateway.stop()
}
