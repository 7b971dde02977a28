package crash

import (
	"fmt"
	"path/filepath"
	"testing"

	"tidemark/gateway"
	"tidemark/test/process"
)

// service is `tidemark run` with its configuration.
type service struct {
	*process.Process
	binary, config, store string
}

// newGateway prepares a gateway whose files lie in dir.
func newGateway(t *testing.T, dir, binary string, up *process.Mosquitto, d *devices) *service {
	t.Helper()
	s := &service{binary: binary, config: filepath.Join(dir, "tidemark.yaml"), store: filepath.Join(dir, "tidemark.db")}
	process.Write(t, s.config, fmt.Sprintf(`gateway: {id: crash}
clock: {trust: local, local_bound: 50ms}
store: {path: tidemark.db, quota: 1GiB, retain: 1d, commit_interval: 100ms}
web: {listen: ""}
inputs:
%sfeatures:
  - name: four-seconds
    version: 1
    window: 4s
    out_of_orderness: %v
    allowed_lateness: %v
    idle_after: 1h
    correct_every: 0s
    flush_after: 0s
    functions: [count, sum, min, max]
uplinks:
  - name: plant
    mqtt: {url: "%s"}
`, d.config(), order, lateness, up.URL()))
	s.Process = process.Prepare(t, dir, binary, "run", "-c", s.config)
	return s
}

func (s *service) status() (*gateway.Status, error) {
	st := &gateway.Status{}
	return st, process.JSON(st, s.binary, "status", "-c", s.config, "--json")
}

// connected checks that every input has its session.
func (s *service) connected() error {
	st, err := s.status()
	if err != nil {
		return err
	}
	for _, in := range st.Inputs {
		if in.Reader == nil || in.Reader.State != "connected" {
			return fmt.Errorf("not yet: %+v", st.Because)
		}
	}
	return nil
}

// conserved checks law 5: each distinct reading was accepted once, and nothing is
// missing from any sum.
func (s *service) conserved(d *devices) error {
	st, err := s.status()
	if err != nil {
		return err
	}
	_, distinct := d.known()
	c := st.Inputs[0].Counts
	switch sum := c.Accepted + c.Duplicate + c.Malformed + c.Unmatched + c.Quarantined + c.Pending; {
	case c.Received != sum || !st.Conserved:
		return fmt.Errorf("received %d, but the outcomes sum up to %d: %+v", c.Received, sum, c)
	case c.Accepted != uint64(distinct):
		return fmt.Errorf("%d accepted of %d sent: %+v %v %v", c.Accepted, distinct, c, st.Inputs[0].Quarantine, st.Inputs[0].Rejects)
	}
	assigned := uint64(0)
	for _, f := range st.Features {
		assigned += f.Windowed + f.Late + f.Excluded
	}
	if assigned != c.Accepted {
		return fmt.Errorf("%d readings accepted, %d assigned: %+v", c.Accepted, assigned, st.Features)
	}
	return nil
}

// checkStore looks at the store that lies there: sound, and its journal stepped
// again from the first block gives what was committed with it (law 2).
func (s *service) checkStore() string {
	s.T.Helper()
	var found struct {
		Replay gateway.Restepped
	}
	if err := process.JSON(&found, s.binary, "store", "check", s.store, "--replay", "--json"); err != nil {
		s.T.Fatal(err)
	}
	r := found.Replay
	if r.From != 1 || !r.OK() {
		s.T.Fatalf("the journal does not lead to what was committed: %+v", r)
	}
	return fmt.Sprintf("%d blocks with %d readings give the %d results committed with them, also from %d checkpoints", r.Blocks, r.Readings, r.Emissions, r.Checkpoints)
}
