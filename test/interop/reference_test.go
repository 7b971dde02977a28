package interop

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tidemark/test/process"
)

// kept is a row of a reference consumer's view of what stands.
type kept struct {
	Sensor      string
	WindowStart string `json:"window_start"`
	Generation  uint64
	Revision    int
	Sum         int64
}

// TestReferenceConsumers: the consumers that the documentation gives keep, of what
// a real gateway sends, what stands: the one in Python as it comes from the broker,
// the one in SQL in any order and with repeats.
func TestReferenceConsumers(t *testing.T) {
	begin(t)
	w := newWorld(t)
	w.times.start(t)
	db := filepath.Join(process.Scratch(t), "features.db")
	pythonConsumer(t, w.up, db)
	w.gateway.ready()
	p := newPlan(7, 10, 5, 12*time.Second, false)
	start := nextWindow(0)
	device := newPublisher(t, w.in, "device")
	<-device.play(p, start)
	ticks := device.tick(start)
	process.Eventually(t, 30*time.Second, w.out.right(p, start, anyRevision))
	for s := range 5 { // corrections of the last window
		r := send{taken: 8*time.Second + 7*time.Millisecond, sensor: fmt.Sprintf("s%02d", s), id: fmt.Sprintf("late-%d", s), value: 5000}
		p.add(r)
		if err := device.send(t.Context(), start, r); err != nil {
			t.Fatal(err)
		}
	}
	w.settled(t, p, start, ticks, anyRevision)
	want := w.out.stands()
	view := "SELECT sensor, window_start, generation, revision, result ->> '$.values.sum' AS sum FROM "
	process.Eventually(t, 20*time.Second, func() error { return sameRows(want, query(t, db, view+"current")) })

	sql, err := os.ReadFile("../../docs/consumer.sql")
	if err != nil {
		t.Fatal(err)
	}
	db = filepath.Join(process.Scratch(t), "sql.db")
	run := func(script string) { t.Helper(); sqlite(t, db, script) }
	run(string(sql))
	records := w.out.raw()
	rand.Shuffle(len(records), func(i, j int) { records[i], records[j] = records[j], records[i] })
	for part := range slices.Chunk(append(records, records[:len(records)/2]...), 50) {
		for _, r := range part {
			run("INSERT INTO incoming (record) VALUES ('" + strings.ReplaceAll(r, "'", "''") + "');")
		}
		run(string(sql))
	}
	if err := sameRows(want, query(t, db, view+"current_feature")); err != nil {
		t.Error(err)
	}
	// A backtest sees what it could have known: before anything was received, nothing.
	if rows := query(t, db, view+"revision WHERE received_at < '2000-01-01'"); len(rows) > 0 {
		t.Errorf("%d results were known before they were received", len(rows))
	}
	w.gateway.stop()
}

// pythonConsumer has the broker's own subscriber hand what it hears to the
// documentation's consumer.
func pythonConsumer(t *testing.T, b *process.Mosquitto, db string) {
	t.Helper()
	host, port, err := net.SplitHostPort(b.Addr)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	sub := exec.CommandContext(ctx, "mosquitto_sub", "-h", host, "-p", port, "-V", "5", "-q", "1", "-i", "features", "-t", "tidemark/v1/interop/#")
	keep := exec.CommandContext(ctx, "python3", "../../docs/consumer.py", db)
	if keep.Stdin, err = sub.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	sub.Stderr, keep.Stderr = os.Stderr, os.Stderr
	for _, c := range []*exec.Cmd{keep, sub} {
		if err := c.Start(); err != nil {
			t.Fatalf("%s is needed for this suite: %v", c.Args[0], err)
		}
	}
	t.Cleanup(func() {
		cancel()
		_, _ = sub.Wait(), keep.Wait()
	})
}

// stands lists what the contract's consumer keeps.
func (c *consumer) stands() (rows []kept) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.best {
		rows = append(rows, kept{r.Sensor, r.WindowStart.Format(time.RFC3339Nano), r.Generation, r.Revision, r.Values.Sum})
	}
	return rows
}

// raw lists the features and closings that were heard, as they were.
func (c *consumer) raw() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Sorted(maps.Values(c.contents))
}

func sameRows(want, got []kept) error {
	left := map[kept]bool{}
	for _, r := range want {
		left[r] = true
	}
	for _, r := range got {
		if !left[r] {
			return fmt.Errorf("%+v is kept and does not stand; %d of %d stand", r, len(want), len(got))
		}
		delete(left, r)
	}
	for r := range left {
		return fmt.Errorf("%+v stands and is not kept, nor are %d others", r, len(left)-1)
	}
	return nil
}

func sqlite(t *testing.T, db, script string, args ...string) []byte {
	t.Helper()
	cmd := exec.Command("sqlite3", append(args, "-bail", "-cmd", ".timeout 5000", db)...)
	cmd.Stdin = strings.NewReader(script)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("sqlite3 is needed for this suite: %v: %s", err, out)
	}
	return out
}

func query(t *testing.T, db, sql string) (rows []kept) {
	t.Helper()
	out := sqlite(t, db, sql+";", "-json")
	if len(strings.TrimSpace(string(out))) == 0 {
		return nil
	}
	if err := json.Unmarshal(out, &rows); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return rows
}
