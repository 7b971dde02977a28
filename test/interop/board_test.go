package interop

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tidemark/test/process"
)

// board is an arm64 computer with a Debian of its own (board.sh): its processor,
// disk, network and real-time clock are qemu's, so its power can be cut and its
// clock set. It is asked through qemu's agent, which runs in it.
type board struct {
	*process.Process
	agent  net.Conn
	in     *bufio.Reader
	socket string
	broker string // where this machine finds port 1883 of the board
}

// patience is how long a board that is emulated beside other work may take.
const patience = 5 * time.Minute

// newBoard has a fresh disk with one more file in /root. It is not switched on yet.
func newBoard(t *testing.T, file string) *board {
	t.Helper()
	system, dir := os.Getenv("TIDEMARK_BOARD"), process.Scratch(t)
	disk := filepath.Join(dir, "disk")
	host(t, "cp", "--sparse=always", filepath.Join(system, "disk"), disk)
	host(t, "debugfs", "-w", "-R", fmt.Sprintf("write %s /root/%s", file, filepath.Base(file)), disk)
	b := &board{socket: filepath.Join(dir, "agent"), broker: process.Loopback(process.FreePort(t, "tcp"))}
	b.Process = process.Prepare(t, dir, "qemu-system-aarch64",
		"-machine", "virt", "-cpu", "cortex-a72", "-accel", "tcg,thread=multi", "-smp", "2", "-m", "512",
		"-nodefaults", "-nographic", "-no-reboot", "-serial", "stdio",
		"-kernel", filepath.Join(system, "vmlinuz"),
		"-append", "root=/dev/nvme0n1 rw console=ttyAMA0 systemd.getty_auto=no systemd.show_status=no panic=-1",
		// What the board was told is on the disk is on it when qemu is killed: this
		// machine stays up.
		"-drive", "if=none,id=disk,format=raw,cache=writeback,file="+disk, "-device", "nvme,serial=1,drive=disk",
		"-chardev", "socket,id=agent,server=on,wait=off,path="+b.socket,
		"-device", "virtio-serial", "-device", "virtserialport,chardev=agent,name=org.qemu.guest_agent.0",
		"-netdev", "user,id=net,hostfwd=tcp:"+b.broker+"-:1883", "-device", "virtio-net-pci,netdev=net",
		"-rtc") // and what its battery-backed clock says
	return b
}

// hostAddress is where the board finds this machine's loopback address.
func hostAddress(addr string) string {
	_, port, _ := net.SplitHostPort(addr)
	return net.JoinHostPort("10.0.2.2", port)
}

// boot switches the board on and returns when its systemd has started everything.
// rtc is what its real-time clock says then, "utc" the true time.
func (b *board) boot(rtc string) {
	b.T.Helper()
	args := b.Args
	b.Args = append(args[:len(args):len(args)], "base="+rtc)
	b.Start()
	b.Args = args
	process.Eventually(b.T, 10*time.Second, func() (err error) {
		b.agent, err = net.Dial("unix", b.socket)
		return err
	})
	b.in = bufio.NewReader(b.agent)
	b.must("guest-sync", map[string]any{"id": 1}, nil)
	process.Eventually(b.T, patience, func() error {
		out, _ := b.try("systemctl", "is-system-running")
		if out != "running" && out != "degraded" {
			return fmt.Errorf("the board is %s", out)
		}
		return nil
	})
}

// call has the agent do something.
func (b *board) call(command string, arguments, result any) error {
	line, err := json.Marshal(map[string]any{"execute": command, "arguments": arguments})
	if err != nil {
		return err
	}
	_ = b.agent.SetDeadline(time.Now().Add(patience))
	if _, err := b.agent.Write(append(line, '\n')); err != nil {
		return err
	}
	data, err := b.in.ReadBytes('\n')
	if err != nil {
		return err
	}
	var said struct {
		Return json.RawMessage
		Error  *struct{ Desc string }
	}
	switch err := json.Unmarshal(data, &said); {
	case err != nil:
		return err
	case said.Error != nil:
		return fmt.Errorf("%s: %s", command, said.Error.Desc)
	case result == nil:
		return nil
	}
	return json.Unmarshal(said.Return, result)
}

func (b *board) must(command string, arguments, result any) {
	b.T.Helper()
	if err := b.call(command, arguments, result); err != nil {
		b.T.Fatal(err)
	}
}

// try runs a command on the board and returns what it prints.
func (b *board) try(args ...string) (string, error) {
	var started struct{ PID int }
	err := b.call("guest-exec", map[string]any{"path": args[0], "arg": args[1:], "capture-output": true}, &started)
	if err != nil {
		return "", err
	}
	for {
		var ended struct {
			Exited   bool
			ExitCode int    `json:"exitcode"`
			Out      []byte `json:"out-data"`
			Err      []byte `json:"err-data"`
		}
		if err := b.call("guest-exec-status", map[string]any{"pid": started.PID}, &ended); err != nil {
			return "", err
		}
		switch {
		case !ended.Exited:
			time.Sleep(20 * time.Millisecond)
		case ended.ExitCode != 0:
			return strings.TrimSpace(string(ended.Out)), fmt.Errorf("%v: exit code %d: %s", args, ended.ExitCode, ended.Err)
		default:
			return strings.TrimSpace(string(ended.Out)), nil
		}
	}
}

// run runs a command on the board, which must succeed.
func (b *board) run(args ...string) string {
	b.T.Helper()
	out, err := b.try(args...)
	if err != nil {
		b.T.Fatalf("%v\n%s", err, out)
	}
	return out
}

// write makes a file on the board.
func (b *board) write(path, text string) {
	b.T.Helper()
	var handle int
	b.must("guest-file-open", map[string]any{"path": path, "mode": "w"}, &handle)
	b.must("guest-file-write", map[string]any{"handle": handle, "buf-b64": base64.StdEncoding.EncodeToString([]byte(text))}, nil)
	b.must("guest-file-close", map[string]any{"handle": handle}, nil)
}

// setClock steps the board's wall clock to what this machine's shows, and ahead.
func (b *board) setClock(ahead time.Duration) {
	b.T.Helper()
	b.must("guest-set-time", map[string]any{"time": time.Now().Add(ahead).UnixNano()}, nil)
}

// property is what the board's systemd says of the gateway's service.
func (b *board) property(name string) string {
	b.T.Helper()
	return b.run("systemctl", "show", "tidemark", "--property", name, "--value")
}

// host runs a command on this machine, which must succeed.
func host(t *testing.T, name string, args ...string) {
	t.Helper()
	if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, out)
	}
}
