package interop

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidemark/test/process"
)

// What a gateway may take that has little to do, on a machine that has other work:
// a twentieth of a core and 40 MB are what is promised of a quiet one. The memory is
// that of the first minute; it rises with what readings are recognised by, for as
// long as windows may be corrected.
const (
	restCPU   = 0.10
	restMB    = 40
	restStart = 100 * time.Millisecond // the best of five, to the first answer on /readyz
	restFor   = 45 * time.Second
)

// TestAtRest has a thousand sensors say something every second.
func TestAtRest(t *testing.T) {
	begin(t)
	broker, dir, port := process.NewMosquitto(t), process.Scratch(t), process.FreePort(t, "tcp")
	config := filepath.Join(dir, "tidemark.yaml")
	process.Write(t, config, fmt.Sprintf(`gateway: {id: rest}
clock: {trust: local}
store: {path: tidemark.db}
web: {listen: "127.0.0.1:%d"}
inputs:
  - name: line
    mqtt:
      url: %s
      subscribe: [{topic: "line/all", time: {path: ts, unit: ms}, sensor: {path: s}, value: {path: v}}]
features:
  - {name: five-minutes, version: 1, functions: [count, mean, min, max, p95]}
uplinks:
  - {name: plant, mqtt: {url: "%[2]s"}}
`, port, broker.URL()))
	s := &service{config: config, Process: process.Prepare(t, dir, binary, "run", "-c", config)}
	best := s.untilReady(port)
	for range 4 {
		s.stop()
		if err := os.Remove(filepath.Join(dir, "tidemark.db")); err != nil {
			t.Fatal(err)
		}
		best = min(best, s.untilReady(port))
	}

	ended := thousandSensors(t, broker, restFor+5*time.Second)
	accepted := func() uint64 {
		st, err := s.status()
		if err != nil {
			t.Fatal(err)
		}
		return st.Inputs[0].Counts.Accepted
	}
	process.Eventually(t, 20*time.Second, func() error {
		if accepted() < 2000 {
			return fmt.Errorf("nothing comes")
		}
		return nil
	})
	cpu, began, first := s.cpu(), time.Now(), accepted()
	select {
	case <-time.After(restFor):
	case err := <-ended:
		t.Fatalf("the sensors stopped: %v", err)
	}
	took := time.Since(began)
	share := (s.cpu() - cpu).Seconds() / took.Seconds()
	rate, mb := float64(accepted()-first)/took.Seconds(), s.peakMB(t)
	t.Logf("ready after %v; at %.0f readings/s %.1f %% of a core and %d MB", best, rate, 100*share, mb)
	if best > restStart || share > restCPU || mb > restMB {
		t.Errorf("more than %v, %.0f %%, %d MB", restStart, 100*restCPU, restMB)
	}
	if rate < 900 {
		t.Errorf("only %.0f readings/s came", rate)
	}
	s.stop()
}

// untilReady starts the gateway and waits for its first word that it is ready.
func (s *service) untilReady(port int) time.Duration {
	s.T.Helper()
	began := time.Now()
	s.Start()
	url := "http://" + process.Loopback(port) + "/readyz"
	for time.Since(began) < 20*time.Second {
		if answer, err := http.Get(url); err == nil {
			answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return time.Since(began)
			}
		}
		time.Sleep(time.Millisecond)
	}
	s.T.Fatal("never ready")
	return 0
}

// thousandSensors publishes for a while, evenly over each second.
func thousandSensors(t *testing.T, broker *process.Mosquitto, limit time.Duration) (ended <-chan error) {
	t.Helper()
	host, port, _ := strings.Cut(broker.Addr, ":")
	cmd := exec.Command("mosquitto_pub", "-h", host, "-p", port, "-q", "1", "-t", "line/all", "-l")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatalf("mosquitto_pub is needed for this suite: %v", err)
	}
	done := make(chan error, 1)
	go func() {
		defer cmd.Wait()
		defer in.Close()
		done <- speak(in, limit)
	}()
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	return done
}

func speak(to io.Writer, limit time.Duration) error {
	const sensors = 1000
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	began := time.Now()
	for n := 0; time.Since(began) < limit; {
		// As many as are due: a late tick loses none.
		for due := int(time.Since(began).Seconds() * sensors); n < due; n++ {
			line := `{"ts":` + strconv.FormatInt(time.Now().UnixMilli(), 10) + `,"s":"s` + strconv.Itoa(n%sensors) + `","v":` + strconv.Itoa(n%97) + "}\n"
			if _, err := io.WriteString(to, line); err != nil {
				return err
			}
		}
		<-tick.C
	}
	return nil
}
