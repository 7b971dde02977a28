package interop

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"math"
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
	Tiles map[string][]string // class, name, what, more
}

// readPage has the page draw a view while it is watched doing so.
const readPage = `(async () => {
  const view = await (await fetch("/api/view")).json();
  draw(view);
  const rows = {}, terms = {}, text = {}, tiles = {};
  for (const b of document.querySelectorAll(".more:not([hidden])[aria-expanded=false]")) b.click();
  for (const t of document.querySelectorAll("table")) {
    rows[t.id] = [];
    for (const r of t.querySelectorAll("tbody tr")) {
      const cells = [...r.cells].map((c) => c.textContent.replaceAll(",", ""));
      if (r.className === "note") rows[t.id].at(-1).push(...cells); else rows[t.id].push(cells);
    }
  }
  for (const t of document.querySelectorAll("nav a")) tiles[t.id] = [t.className, ...[...t.children].map((c) => c.textContent)];
  for (const l of document.querySelectorAll("dl")) {
    terms[l.id] = {};
    for (const d of l.querySelectorAll("dt")) terms[l.id][d.textContent] = d.nextElementSibling.textContent.replaceAll(",", "");
  }
  for (const id of ["verdict", "link", "gateway", "tag-sums", "trend-text", "faults"]) text[id] = document.getElementById(id).textContent;
  return { View: view, Rows: rows, Terms: terms, Text: text, Tiles: tiles };
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
			if width > 320 {
				checkAccess(t, b, fmt.Sprintf("%d %s", width, scheme))
			}
			b.shoot(fmt.Sprintf("%d-%s", width, scheme))
		}
	}
	if len(colours) != 2 {
		t.Errorf("backgrounds: %v", colours)
	}

	checkKeyboard(t, b)
	if len(b.said) > 0 {
		t.Errorf("on the console: %s", b.said)
	}
}

// checkKeyboard checks that keys reach every link and button, show where they are, and
// stay there while the page goes on; and whatever is wider than its panel.
func checkKeyboard(t *testing.T, b *browser) {
	t.Helper()
	b.look(640, "light")
	b.eval(`document.querySelectorAll(".more[aria-expanded=true]").forEach((b) => b.click()), document.activeElement.blur()`, nil)
	var parts int
	b.eval(`(() => {
	  window.parts = [...document.querySelectorAll("a, button:not([hidden]), .scroll")].filter((e) => e.className !== "scroll" || e.scrollWidth > e.clientWidth);
	  return window.parts.length;
	})()`, &parts)
	reached := map[int]bool{}
	for range parts + 3 {
		b.press("Tab", 9)
		var at int
		var seen bool
		b.eval(`window.parts.indexOf(document.activeElement)`, &at)
		b.eval(`document.activeElement === document.body || document.activeElement.className === "skip" || getComputedStyle(document.activeElement).outlineStyle !== "none"`, &seen)
		if reached[at] = true; !seen {
			t.Errorf("nothing shows that part %d has the focus", at)
		}
	}
	for i := range parts {
		if !reached[i] {
			var what string
			b.eval(fmt.Sprintf(`window.parts[%d].outerHTML.slice(0, 80)`, i), &what)
			t.Errorf("the keyboard does not reach %s", what)
		}
	}
	var stays bool
	b.eval(`(async () => {
	  document.getElementById("t-held").focus();
	  await new Promise((drawn) => { let n = 0; stream.addEventListener("message", () => { if (++n === 2) drawn(); }); });
	  return document.activeElement.id === "t-held";
	})()`, &stays)
	if !stays {
		t.Error("a new view takes the focus away")
	}
}

// checkAccess has axe-core, which is injected into the page, look at it: nothing that
// keeps people out, or from reading it.
func checkAccess(t *testing.T, b *browser, as string) {
	t.Helper()
	axe, err := os.ReadFile("peers/axe/node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Fatalf("axe-core is needed for this suite: %v", err)
	}
	b.eval(string(axe)+"; 0", nil)
	var found []struct {
		ID, Impact, Help string
		Nodes            []struct{ HTML, FailureSummary string }
	}
	b.eval(`axe.run(document, { resultTypes: ["violations"], runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] })
	  .then((r) => r.violations.map((v) => ({ ID: v.id, Impact: v.impact, Help: v.help,
	    Nodes: v.nodes.slice(0, 3).map((n) => ({ HTML: n.html, FailureSummary: n.failureSummary })) })))`, &found)
	for _, v := range found {
		t.Errorf("%s: %s (%s): %s: %+v", as, v.ID, v.Impact, v.Help, v.Nodes)
	}
}

// checkPanels compares what is drawn with the view that was to be.
func checkPanels(t *testing.T, d *drawn) {
	t.Helper()
	v := &d.View
	if d.Text["gateway"] != v.Gateway || !strings.HasPrefix(d.Text["verdict"], "! Degraded: "+v.Because[0].Name) ||
		!strings.Contains(d.Text["faults"], strings.ReplaceAll(v.Because[0].Detail, "`", "")) {
		t.Errorf("verdict: %v, of %v", d.Text, v.Because)
	}
	agree := 0 // three, but for an answer that a busy machine brings too late
	for _, s := range v.Clock.Servers {
		word, known := map[string]string{"truechimer": "agrees", "falseticker": "outvoted: it lies"}[s.Verdict]
		if !known {
			word = s.Verdict
		}
		if s.Verdict == "truechimer" {
			agree++
		}
		d.has(t, "servers", s.Address, word, s.Answers)
	}
	if c := d.Terms["clock"]; c["State"] != "synchronized" || c["Servers agreeing"] != fmt.Sprintf("%d of 4", agree) || agree < 2 || c["Error at most"] == "" || d.Text["trend-text"] == "" {
		t.Errorf("clock: %v %q", c, d.Text["trend-text"])
	}
	for i := range v.Inputs {
		in := &v.Inputs[i]
		d.has(t, "inputs", in.Name, "connected", in.Counts.Accepted, in.Reader.Reconnects)
		for why, n := range in.Quarantine {
			step := strings.ReplaceAll(v.NextSteps[in.Name][why], "`", "")
			if !slices.ContainsFunc(d.Rows["held"], func(r []string) bool {
				said := len(r) > 3 && r[3] == strings.ReplaceAll(step, ",", "") || strings.Contains(d.Text["faults"], step)
				return r[0] == in.Name && r[1] == why && r[2] == fmt.Sprint(n) && step != "" && said
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
		if row[0] != k.Asset+" / "+k.Sensor || row[8] != k.Feature {
			t.Errorf("results: %q is no row of %+v", row, k)
		}
		for _, w := range slices.Backward(k.Windows) {
			if w.Revision == 0 {
				continue
			}
			want, err := strconv.ParseFloat(string(w.Value), 64)
			shown, unit, _ := strings.Cut(row[1], " ")
			got, err2 := strconv.ParseFloat(shown, 64)
			if err != nil || err2 != nil || math.Abs(got-want) > 1e-4*want || row[5] != fmt.Sprint(w.Revision) || unit != strings.ReplaceAll(k.Unit, "Cel", "°C") {
				t.Errorf("results: %q shows %s, revision %d", row, w.Value, w.Revision)
			}
			break
		}
	}
	for _, f := range v.Features {
		d.has(t, "features", f.Name, f.OpenWindows, f.Windowed, f.Late)
		d.has(t, "budgets", f.Name)
	}
	if len(d.Rows["tags"]) != len(v.Tags) || len(v.Tags) != 10 {
		t.Errorf("%d tags of %d", len(d.Rows["tags"]), len(v.Tags))
	}
	for _, g := range v.Tags {
		d.has(t, "tags", g.Asset+" / "+g.Sensor, g.State, g.Input)
	}
	for state, n := range v.TagStates {
		if !strings.Contains(d.Text["tag-sums"], fmt.Sprintf("%d %s", n, state)) {
			t.Errorf("tags: %d %s are not in %q", n, state, d.Text["tag-sums"])
		}
	}
	for _, s := range v.Clock.Sources {
		word := map[string]string{"OK": "right", "OFFSET_POSSIBLE": "not proven off", "OFFSET_AHEAD": "ahead"}[s.Verdict]
		d.has(t, "sources", strings.Trim(s.Input+" / "+s.Device, " /"), word)
	}
	for _, u := range v.Uplinks {
		d.has(t, "uplinks", u.Name, "online", u.Backlog)
	}
	s := d.Terms["store"]
	if !strings.HasPrefix(s["Readings kept"], fmt.Sprint(v.Store.Readings)) || s["Lost"] != "nothing" || s["Sums"] != "every reading is accounted for" {
		t.Errorf("store: %v", s)
	}
	if c := d.Terms["config"]; c["Hash"] != v.Configuration.Hash || c["Rejected edit"] != "none" || c["Generation"] != fmt.Sprint(v.Generation) || c["Version"] != v.Version {
		t.Errorf("configuration: %v", c)
	}
	checkTiles(t, d)
}

// checkTiles checks that each part of the gateway says at a glance how it is.
func checkTiles(t *testing.T, d *drawn) {
	t.Helper()
	v := &d.View
	for id, want := range map[string][2]string{
		"t-clock": {"ok", "± "}, "t-inputs": {"ok", "2 of 2 connected"}, "t-tags": {"err", fmt.Sprintf("%d of 10 good", v.TagStates["good"])},
		"t-sources": {"err", "1 of "}, "t-marks": {"ok", ""}, "t-windows": {"warn", ""}, "t-results": {"", fmt.Sprintf("%d values", len(v.Results))},
		"t-disorder": {"", " late"}, "t-held": {"err", " readings"}, "t-uplinks": {"ok", "1 of 1 online"}, "t-store": {"ok", ""}, "t-config": {"ok", v.Configuration.Hash},
	} {
		got := d.Tiles[id]
		if len(got) != 4 || got[2] == "" || !strings.Contains(got[2], want[1]) || want[0] != "" && got[0] != want[0] {
			t.Errorf("%s says %q, want %q", id, got, want)
		}
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
		if string(f[1]) == "tidemark_certificate_end_timestamp_seconds" {
			continue // the demo's ends have none
		}
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

// TestAlertRules: Prometheus takes them, and each fires when it should and not before.
func TestAlertRules(t *testing.T) {
	begin(t)
	promtool(t, nil, "check", "rules", "../../configs/alerts.yaml")
	promtool(t, nil, "test", "rules", "../../configs/testdata/alerts_test.yaml")
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
	b.until(`document.querySelectorAll(".more:not([hidden])").length === 2`) // of the windows and the tags
	b.eval(`document.querySelectorAll(".more:not([hidden])").forEach((b) => b.click())`, nil)
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
		// The lanes of the windows fill up in the first minutes: they do not count.
		var lanes float64
		b.eval(`2 * document.querySelectorAll(".lane i, .spark, .spark *").length`, &lanes)
		s.page, s.nodes, s.gateway = heap.UsedSize, dom.Nodes-lanes, anonymous(t, gw.PID())
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
