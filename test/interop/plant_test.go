package interop

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"tidemark/test/process"
)

// plant is an OPC UA server that does what it is told, also what no server should.
// It ends with the test.
type plant struct {
	t        *testing.T
	program  []string
	dir      string
	endpoint string
	port     int
	in       io.WriteCloser
	out      *bufio.Scanner
	cmd      *exec.Cmd
}

// newPlant is a server of node-opcua's (peers/nodeopcua). It returns when clients can
// connect. args are those of server.js.
func newPlant(t *testing.T, args ...string) *plant {
	t.Helper()
	return startPlant(t, []string{"node", "peers/nodeopcua/server.js"}, args...)
}

// newAsyncua is one of asyncua's (peers/asyncua), which knows fewer commands.
func newAsyncua(t *testing.T) *plant {
	t.Helper()
	return startPlant(t, []string{"python3", "peers/asyncua/server.py"}, "--port", strconv.Itoa(process.FreePort(t, "tcp")))
}

func startPlant(t *testing.T, program []string, args ...string) *plant {
	t.Helper()
	p := &plant{t: t, program: program, dir: process.Scratch(t)}
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("plant %s said last:\n%s", p.dir, process.Tail(p.log(), 6000))
		}
	})
	p.start(args...)
	return p
}

func (p *plant) log() string { return filepath.Join(p.dir, "plant.log") }

// restart has the plant, which was killed, serve again where it did before, with
// the keys that it had and counters that begin anew.
func (p *plant) restart(args ...string) {
	p.t.Helper()
	p.start(append(args, "--port", strconv.Itoa(p.port))...)
}

func (p *plant) start(args ...string) {
	p.t.Helper()
	found, err := exec.LookPath(p.program[0])
	if err != nil {
		p.t.Fatalf("%s is needed for this suite: %v", p.program[0], err)
	}
	log, err := os.OpenFile(p.log(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		p.t.Fatal(err)
	}
	defer log.Close()
	p.cmd = exec.Command(found, slices.Concat(p.program[1:], []string{"--dir", p.dir}, args)...)
	p.cmd.Stderr = log
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		p.t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		p.t.Fatal(err)
	}
	p.out = bufio.NewScanner(out)
	if err := p.cmd.Start(); err != nil {
		p.t.Fatal(err)
	}
	var ready struct {
		Endpoint string
		Port     int
	}
	p.answer(&ready, 3*time.Minute) // some seconds of a processor that may be busy
	p.endpoint, p.port = ready.Endpoint, ready.Port
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
	answer := p.answer(&failed, time.Minute)
	if failed.Error != "" {
		p.t.Fatalf("plant: %s: %s", line, failed.Error)
	}
	if result != nil {
		if err := json.Unmarshal(answer, result); err != nil {
			p.t.Fatal(err)
		}
	}
}

func (p *plant) answer(into any, patience time.Duration) []byte {
	p.t.Helper()
	// A plant that says nothing more is ended, so that the scan ends too.
	late := time.AfterFunc(patience, func() { _ = p.cmd.Process.Kill() })
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
