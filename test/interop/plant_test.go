package interop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// plant is an OPC UA server of node-opcua's that does what it is told, also what no
// server should (peers/nodeopcua). It ends with the test.
type plant struct {
	t        *testing.T
	endpoint string
	port     int
	in       io.WriteCloser
	out      *bufio.Scanner
	cmd      *exec.Cmd
}

// newPlant returns when clients can connect. args are those of server.js.
func newPlant(t *testing.T, args ...string) *plant {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		t.Fatalf("node is needed for this suite: %v", err)
	}
	dir := scratch(t)
	p := &plant{t: t, cmd: exec.Command(node, append([]string{"peers/nodeopcua/server.js", "--dir", dir}, args...)...)}
	log, err := os.Create(filepath.Join(dir, "plant.log"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	p.cmd.Stderr = log
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("plant %s said last:\n%s", dir, tail(log.Name(), 6000))
		}
	})
	var ready struct {
		Endpoint string
		Port     int
	}
	p.answer(&ready)
	p.endpoint, p.port = ready.Endpoint, ready.Port
	return p
}

// do has the plant obey a command, and puts its answer into result, if not nil.
func (p *plant) do(command map[string]any, result any) {
	p.t.Helper()
	line, err := json.Marshal(command)
	if err != nil {
		p.t.Fatal(err)
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		p.t.Fatalf("plant: %s: %v", line, err)
	}
	var failed struct{ Error string }
	answer := p.answer(&failed)
	if failed.Error != "" {
		p.t.Fatalf("plant: %s: %s", line, failed.Error)
	}
	if result != nil {
		if err := json.Unmarshal(answer, result); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *plant) answer(into any) []byte {
	p.t.Helper()
	// A plant that says nothing more is ended, so that the scan ends too.
	late := time.AfterFunc(60*time.Second, func() { _ = p.cmd.Process.Kill() })
	defer late.Stop()
	for {
		if !p.out.Scan() {
			p.t.Fatalf("plant: no answer: %v (was .ci/run peers run?)", p.out.Err())
		}
		if bytes.HasPrefix(p.out.Bytes(), []byte("{")) {
			break // what else it prints are node-opcua's own warnings
		}
	}
	if err := json.Unmarshal(p.out.Bytes(), into); err != nil {
		p.t.Fatalf("plant: %q: %v", p.out.Bytes(), err)
	}
	return p.out.Bytes()
}

// kill ends the plant as a power cut would.
func (p *plant) kill() {
	_ = p.cmd.Process.Kill() // gone already: as good
	_ = p.cmd.Wait()
}

// tag is a node of the plant's own namespace.
func tag(id string) string { return "nsu=urn:tidemark:test:plant;s=" + id }

func TestPlantObeys(t *testing.T) {
	begin(t)
	p := newPlant(t)
	p.do(map[string]any{"do": "set", "node": tag("Types.Double"), "value": 3.5, "status": 0x480}, nil)
	var got struct {
		Value  float64
		Status uint32
	}
	p.do(map[string]any{"do": "read", "node": tag("Types.Double")}, &got)
	if got.Value != 3.5 || got.Status != 0x480 {
		t.Errorf("read back %+v, want 3.5 and 0x480", got)
	}
	var count struct{ Sessions int }
	p.do(map[string]any{"do": "count"}, &count)
	if count.Sessions != 0 {
		t.Errorf("%d sessions and nobody there", count.Sessions)
	}
}
