package systemd

import (
	"bufio"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// beside runs a program of the host in the machine's network, and returns its first
// line on stdout that begins with a brace.
func (m *machine) beside(dir, name string, args ...string) string {
	m.t.Helper()
	pid, err := m.leader()
	if err != nil {
		m.t.Fatal(err)
	}
	cmd := exec.Command("nsenter", append([]string{"--target", pid, "--net", name}, args...)...)
	cmd.Dir = dir
	in, err := cmd.StdinPipe() // it ends when this closes
	if err != nil {
		m.t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	m.t.Cleanup(func() {
		in.Close()
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if line := lines.Text(); strings.HasPrefix(line, "{") {
			go io.Copy(io.Discard, out)
			return line
		}
	}
	m.t.Fatalf("%s says nothing: its packages are installed by `.ci/run peers`", name)
	return ""
}

// walk is what somebody does, step by step.
type walk struct {
	*machine
	steps int
}

// step is a line that the person types; it returns what the person reads.
func (w *walk) step(args ...string) string {
	w.t.Helper()
	w.steps++
	began := time.Now()
	out, err := w.try(args...)
	w.t.Logf("%d. %s (%.1f s)\n%s", w.steps, strings.Join(args, " "), time.Since(began).Seconds(), clip(out))
	if err != nil {
		out += "\n" + err.Error()
	}
	return out
}

func clip(s string) string {
	const most = 900
	if len(s) > most {
		return s[:most] + " …"
	}
	return s
}

// edit is what the person changes in a file, by an editor.
func (w *walk) edit(path string, changes ...string) {
	w.t.Helper()
	w.steps++
	file := filepath.Join(w.root, path)
	data, err := os.ReadFile(file)
	if err != nil {
		w.t.Fatal(err)
	}
	text := string(data)
	for i := 0; i < len(changes); i += 2 {
		if !strings.Contains(text, changes[i]) {
			w.t.Fatalf("%s has no %q to edit:\n%s", path, changes[i], text)
		}
		text = strings.Replace(text, changes[i], changes[i+1], 1)
	}
	w.write(path, text)
}

// advised is a command or a flag that a message names.
func (w *walk) advised(out, pattern string) []string {
	w.t.Helper()
	found := regexp.MustCompile(pattern).FindStringSubmatch(out)
	if found == nil {
		w.t.Fatalf("nobody is told what to do (%s) by:\n%s", pattern, out)
	}
	return strings.Fields(found[1])
}

// mostSteps is what a person may have to type from the package to the first feature
// of a server that is reached securely, whose certificate is new and made for
// another name. At half a minute each they are five minutes.
const mostSteps = 10

// Somebody who has never seen the product goes from the package to the first feature
// of an OPC UA server that others have made, by the commands that systemd/README.md
// gives, and by what the messages say.
func TestNewcomer(t *testing.T) {
	if os.Getenv("TIDEMARK_INTEROP") == "" {
		t.Skip("set TIDEMARK_INTEROP=1 to boot a Debian with systemd")
	}
	deb, _ := packaged(t, "0.1.0")
	m := boot(t)
	m.take(deb)
	peer, err := filepath.Abs(filepath.Join(repository, "test", "interop", "peers", "nodeopcua", "server.js"))
	if err != nil {
		t.Fatal(err)
	}
	var server struct{ Endpoint string }
	if err := json.Unmarshal([]byte(m.beside(t.TempDir(), "node", peer, "--port", "4840", "--dir", t.TempDir())), &server); err != nil {
		t.Fatal(err)
	}

	began := time.Now()
	w := &walk{machine: m}
	w.step("dpkg", "-i", "/root/"+filepath.Base(deb))
	begin := []string{"tidemark", "init", "-o", "/etc/tidemark/tidemark.yaml", "--from-browse", server.Endpoint}
	out := w.step(begin...)
	w.step(w.advised(out, `if it is the right one: (tidemark pki trust \S+ --dir \S+)`)...)
	out = w.step(begin...)
	begin = append(begin, w.advised(out, `here: (--certificate-host \S+)`)...)
	w.step(append(begin, "--under", "/Objects/Line3")...)
	w.edit("etc/tidemark/tidemark.yaml", "#trust: local", "trust: local", "window: 5m", "window: 30s")
	if out = w.step("tidemark", "check", "--online"); !strings.Contains(out, "connected") || strings.Contains(out, "exit status") {
		t.Errorf("checked online:\n%s", out)
	}
	w.step("systemctl", "reload", "tidemark")
	if out = w.step("tidemark", "status"); !strings.Contains(out, "clock.trust: local") {
		t.Errorf("the status does not say what the bench lacks:\n%s", out)
	}
	out = w.step("mosquitto_sub", "-h", "127.0.0.1", "-t", "tidemark/v1/+/feature/#", "-C", "1", "-W", "90")
	took := time.Since(began)
	var feature struct {
		Type, Status, Asset, Feature string
		Values                       map[string]any
		WindowEnd                    string `json:"window_end"`
	}
	if err := json.Unmarshal([]byte(out), &feature); err != nil || feature.Status != "provisional" || !strings.HasPrefix(feature.Asset, "press-") || feature.Values["count"] == nil {
		t.Fatalf("the first feature: %v, %+v of %s", err, feature, out)
	}
	t.Logf("from the package to the first feature: %d steps of a person's, %.1f s of the machine's", w.steps, took.Seconds())
	if w.steps > mostSteps || took > 5*time.Minute {
		t.Errorf("%d steps, %v", w.steps, took)
	}
	if line := m.run("tidemark", "tail", "-n", "1"); !strings.Contains(line, "press-") {
		t.Errorf("tail: %q", line)
	}

	// A colleague in the group may ask, and nobody else.
	m.run("useradd", "--create-home", "--groups", "tidemark", "colleague")
	m.run("runuser", "-u", "colleague", "--", "tidemark", "status")
	if out := m.refused("runuser", "-u", "nobody", "--", "tidemark", "status"); !strings.Contains(out, "ask as the gateway's user, its group or root") {
		t.Errorf("a stranger is told %q", out)
	}

	// What root does beside the service does not lock it out.
	m.run("systemctl", "stop", "tidemark")
	m.run("tidemark", "store", "compact", "/var/lib/tidemark/tidemark.db")
	m.run("tidemark", "pki", "renew")
	m.run("systemctl", "start", "tidemark")
	m.becomes(30*time.Second, "connected again", func() bool {
		st, err := m.status()
		return err == nil && len(st.Inputs) == 1 && st.Inputs[0].Reader.State == "connected"
	})
	if out, err := m.try("find", "/var/lib/tidemark", "!", "-user", "tidemark"); err != nil || out != "" {
		t.Errorf("not the service's: %s, %v", out, err)
	}
}
