package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"tidemark/test/process"
)

// TestOtherProtocols runs the configuration of docs/other-protocols.md, and the lines
// that Telegraf writes there at the times of now.
func TestOtherProtocols(t *testing.T) {
	begin(t)
	page, err := os.ReadFile("../../docs/other-protocols.md")
	if err != nil {
		t.Fatal(err)
	}
	block := func(language string) string {
		found := regexp.MustCompile("(?s)```" + language + "\n(.*?)```").FindSubmatch(page)
		if found == nil {
			t.Fatalf("the page has no %s", language)
		}
		return string(found[1])
	}
	b := process.NewMosquitto(t)
	dir := process.Scratch(t)
	config := filepath.Join(dir, "tidemark.yaml")
	text := strings.ReplaceAll(block("yaml"), "mqtt://127.0.0.1:1883", b.URL())
	text = strings.ReplaceAll(text, "version: 1,", "version: 1, window: 8s, out_of_orderness: 200ms, flush_after: 0s,")
	process.Write(t, config, text+fmt.Sprintf("clock: {trust: local}\nweb: {listen: \"\"}\nuplinks: [{name: plant, mqtt: {url: %q}}]\n", b.URL()))
	gw := &service{Process: process.Prepare(t, dir, binary, "run", "-c", config), config: config}
	if out, err := exec.Command(binary, "check", "-c", config).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	gw.Start()
	out := newListener(t, b, "reader", "tidemark/#")
	process.Eventually(t, 20*time.Second, func() error {
		st, err := gw.status()
		if err == nil && st.Inputs[0].Reader.State != "connected" {
			err = fmt.Errorf("the input is %s", st.Inputs[0].Reader.State)
		}
		return err
	})
	p := newPublisher(t, b, "telegraf")
	send := func(at time.Time) {
		for line := range strings.Lines(block("text")) {
			name, _, _ := strings.Cut(line, ",")
			line = strings.Replace(line, "1767225600000000000", fmt.Sprint(at.UnixNano()), 1)
			if _, err := p.client.Publish(t.Context(), &paho.Publish{Topic: "telegraf/edge/" + name, QoS: 1, Payload: []byte(line)}); err != nil {
				t.Fatal(err)
			}
		}
	}
	start := nextEightSeconds()
	for _, s := range []time.Duration{0, 1, 2, 3} {
		at := start.Add(s * time.Second)
		time.Sleep(time.Until(at))
		send(at)
	}
	want := map[string]string{"press-07/speed": "4 1480", "press-07/temperature": "4 61.5", "compressor-2/rpm": "4 712.5"}
	time.Sleep(time.Until(start.Add(8 * time.Second)))
	process.Eventually(t, 30*time.Second, func() error {
		send(time.Now()) // lets the watermark pass the window
		got := map[string]string{}
		for _, m := range out.heard() {
			var r struct {
				Type, Asset, Sensor string
				WindowStart         string `json:"window_start"`
				Values              map[string]any
			}
			if json.Unmarshal(m.payload, &r) == nil && r.Type == "feature" && strings.HasPrefix(r.WindowStart, start.UTC().Format("2006-01-02T15:04:05")) {
				got[r.Asset+"/"+r.Sensor] = fmt.Sprint(r.Values["count"], " ", r.Values["mean"])
			}
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("features %v, want %v", got, want)
		}
		return nil
	})
	st, err := gw.status()
	if err != nil {
		t.Fatal(err)
	}
	if c := st.Inputs[0].Counts; c.Accepted < 20 || c.Accepted+c.Duplicate != c.Received {
		t.Errorf("%+v: want every reading accepted, the status too", c)
	}
}
