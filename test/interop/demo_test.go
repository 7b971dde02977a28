package interop

import (
	"bufio"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidemark/test/process"
)

// demo prepares `tidemark demo` with a directory of its own for what it leaves.
func demo(t *testing.T, args ...string) (cmd *exec.Cmd, left func() []os.DirEntry) {
	dir := process.Scratch(t)
	cmd = exec.Command(binary, append([]string{"demo"}, args...)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+dir)
	return cmd, func() []os.DirEntry {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Error(err)
		}
		return entries
	}
}

// TestDemoShowsEverythingInTime: a newcomer sees a first result within 20 s, and
// all the rest within 40 s.
func TestDemoShowsEverythingInTime(t *testing.T) {
	begin(t)
	cmd, left := demo(t, "--for", "45s", "--format", "json")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	started := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first := map[string]time.Duration{}
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		var r struct{ Type, Status, Reason, Kind, To string }
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Errorf("no record: %s", lines.Bytes())
		}
		if r.Kind == "clock" && r.To != "synchronized" { // its time servers must bear the load of the machine
			t.Errorf("the clock became %s: %s", r.To, lines.Bytes())
		}
		for _, what := range []string{r.Type, r.Status, r.Type + " " + r.Reason} {
			if _, seen := first[what]; !seen {
				first[what] = time.Since(started)
			}
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
	for what, limit := range map[string]time.Duration{
		"provisional": 20 * time.Second, "corrected": 40 * time.Second, "late window_closed": 40 * time.Second,
		"closed": 40 * time.Second, "quarantine FUTURE": 40 * time.Second, "quarantine UNIT_MISMATCH": 40 * time.Second,
	} {
		if at, seen := first[what]; !seen || at > limit {
			t.Errorf("%s: seen %v, after %v, want it within %v", what, seen, at, limit)
		}
	}
	if at, seen := first["status connection_lost"]; seen {
		t.Errorf("the gateway's will was published after %v, though it said goodbye", at)
	}
	if took := time.Since(started); took > 55*time.Second {
		t.Errorf("--for 45s took %v", took)
	}
	if l := left(); len(l) > 0 {
		t.Errorf("left behind: %v", l)
	}
	t.Logf("first seen: %v", first)
}

func TestDemoEndsOnInterrupt(t *testing.T) {
	begin(t)
	cmd, left := demo(t)
	var out strings.Builder
	cmd.Stdout = &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(4 * time.Second)
	if err := cmd.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("%v\n%s", err, &out)
	}
	if !strings.Contains(out.String(), "every reading is accounted for") {
		t.Errorf("no summary:\n%s", &out)
	}
	if l := left(); len(l) > 0 {
		t.Errorf("left behind: %v", l)
	}
}

// TestDemoIntoAPipeThatCloses: a reader that has seen enough leaves nothing
// behind.
func TestDemoIntoAPipeThatCloses(t *testing.T) {
	begin(t)
	cmd, left := demo(t, "--for", "30s")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	out.Close()
	if err := cmd.Wait(); err == nil {
		t.Error("a view that cannot be written is no success")
	}
	if l := left(); len(l) > 0 {
		t.Errorf("left behind: %v", l)
	}
}
