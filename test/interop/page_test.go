package interop

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"tidemark/gateway"
	"tidemark/test/process"
)

// newDemoPage starts the demo and returns where its page is.
func newDemoPage(t *testing.T) string {
	t.Helper()
	cmd, _ := demo(t, "--verbose")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT)
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		if url := regexp.MustCompile(`http://[^"]+`).FindString(lines.Text()); url != "" {
			go func() {
				for lines.Scan() { // so that it never waits for us
				}
			}()
			return url
		}
	}
	t.Fatal("the demo says no address of its page")
	return ""
}

// drawn is what the page shows, by the ids of its parts, and the view it shows.
type drawn struct {
	View  gateway.View
	Rows  map[string][][]string // of tables
	Terms map[string]map[string]string
	Text  map[string]string
}

// readPage has the page draw a view while it is watched doing so.
const readPage = `(async () => {
  const view = await (await fetch("/api/view")).json();
  draw(view);
  const rows = {}, terms = {}, text = {};
  for (const t of document.querySelectorAll("table"))
    rows[t.id] = [...t.querySelectorAll("tbody tr")].map((r) => [...r.cells].map((c) => c.textContent.replaceAll(",", "")));
  for (const l of document.querySelectorAll("dl")) {
    terms[l.id] = {};
    for (const d of l.querySelectorAll("dt")) terms[l.id][d.textContent] = d.nextElementSibling.textContent.replaceAll(",", "");
  }
  for (const id of ["verdict", "link", "gateway", "tag-sums", "trend-text", "faults"]) text[id] = document.getElementById(id).textContent;
  return { View: view, Rows: rows, Terms: terms, Text: text };
})()`

// has checks that a row of the table begins with the name and holds all of the
// cells.
func (d *drawn) has(t *testing.T, table, name string, cells ...any) {
	t.Helper()
	for _, row := range d.Rows[table] {
		if row[0] != name {
			continue
		}
		for _, c := range cells {
			if !slices.Contains(row, fmt.Sprint(c)) {
				t.Errorf("%s: %v of %s is not in %q", table, c, name, row)
			}
		}
		return
	}
	t.Errorf("%s: no row of %s in %q", table, name, d.Rows[table])
}

// TestPage: what the page says in each panel is what the gateway says; nothing
// reaches the console; it fits a phone, and the keyboard reaches every panel.
func TestPage(t *testing.T) {
	begin(t)
	url := newDemoPage(t)
	b := newBrowser(t)
	b.look(1400, "light")
	b.open(url)
	// Everything that the demo has to show: a window closed, something too late, a
	// reading in quarantine.
	b.until(`document.querySelector("#results .w.closed.late") !== null`)
	b.until(`document.querySelector("#held .warn") !== null`)
	var d drawn
	b.eval(readPage, &d)
	checkPanels(t, &d)
	checkMetrics(t, url+"metrics")

	var first string
	b.eval(`document.getElementById("link").textContent`, &first)
	b.until(`document.getElementById("link").textContent !== ` + strconv.Quote(first))

	colours := map[string]bool{}
	for _, width := range []int{1400, 390, 320} {
		for _, scheme := range []string{"light", "dark"} {
			b.look(width, scheme)
			var wide int
			b.eval(`document.documentElement.scrollWidth`, &wide)
			if wide > width {
				t.Errorf("the page is %d wide on a screen of %d", wide, width)
			}
			var colour string
			b.eval(`getComputedStyle(document.body).backgroundColor`, &colour)
			colours[colour] = true
			b.shoot(fmt.Sprintf("%d-%s", width, scheme))
		}
	}
	if len(colours) != 2 {
		t.Errorf("backgrounds: %v", colours)
	}

	b.look(1400, "light")
	var panels []string
	b.eval(`[...document.querySelectorAll(".scroll")].map((e) => e.getAttribute("aria-labelledby"))`, &panels)
	reached := map[string]bool{}
	for range len(panels) + 3 {
		b.press("Tab", 9)
		var at string
		b.eval(`document.activeElement.getAttribute("aria-labelledby") || ""`, &at)
		reached[at] = true
	}
	for _, p := range panels {
		if !reached[p] {
			t.Errorf("the keyboard does not reach %s", p)
		}
	}
	if len(b.said) > 0 {
		t.Errorf("on the console: %s", b.said)
	}
}

// checkPanels compares what is drawn with the view that was to be.
func checkPanels(t *testing.T, d *drawn) {
	t.Helper()
	v := &d.View
	if d.Text["gateway"] != v.Gateway || !strings.HasPrefix(d.Text["verdict"], "Degraded: "+v.Because[0].Name) ||
		!strings.Contains(d.Text["faults"], strings.ReplaceAll(v.Because[0].Detail, "`", "")) {
		t.Errorf("verdict: %v, of %v", d.Text, v.Because)
	}
	if c := d.Terms["clock"]; c["State"] != "synchronized" || c["Servers agreeing"] != "3 of 4" || c["Error at most"] == "" || d.Text["trend-text"] == "" {
		t.Errorf("clock: %v %q", c, d.Text["trend-text"])
	}
	for _, s := range v.Clock.Servers {
		d.has(t, "servers", s.Address, s.Verdict, s.Answers)
	}
	for i := range v.Inputs {
		in := &v.Inputs[i]
		d.has(t, "inputs", in.Name, "connected", in.Counts.Accepted, in.Reader.Reconnects)
		for why, n := range in.Quarantine {
			if !slices.ContainsFunc(d.Rows["held"], func(r []string) bool {
				return r[0] == in.Name && r[1] == why && r[2] == fmt.Sprint(n) && len(r[3]) > 20
			}) {
				t.Errorf("held: no %d of %s in %q", n, why, d.Rows["held"])
			}
		}
	}
	if len(d.Rows["results"]) != len(v.Results) || len(v.Results) < 8 {
		t.Errorf("results: %d of %d", len(d.Rows["results"]), len(v.Results))
	}
	for i, k := range v.Results {
		row := d.Rows["results"][i]
		if row[0] != k.Asset+" / "+k.Sensor || row[2] != k.Unit || row[9] != k.Feature {
			t.Errorf("results: %q is no row of %+v", row, k)
		}
		for _, w := range slices.Backward(k.Windows) {
			if w.Revision == 0 {
				continue
			}
			want, err := strconv.ParseFloat(string(w.Value), 64)
			got, err2 := strconv.ParseFloat(row[1], 64)
			if err != nil || err2 != nil || got-want > 1e-5*want || want-got > 1e-5*want || row[6] != fmt.Sprint(w.Revision) {
				t.Errorf("results: %q shows %s, revision %d", row, w.Value, w.Revision)
			}
			break
		}
	}
	for _, f := range v.Features {
		d.has(t, "features", f.Name, f.OpenWindows, f.Windowed, f.Late)
		d.has(t, "disorder", f.Name, "budget")
	}
	if len(d.Rows["tags"]) != len(v.Tags) || len(v.Tags) != 10 {
		t.Errorf("%d tags of %d", len(d.Rows["tags"]), len(v.Tags))
	}
	for _, g := range v.Tags {
		d.has(t, "tags", g.Input+": "+g.Asset+" / "+g.Sensor, g.State)
	}
	for state, n := range v.TagStates {
		if !strings.Contains(d.Text["tag-sums"], fmt.Sprintf("%d %s", n, state)) {
			t.Errorf("tags: %d %s are not in %q", n, state, d.Text["tag-sums"])
		}
	}
	for _, s := range v.Clock.Sources {
		d.has(t, "sources", strings.Trim(s.Input+" / "+s.Device, " /"), s.Verdict)
	}
	for _, u := range v.Uplinks {
		d.has(t, "uplinks", u.Name, "online", u.Backlog)
	}
	s := d.Terms["store"]
	if !strings.HasPrefix(s["Readings kept"], fmt.Sprint(v.Store.Readings)) || s["Lost"] != "nothing" || s["Sums"] != "every reading is accounted for" ||
		!strings.HasSuffix(s["Configuration"], v.Configuration.Hash) {
		t.Errorf("store: %v", s)
	}
}

// checkMetrics checks that every metric has a value with real data: nothing that
// Prometheus is promised stays out.
func checkMetrics(t *testing.T, url string) {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	promtool(t, bytes.NewReader(text), "check", "metrics")
	families := regexp.MustCompile(`(?m)^# TYPE (\S+) `).FindAllSubmatch(text, -1)
	if len(families) < 20 {
		t.Errorf("%d metrics", len(families))
	}
	for _, f := range families {
		if !regexp.MustCompile(`(?m)^` + string(f[1]) + `(_count)?(\{.*\})? \S+$`).Match(text) {
			t.Errorf("%s has no value", f[1])
		}
	}
}

// promtool has Prometheus' own tool judge something.
func promtool(t *testing.T, in io.Reader, args ...string) {
	t.Helper()
	cmd := exec.Command("promtool", args...)
	cmd.Stdin = in
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("promtool %s: %v: %s", strings.Join(args, " "), err, out)
	}
}

func TestAlertRulesAreValid(t *testing.T) {
	begin(t)
	promtool(t, nil, "check", "rules", "../../configs/alerts.yaml")
}

// TestPageKeepsUp: with 10,000 readings a second from 200 sensors the page goes on
// showing new views, and neither it nor the gateway grows.
func TestPageKeepsUp(t *testing.T) {
	begin(t)
	in := process.NewMosquitto(t)
	gw, url := newBusyGateway(t, in)
	stop := pour(t, in)
	b := newBrowser(t)
	b.open(url)
	b.until(`document.querySelectorAll("#tags tbody tr").length >= 100`)
	b.eval(`window.views = 0; stream.addEventListener("message", () => window.views++)`, nil)
	type size struct {
		page, nodes, gateway float64
		views                int
	}
	measure := func() (s size) {
		b.call("HeapProfiler.collectGarbage", nil, nil)
		var heap struct{ UsedSize float64 }
		b.call("Runtime.getHeapUsage", nil, &heap)
		var dom struct{ Nodes float64 }
		b.call("Memory.getDOMCounters", nil, &dom)
		b.eval(`window.views`, &s.views)
		s.page, s.nodes, s.gateway = heap.UsedSize, dom.Nodes, anonymous(t, gw.PID())
		return s
	}
	time.Sleep(20 * time.Second)
	before := measure()
	time.Sleep(60 * time.Second)
	after := measure()
	var d drawn
	b.eval(readPage, &d)
	sent := stop()
	t.Logf("%d readings sent, %d received; before %+v, after %+v", sent, d.View.Inputs[0].Counts.Received, before, after)
	if n := after.views - before.views; n < 30 {
		t.Errorf("%d views in 60 s", n)
	}
	if after.page > before.page*1.2+1e6 || after.nodes > before.nodes*1.2+100 {
		t.Errorf("the page grows: %+v, then %+v", before, after)
	}
	if after.gateway > before.gateway*1.3+30e6 {
		t.Errorf("the gateway grows: %+v, then %+v", before, after)
	}
	if len(b.said) > 0 {
		t.Errorf("on the console: %s", b.said)
	}
	gw.End(syscall.SIGTERM)
}

// anonymous is how much memory of its own a process has, in bytes.
func anonymous(t *testing.T, pid int) float64 {
	t.Helper()
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`RssAnon:\s+(\d+) kB`).FindSubmatch(data)
	if found == nil {
		t.Fatalf("no RssAnon in %s", data)
	}
	kib, err := strconv.ParseFloat(string(found[1]), 64)
	if err != nil {
		t.Fatal(err)
	}
	return kib * 1024
}

// newBusyGateway starts a gateway for many readings, and says where its page is.
func newBusyGateway(t *testing.T, in *process.Mosquitto) (*process.Process, string) {
	t.Helper()
	dir := process.Scratch(t)
	config, listen := filepath.Join(dir, "tidemark.yaml"), process.Loopback(process.FreePort(t, "tcp"))
	process.Write(t, config, fmt.Sprintf(`gateway: {id: busy}
clock: {trust: local}
store: {path: tidemark.db, quota: 256MiB}
web: {listen: "%s"}
inputs:
  - name: line
    mqtt:
      url: %s
      subscribe:
        - topic: line/{asset}
          time: {path: ts, unit: ms}
          each: r
          sensor: {path: s}
          value: {path: v, type: number, unit: Cel}
features:
  - {name: ten-seconds, version: 1, window: 10s, out_of_orderness: 2s, allowed_lateness: 10s, functions: [count, mean, max]}
`, listen, in.URL()))
	gw := process.Prepare(t, dir, binary, "run", "-c", config)
	if out, err := exec.Command(binary, "check", "-c", config).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	gw.Start()
	return gw, "http://" + listen + "/"
}

// pour publishes 10,000 readings a second of 200 sensors until stop is called,
// which returns how many there were.
func pour(t *testing.T, in *process.Mosquitto) (stop func() int) {
	t.Helper()
	p := newPublisher(t, in, "pour")
	over, sent := make(chan struct{}), make(chan int)
	go func() {
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		n := 0
		for {
			select {
			case <-tick.C:
			case <-over:
				sent <- n
				return
			}
			for asset := range 10 {
				payload := fmt.Appendf(nil, `{"ts":%d,"r":[`, time.Now().UnixMilli())
				for sensor := range 20 {
					if sensor > 0 {
						payload = append(payload, ',')
					}
					payload = fmt.Appendf(payload, `{"s":"s%02d","v":%d}`, sensor, n%1000)
				}
				payload = append(payload, "]}"...)
				if _, err := p.client.Publish(t.Context(), &paho.Publish{Topic: fmt.Sprintf("line/a%d", asset), Payload: payload}); err != nil {
					t.Errorf("publish: %v", err)
					sent <- n
					return
				}
				n += 20
			}
		}
	}()
	return func() int { close(over); return <-sent }
}
