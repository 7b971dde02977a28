package interop

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidemark/gateway"
	"tidemark/test/process"
)

// TestBoard: a whole arm64 Debian with the package on it does the main job, with a
// broker beside the gateway and one upstream, through a kill, a power cut that takes
// the date with it, and a clock that is set while it runs. Whatever was taken comes
// out once and right.
func TestBoard(t *testing.T) {
	if binary == "" || os.Getenv("TIDEMARK_BOARD") == "" {
		t.Skip("set TIDEMARK_INTEROP=1, and TIDEMARK_BOARD to what board.sh has made, to emulate an arm64 machine")
	}
	host(t, "make", "-C", "../..", "packages", "VERSION=0.1.0", "ARCHS=arm64")
	deb, err := filepath.Abs("../../dist/tidemark_0.1.0_arm64.deb")
	if err != nil {
		t.Fatal(err)
	}
	times, up := newTimeServers(t, 3), process.NewMosquitto(t)
	times.start(t)
	out := newConsumer(t, up)
	b := newBoard(t, deb)
	began := time.Now()
	b.boot("utc")
	t.Logf("up after %v", time.Since(began).Round(time.Second))
	b.setClock(0) // its real-time clock knows whole seconds

	b.write("/etc/mosquitto/conf.d/line.conf", "listener 1883\nallow_anonymous true\n")
	b.run("systemctl", "restart", "mosquitto")
	b.run("dpkg", "-i", "/root/"+filepath.Base(deb))
	var servers []string
	for _, s := range times.addrs {
		servers = append(servers, hostAddress(s))
	}
	clock := fmt.Sprintf("{servers: [%s], poll_min: 16s, poll_max: 16s}", strings.Join(servers, ", "))
	b.write("/etc/tidemark/tidemark.yaml", boardWindows.Replace(settings(clock, "/var/lib/tidemark/tidemark.db", "mqtt://127.0.0.1:1883", "mqtt://"+hostAddress(up.Addr))))
	b.run("systemctl", "restart", "tidemark") // comes back when the service says READY
	s := &service{Process: b.Process, ask: b.status}
	well := func() {
		t.Helper()
		process.Eventually(t, patience, s.clockIs("synchronized"))
		process.Eventually(t, patience, s.connected)
	}
	well()
	b.figures()
	job := &boardJob{t: t, s: s}
	t.Cleanup(func() {
		if t.Failed() {
			job.evidence(b, out)
		}
	})

	// Killed in the middle, it starts again and misses nothing.
	first := job.plan("first", 20*time.Second)
	device := newPublisher(t, &process.Mosquitto{Addr: b.broker}, "device")
	played := device.play(first.plan, first.start)
	time.Sleep(time.Until(first.start.Add(8 * time.Second)))
	b.run("systemctl", "kill", "--signal=KILL", "tidemark")
	<-played
	job.taken()
	if n := b.property("NRestarts"); n != "1" {
		t.Errorf("killed once, restarted %s times", n)
	}
	if state := b.property("ActiveState") + " " + b.property("StatusText"); !strings.HasPrefix(state, "active ") {
		t.Errorf("after the kill it is %s", state)
	}

	t.Logf("the kill was survived after %v", time.Since(began).Round(time.Second))

	// The power goes while windows are open, and with it the date. What comes then
	// waits; what was taken before is there.
	second := job.plan("second", 10*time.Second)
	<-device.play(second.plan, second.start)
	job.taken()
	before, err := s.status()
	if err != nil {
		t.Fatal(err)
	}
	b.End(syscall.SIGKILL)
	b.boot("1970-01-01")
	process.Eventually(t, patience, s.connected)
	process.Eventually(t, patience, s.clockIs("unknown"))
	device = newPublisher(t, &process.Mosquitto{Addr: b.broker}, "device")
	third := job.plan("third", 5*time.Second)
	<-device.play(third.plan, third.start)
	process.Eventually(t, patience, s.pending(int64(len(third.plan.sends))))
	b.setClock(0)
	well()
	job.taken()
	if after, err := s.status(); err != nil || after.Generation != before.Generation {
		t.Errorf("the store is another: generation %d, then %d, %v", before.Generation, after.Generation, err)
	}

	t.Logf("the power cut was survived after %v", time.Since(began).Round(time.Second))

	// Set an hour ahead, it trusts itself no longer from that moment on; set back, it
	// judges by the true time what came in between.
	b.setClock(time.Hour)
	set := time.Now()
	process.Eventually(t, patience, func() error {
		st, err := s.status()
		if err == nil && st.Clock.State == "synchronized" {
			err = errors.New("a clock that is an hour off is taken for synchronized")
		}
		return err
	})
	t.Logf("the step was seen within %v", time.Since(set).Round(time.Millisecond))
	fourth := job.plan("fourth", 5*time.Second)
	<-device.play(fourth.plan, fourth.start)
	process.Eventually(t, patience, s.pending(int64(len(fourth.plan.sends))))
	b.setClock(0)
	well()
	job.taken()
	process.Eventually(t, patience, out.toldOf("clock", `"step":"STEP_UNEXPLAINED"`))

	stop := device.tick(nextWindow(0)) // lets the watermark pass the last windows
	for _, p := range job.plans {
		process.Eventually(t, patience, out.right(p.plan, p.start, anyRevision))
		process.Eventually(t, patience, out.allClosed(p.plan, p.start))
	}
	job.distinct += stop()
	job.taken()
	if err := out.sound(); err != nil {
		t.Error(err)
	}
	b.figures()
	t.Logf("%d readings in %v: %s", job.distinct, time.Since(began).Round(time.Second), out.report())
}

// The board's windows are so wide that no reading's time is too uncertain for them,
// however badly an emulated machine measures its clock and however long its broker
// was busy.
const boardWindowMS = 16_000

var boardWindows = strings.NewReplacer("four-seconds", "sixteen-seconds", "window: 4s", "window: 16s")

// boardJob is what a board's gateway was given so far.
type boardJob struct {
	t        *testing.T
	s        *service
	plans    []playing
	distinct int
}

type playing struct {
	plan  *plan
	start time.Time
}

// plan lays out readings of sensors of its own, whose names begin with name.
func (j *boardJob) plan(name string, length time.Duration) playing {
	p := newPlan(uint64(len(j.plans)), 10, 5, length, false)
	for i := range p.sends {
		p.sends[i].sensor = name + "-" + p.sends[i].sensor
	}
	j.distinct += p.distinct
	start := time.UnixMilli(time.Now().UnixMilli())
	p.rewindow(boardWindowMS, start)
	j.plans = append(j.plans, playing{p, start})
	return j.plans[len(j.plans)-1]
}

// taken waits until all that was published is accepted, once, and in its window.
func (j *boardJob) taken() {
	j.t.Helper()
	process.Eventually(j.t, patience, j.s.conserved(j.distinct, 0))
	st, err := j.s.status()
	if err != nil {
		j.t.Fatal(err)
	}
	if f := st.Features[0]; f.Late+f.Excluded > 0 {
		j.t.Fatalf("%d readings came too late and %d are too uncertain for a window", f.Late, f.Excluded)
	}
}

// evidence logs what became of a window that is wrong.
func (j *boardJob) evidence(b *board, out *consumer) {
	status, err := b.try("tidemark", "status")
	j.t.Logf("%s %v", status, err)
	for _, p := range j.plans {
		if key, wrong := out.wrong(p.plan, p.start); wrong {
			life, err := b.try("tidemark", "explain", "press-1/"+key.sensor, fmt.Sprint(p.start.UnixMilli()+key.startMS), "--all")
			j.t.Logf("%s %v", life, err)
		}
	}
	out.mu.Lock()
	defer out.mu.Unlock()
	j.t.Logf("late: %q\naside: %q\nevents: %q", out.late, out.set, out.events)
}

// status asks the gateway on the board.
func (b *board) status(into *gateway.Status) error {
	out, err := b.try("tidemark", "status", "--json")
	if err != nil && out == "" { // it ends with 1 where it is degraded
		return err
	}
	return json.Unmarshal([]byte(out), into)
}

// figures logs what the gateway takes on the board.
func (b *board) figures() {
	b.T.Helper()
	pid := b.property("MainPID")
	b.T.Logf("%s; begun %s µs after the boot, ready %s; %s; %s",
		b.run("grep", "VmRSS", "/proc/"+pid+"/status"), b.property("InactiveExitTimestampMonotonic"), b.property("ActiveEnterTimestampMonotonic"),
		b.run("stat", "--format=%n %s bytes", "/usr/bin/tidemark"), b.property("StatusText"))
}
