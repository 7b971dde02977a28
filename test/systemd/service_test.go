package systemd

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

const configuration = `gateway: {id: boxed}
clock: {trust: local}
inputs:
  - name: devices
    mqtt:
      url: mqtt://127.0.0.1:1883
      login: {user: tidemark, password: {credential: broker}}
      subscribe: [{topic: "d/{asset}/{sensor}", time: {path: ts, unit: s}, value: {path: v}}]
    timestamps: {when_wrong: trusted}
features:
  - {name: sums, select: {input: devices}, window: 10s, out_of_orderness: 0s, allowed_lateness: 1h, functions: [count, sum]}
uplinks:
  - {name: plant, mqtt: {url: "mqtt://127.0.0.1:1883", login: {user: tidemark, password: {credential: broker}}}}
`

// status is what the gateway in the machine says of itself.
type status struct {
	Verdict string `json:"verdict"`
	Because []struct {
		Name string `json:"name"`
	} `json:"because"`
	Generation uint64 `json:"generation"`
	Inputs     []struct {
		Reader struct {
			State string `json:"state"`
		} `json:"reader"`
		Counts struct {
			Received uint64 `json:"received"`
			Accepted uint64 `json:"accepted"`
		} `json:"counts"`
	} `json:"inputs"`
	Conserved     bool `json:"conserved"`
	Configuration struct {
		Hash string `json:"hash"`
	} `json:"configuration"`
}

func (m *machine) status() (st status, err error) {
	out, err := m.try("tidemark", "status", "--json")
	if err != nil {
		return st, fmt.Errorf("%w: %s", err, out)
	}
	return st, json.Unmarshal([]byte(out), &st)
}

func (st *status) degradedBy(name string) bool {
	for _, f := range st.Because {
		if f.Name == name {
			return true
		}
	}
	return false
}

// publish sends n readings with the values 1 to n, a second apart from second on,
// and waits until the gateway has taken total.
func (m *machine) publish(second, n, total int) {
	m.t.Helper()
	var lines strings.Builder
	for i := range n {
		fmt.Fprintf(&lines, `{"ts":%d,"v":%d}`+"\n", second+i, i+1)
	}
	m.write("root/lines", lines.String())
	m.run("sh", "-c", "mosquitto_pub -h 127.0.0.1 -u tidemark -P secret -q 1 -t d/press/temp -l </root/lines")
	m.becomes(30*time.Second, fmt.Sprintf("at %d readings", total), func() bool {
		st, err := m.status()
		return err == nil && len(st.Inputs) == 1 && st.Inputs[0].Counts.Accepted == uint64(total) && st.Conserved
	})
}

// sums are the last revisions that went upstream, by window start.
func (m *machine) sums(path string) map[string]float64 {
	m.t.Helper()
	data, err := os.ReadFile(filepath.Join(m.root, path))
	if err != nil {
		m.t.Fatal(err)
	}
	sums, revisions := map[string]float64{}, map[string]int{}
	for line := range strings.Lines(string(data)) {
		var f struct {
			Start    string `json:"window_start"`
			Revision int
			Values   struct{ Sum float64 }
		}
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			continue // a line that is still being written
		}
		if f.Revision >= revisions[f.Start] {
			revisions[f.Start], sums[f.Start] = f.Revision, f.Values.Sum
		}
	}
	return sums
}

// An administrator's whole year with the package, in the order in which it comes.
func TestPackageUnderSystemd(t *testing.T) {
	if os.Getenv("TIDEMARK_INTEROP") == "" {
		t.Skip("set TIDEMARK_INTEROP=1 to boot a Debian with systemd")
	}
	first, _ := packaged(t, "0.1.0")
	second, archive := packaged(t, "0.2.0")
	m := boot(t)
	m.take(first, second, archive)
	install := func(deb string) { t.Helper(); m.run("dpkg", "-i", "/root/"+filepath.Base(deb)) }

	// Installed, it runs and says what it lacks.
	install(first)
	if s := m.run("systemctl", "is-active", "tidemark") + " " + m.run("systemctl", "is-enabled", "tidemark"); s != "active enabled" {
		t.Fatalf("after the installation it is %s", s)
	}
	if caps := m.run("grep", "CapEff", fmt.Sprintf("/proc/%d/status", m.mainPID())); !strings.HasSuffix(caps, "0000000000000000") {
		t.Errorf("the service has capabilities: %s", caps)
	}

	m.startsQuickly()

	// One file edited, one secret put down, one restart: data flows.
	m.write("etc/mosquitto/conf.d/plant.conf", "allow_anonymous false\npassword_file /etc/mosquitto/passwords\nlistener 1883 127.0.0.1\n")
	m.run("mosquitto_passwd", "-b", "-c", "/etc/mosquitto/passwords", "tidemark", "secret")
	m.run("chown", "mosquitto", "/etc/mosquitto/passwords")
	m.run("systemctl", "restart", "mosquitto")
	m.write("etc/tidemark/tidemark.yaml", configuration)
	m.write("etc/tidemark/credentials/broker", "secret\n")
	m.run("chmod", "600", "/etc/tidemark/credentials/broker")
	m.run("systemctl", "restart", "tidemark")
	m.run("systemd-run", "--unit=consumer", "--property=StandardOutput=append:/root/features", "mosquitto_sub", "-h", "127.0.0.1",
		"-u", "tidemark", "-P", "secret", "-q", "1", "-t", "tidemark/v1/boxed/feature/#")
	connected := func() bool {
		st, err := m.status()
		return err == nil && len(st.Inputs) == 1 && st.Inputs[0].Reader.State == "connected"
	}
	m.becomes(30*time.Second, "connected", connected)
	const begin = 1_767_225_600 // a whole window's start
	m.publish(begin, 15, 15)
	m.becomes(30*time.Second, "giving the first window", func() bool { return m.sums("root/features")["2026-01-01T00:00:00Z"] == 55 })
	before, err := m.status()
	if err != nil {
		t.Fatal(err)
	}

	// A reload with a fault changes nothing and says why; a sound one is applied by
	// the same process.
	pid := m.mainPID()
	m.write("etc/tidemark/tidemark.yaml", configuration+"oops: 1\n")
	m.refused("systemctl", "reload", "tidemark")
	m.saysDegraded("configuration")
	if log := m.journal(); !strings.Contains(log, `tidemark.yaml:14:1: unknown key "oops"`) {
		t.Errorf("the journal does not name the fault:\n%s", log)
	}
	if st, err := m.status(); err != nil || st.Configuration.Hash != before.Configuration.Hash {
		t.Errorf("after a refused reload: %+v, %v", st, err)
	}
	m.write("etc/tidemark/tidemark.yaml", configuration+"# reviewed\n")
	m.run("systemctl", "reload", "tidemark")
	m.becomes(30*time.Second, "reloaded", func() bool {
		st, err := m.status()
		return err == nil && st.Configuration.Hash != before.Configuration.Hash && connected()
	})
	m.publish(begin+15, 10, 25)
	if now := m.mainPID(); now != pid {
		t.Errorf("the reload took another process: %d, then %d", pid, now)
	}

	// Killed, it comes back with everything.
	m.signal("KILL")
	m.becomes(30*time.Second, "restarted", func() bool { return m.property("NRestarts") == "1" && connected() })
	m.publish(begin+25, 10, 35)

	// Hung, it is killed by its watchdog and comes back.
	m.run("mkdir", "-p", "/etc/systemd/system/tidemark.service.d")
	m.write("etc/systemd/system/tidemark.service.d/fast.conf", "[Service]\nWatchdogSec=3s\n")
	m.run("systemctl", "daemon-reload")
	m.run("systemctl", "restart", "tidemark")
	m.becomes(30*time.Second, "connected", connected)
	pid = m.mainPID()
	m.signal("STOP")
	m.becomes(60*time.Second, "restarted by the watchdog", func() bool { return m.mainPID() != pid && connected() })

	// An upgrade keeps the state and restarts once.
	starts := m.starts()
	install(second)
	if v := m.run("tidemark", "version"); !strings.Contains(v, "0.2.0") {
		t.Errorf("after the upgrade: %s", v)
	}
	m.becomes(30*time.Second, "connected after the upgrade", connected)
	if n := m.starts() - starts; n != 1 {
		t.Errorf("the upgrade started it %d times", n)
	}
	if got := m.run("cat", "/etc/tidemark/tidemark.yaml"); !strings.HasSuffix(got, "# reviewed") {
		t.Error("the upgrade replaced the configuration")
	}
	m.publish(begin+35, 10, 45)

	// A file that was spoilt: the last good one serves, and it says so.
	m.write("etc/tidemark/tidemark.yaml", "}{")
	m.run("systemctl", "restart", "tidemark")
	m.becomes(30*time.Second, "serving the last good configuration", func() bool {
		st, err := m.status()
		return err == nil && st.degradedBy("configuration") && connected()
	})
	m.saysDegraded("configuration")
	m.publish(begin+45, 10, 55)
	m.write("etc/tidemark/tidemark.yaml", configuration)
	m.run("systemctl", "reload", "tidemark")

	// A reboot.
	m.reboot()
	m.becomes(time.Minute, "connected after the reboot", connected)
	m.publish(begin+55, 6, 61)
	after, err := m.status()
	if err != nil || after.Generation != before.Generation {
		t.Errorf("the store is another: generation %d, then %d, %v", before.Generation, after.Generation, err)
	}

	// Removed, the readings stay; purged, nothing does.
	m.run("dpkg", "--remove", "tidemark")
	m.refused("systemctl", "is-active", "tidemark")
	m.run("test", "-s", "/var/lib/tidemark/tidemark.db")
	m.run("dpkg", "--purge", "tidemark")
	m.refused("sh", "-c", "ls -d /var/lib/tidemark /etc/tidemark /etc/systemd/system/multi-user.target.wants/tidemark.service 2>/dev/null | grep .")

	m.fromArchive(filepath.Base(archive))
}

// fromArchive does what systemd/README.md says of a system without dpkg.
func (m *machine) fromArchive(name string) {
	m.t.Helper()
	m.run("tar", "-C", "/usr", "--strip-components=1", "--no-same-owner", "-xzf", "/root/"+name)
	m.run("sh", "-c", "systemd-sysusers && systemd-tmpfiles --create tidemark.conf && systemctl daemon-reload")
	m.run("tidemark", "init", "-o", "/etc/tidemark/tidemark.yaml")
	m.run("tidemark", "check")
	m.run("systemctl", "enable", "--now", "tidemark")
	if out := m.run("tidemark", "status"); !strings.Contains(out, "DEGRADED") {
		m.t.Errorf("from the archive: %s", out)
	}
}

// starts counts how often the gateway has started since the machine did.
func (m *machine) starts() int {
	m.t.Helper()
	return strings.Count(m.run("journalctl", "--boot", "--unit=tidemark", "--no-pager", "--output=cat"), "store open, engine recovered")
}

// saysDegraded waits until systemctl status shows that the gateway is degraded, and
// by what.
func (m *machine) saysDegraded(by string) {
	m.t.Helper()
	m.becomes(10*time.Second, "telling systemd of "+by, func() bool {
		text := m.property("StatusText")
		names, _, _ := strings.Cut(strings.TrimPrefix(text, "degraded: "), ": ")
		return text != names && slices.Contains(strings.Split(names, ", "), by)
	})
}

// quick is how long a start may take on an empty store, from systemd's fork to READY,
// at the best of five. Most of it is the sandbox; the machine may have other work.
const quick = time.Second

func (m *machine) startsQuickly() {
	m.t.Helper()
	best := time.Hour
	for range 5 {
		m.run("sh", "-c", "systemctl stop tidemark && rm -r /var/lib/tidemark/* && systemctl start tidemark")
		best = min(best, m.moment("ActiveEnterTimestampMonotonic")-m.moment("ExecMainStartTimestampMonotonic"))
	}
	m.t.Logf("from the start to READY on an empty store: %v", best)
	if best > quick {
		m.t.Errorf("a start takes %v", best)
	}
}

// moment is a time that systemd took on its own clock.
func (m *machine) moment(property string) time.Duration {
	m.t.Helper()
	us, err := strconv.ParseInt(m.property(property), 10, 64)
	if err != nil {
		m.t.Fatal(err)
	}
	return time.Duration(us) * time.Microsecond
}
