// Package systemd installs the Debian package on a Debian that is booted with its
// own systemd in a container, and asserts on what an administrator and a consumer
// see there.
//
// It runs with TIDEMARK_INTEROP=1 only, as root, and then fails where
// systemd-nspawn or debootstrap is missing.
package systemd

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidemark/test/process"
)

// repository is the root of the tree, as seen from this package.
const repository = "../.."

// machine is a booted Debian.
type machine struct {
	*process.Process
	t    *testing.T
	root string
}

// boot makes a Debian and waits until its systemd has started everything.
func boot(t *testing.T) *machine {
	t.Helper()
	root := debian(t)
	// Without registration: the host need not run systemd itself.
	m := &machine{process.Prepare(t, process.Scratch(t), "systemd-nspawn", "--quiet", "--directory", root, "--register=no", "--keep-unit",
		"--private-network", "--boot"), t, root}
	m.Start()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the service's journal:\n%s", m.journal())
		}
	})
	m.started()
	return m
}

// reboot has the machine shut down in its own order, and boots it again.
func (m *machine) reboot() {
	m.t.Helper()
	_, _ = m.try("systemctl", "reboot") // is cut off by what it does
	m.EndsItself(time.Minute)
	m.Start()
	m.started()
}

// started waits until the machine is up.
func (m *machine) started() {
	m.t.Helper()
	m.becomes(2*time.Minute, "up", func() bool {
		out, _ := m.try("systemctl", "is-system-running")
		return out == "running" || out == "degraded"
	})
}

// debian copies a fresh system, which is made once.
func debian(t *testing.T) string {
	t.Helper()
	base, err := filepath.Abs(filepath.Join(repository, "dist", "debian"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(base); err != nil {
		host(t, "debootstrap", "--variant=minbase", "--include=systemd,systemd-sysv,dbus,init-system-helpers,mosquitto,mosquitto-clients",
			"bookworm", base+".new", mirror(t))
		host(t, "mv", base+".new", base)
	}
	dir, err := os.MkdirTemp("", "tm-debian-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { host(t, "rm", "-rf", "--one-file-system", dir) })
	host(t, "cp", "-a", "--reflink=auto", base+"/.", dir)
	return dir
}

// mirror is where this host's own packages come from.
func mirror(t *testing.T) string {
	t.Helper()
	out := host(t, "apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages")
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); !strings.Contains(line, "security") {
			return strings.TrimSuffix(line, "/")
		}
	}
	t.Fatalf("this host has no package source: %q", out)
	return ""
}

// made is what was packaged already, by version.
var made = map[string]bool{}

// packaged returns the packages of a version, made once.
func packaged(t *testing.T, version string) (deb, archive string) {
	t.Helper()
	if !made[version] {
		host(t, "make", "-C", repository, "packages", "VERSION="+version, "ARCHS="+runtime.GOARCH)
		made[version] = true
	}
	name := filepath.Join(repository, "dist", fmt.Sprintf("tidemark_%s_%s", version, runtime.GOARCH))
	return name + ".deb", name + ".tar.gz"
}

// take copies files of the host into /root of the machine.
func (m *machine) take(files ...string) {
	m.t.Helper()
	host(m.t, "cp", append(files, filepath.Join(m.root, "root"))...)
}

// host runs a command on the host, which must succeed.
func host(t *testing.T, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s%s", name, args, err, out, errOut.Bytes())
	}
	return string(out)
}

// leader is the process that is the machine's init. It changes at a reboot.
func (m *machine) leader() (string, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", m.PID()))
	if err != nil {
		return "", err
	}
	for _, pid := range strings.Fields(string(data)) {
		if comm, err := os.ReadFile("/proc/" + pid + "/comm"); err == nil && strings.TrimSpace(string(comm)) == "systemd" {
			return pid, nil
		}
	}
	return "", fmt.Errorf("no init below process %d", m.PID())
}

// try runs a command in the machine.
func (m *machine) try(args ...string) (string, error) {
	pid, err := m.leader()
	if err != nil {
		return "", err
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, "nsenter", append([]string{"--target", pid, "--all"}, args...)...).CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

// run runs a command in the machine, which must succeed.
func (m *machine) run(args ...string) string {
	m.t.Helper()
	out, err := m.try(args...)
	if err != nil {
		m.t.Fatalf("%v: %v\n%s", args, err, out)
	}
	return out
}

// refused runs a command in the machine, which must fail.
func (m *machine) refused(args ...string) string {
	m.t.Helper()
	out, err := m.try(args...)
	if err == nil {
		m.t.Fatalf("%v succeeded:\n%s", args, out)
	}
	return out
}

// write makes a file in the machine.
func (m *machine) write(path, text string) {
	m.t.Helper()
	if err := os.WriteFile(filepath.Join(m.root, path), []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

// property is what systemd says of the service.
func (m *machine) property(name string) string {
	m.t.Helper()
	return m.run("systemctl", "show", "tidemark", "--property", name, "--value")
}

func (m *machine) mainPID() int {
	m.t.Helper()
	pid, err := strconv.Atoi(m.property("MainPID"))
	if err != nil {
		m.t.Fatal(err)
	}
	return pid
}

// signal sends one to the service's main process.
func (m *machine) signal(name string) {
	m.t.Helper()
	m.run("sh", "-c", fmt.Sprintf("kill -%s %d", name, m.mainPID()))
}

// journal is the end of what the service and systemd said of it.
func (m *machine) journal() string {
	out, _ := m.try("journalctl", "--unit=tidemark", "--lines=30", "--no-pager", "--output=cat")
	return out
}

// becomes waits until something holds.
func (m *machine) becomes(within time.Duration, what string, ok func() bool) {
	m.t.Helper()
	process.Eventually(m.t, within, func() error {
		if !ok() {
			return errors.New("not " + what)
		}
		return nil
	})
}
