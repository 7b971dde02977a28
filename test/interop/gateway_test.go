package interop

import (
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"tidemark/gateway"
	"tidemark/test/process"
)

// Settings of the gateway under test: windows short enough to see many of them.
const (
	windowMS = 4000                    // more than twice what an unmeasured source clock may be off
	order    = 1500 * time.Millisecond // out-of-orderness
	lateness = 15 * time.Second
)

// service is `tidemark run` with its configuration.
type service struct {
	*process.Process
	config string
	// ask asks for the status where the gateway is not on this machine.
	ask func(*gateway.Status) error
}

func newService(t *testing.T, servers []string, in, up *process.Mosquitto) *service {
	t.Helper()
	dir := process.Scratch(t)
	s := &service{config: filepath.Join(dir, "tidemark.yaml")}
	clock := fmt.Sprintf("{servers: [%s], poll_min: 250ms, poll_max: 1s}", strings.Join(servers, ", "))
	process.Write(t, s.config, settings(clock, "tidemark.db", in.URL(), up.URL()))
	s.Process = process.Prepare(t, dir, binary, "run", "-c", s.config)
	return s
}

// settings are a whole configuration with one input, named line.
func settings(clock, store, in, up string) string {
	return fmt.Sprintf(`gateway: {id: interop}
clock: %s
store: {path: %s, quota: 256MiB, commit_interval: 100ms}
web: {listen: ""}
inputs:
  - name: line
    mqtt:
      url: %s
      receive_maximum: 1000
      subscribe:
        - topic: line/{asset}/{device}/{sensor}
          time: {path: ts, unit: ms}
          id: {path: id}
          value: {path: v, type: number, unit: Cel}
features:
  - name: four-seconds
    version: 1
    window: 4s
    out_of_orderness: %v
    allowed_lateness: %v
    idle_after: 1h
    correct_every: 0s
    flush_after: 0s
    functions: [count, sum, mean, min, max]
uplinks:
  - name: plant
    mqtt: {url: "%s"}
`, clock, store, in, order, lateness, up)
}

// status asks the running gateway through its command line.
func (s *service) status() (*gateway.Status, error) {
	st := &gateway.Status{}
	if s.ask != nil {
		return st, s.ask(st)
	}
	return st, process.JSON(st, binary, "status", "-c", s.config, "--json")
}

// clockIs checks the state of the gateway's clock.
func (s *service) clockIs(state string) func() error {
	return func() error {
		st, err := s.status()
		if err != nil {
			return err
		}
		if st.Clock.State != state {
			return fmt.Errorf("the clock is %s (%s), want %s", st.Clock.State, st.Clock.Advice, state)
		}
		return nil
	}
}

// ready starts the gateway and returns when it trusts its clock.
func (s *service) ready() {
	s.T.Helper()
	s.Start()
	process.Eventually(s.T, 20*time.Second, s.clockIs("synchronized"))
}

// stop ends the gateway in order.
func (s *service) stop() {
	s.T.Helper()
	if code := s.End(syscall.SIGTERM); code != 0 {
		s.T.Errorf("tidemark run ended with exit code %d", code)
	}
}

// conserved checks law 5: distinct readings were published, each of them was
// accepted once, and nothing is missing from any sum.
func (s *service) conserved(distinct, repeated int) func() error {
	return func() error {
		st, err := s.status()
		if err != nil {
			return err
		}
		in := st.Inputs[0]
		c := in.Counts
		accepted := c.Accepted + c.PendingAccepted
		switch sum := c.Accepted + c.Duplicate + c.Malformed + c.Unmatched + c.Quarantined + c.Pending; {
		case c.Received != sum:
			return fmt.Errorf("received %d, but the outcomes sum up to %d: %+v", c.Received, sum, c)
		case in.PendingNow != 0:
			return fmt.Errorf("%d readings are pending: %+v", in.PendingNow, c)
		case accepted != uint64(distinct):
			return fmt.Errorf("%d accepted of %d: %+v %v %v", accepted, distinct, c, in.Quarantine, in.Rejects)
		case c.Duplicate+c.PendingDuplicate < uint64(repeated):
			return fmt.Errorf("%d duplicates, want at least %d: %+v", c.Duplicate, repeated, c)
		case c.Malformed+c.Unmatched+c.Quarantined != 0:
			return fmt.Errorf("something was not taken: %+v, %v, %v", c, in.Quarantine, in.Rejects)
		}
		f := st.Features[0]
		if assigned := f.Windowed + f.Late + f.Excluded; assigned != accepted {
			return fmt.Errorf("%d readings were accepted, %d assigned: windowed %d, late %d, excluded %d", accepted, assigned, f.Windowed, f.Late, f.Excluded)
		}
		if !st.Conserved {
			return fmt.Errorf("the gateway itself says that its sums do not hold")
		}
		return nil
	}
}
