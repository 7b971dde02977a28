package interop

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"tidemark/test/process"
)

// TestOtherProtocols runs docs/other-protocols.md: two controllers, the Telegraf that
// polls them and the gateway behind it, each with the configuration of the page.
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
	text := strings.NewReplacer("mqtt://127.0.0.1:1883", b.URL(),
		"version: 1,", "version: 1, window: 8s, out_of_orderness: 200ms, flush_after: 0s,").Replace(block("yaml"))
	process.Write(t, config, text+fmt.Sprintf("clock: {trust: local}\nweb: {listen: \"\"}\nuplinks: [{name: plant, mqtt: {url: %q}}]\n", b.URL()))
	gw := &service{Process: process.Prepare(t, dir, binary, "run", "-c", config), config: config}
	if out, err := exec.Command(binary, "check", "-c", config).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	gw.Start()
	out := newListener(t, b, "reader", "tidemark/#")
	polls := newListener(t, b, "polls", "telegraf/#")

	modbus, s7 := process.FreePort(t, "tcp"), process.FreePort(t, "tcp")
	process.Prepare(t, process.Scratch(t), "python3", "peers/fieldbus/controllers.py", strconv.Itoa(modbus), strconv.Itoa(s7)).Start()
	for _, port := range []int{modbus, s7} {
		process.Eventually(t, 20*time.Second, func() error {
			c, err := net.DialTimeout("tcp", process.Loopback(port), time.Second)
			if err == nil {
				c.Close()
			}
			return err
		})
	}
	telegraf := filepath.Join(dir, "telegraf.conf")
	process.Write(t, telegraf, strings.NewReplacer("mqtt://127.0.0.1:1883", b.URL(),
		"10.0.3.30:502", process.Loopback(modbus), "10.0.3.31:102", process.Loopback(s7)).Replace(block("toml")))
	process.Prepare(t, dir, "telegraf", "--config", telegraf).Start()

	want := map[string]string{"press-07/speed": "1480", "press-07/temperature": "61.5", "compressor-2/rpm": "712.5"}
	host := regexp.MustCompile(`host=[^,]*`)
	process.Eventually(t, 60*time.Second, func() error {
		lines := map[string]bool{}
		for _, m := range polls.heard() {
			line := host.ReplaceAllString(string(m.payload), "host=edge")
			lines[line[:strings.LastIndexByte(line, ' ')]] = true
		}
		for line := range strings.Lines(block("text")) {
			if line = line[:strings.LastIndexByte(line, ' ')]; !lines[line] {
				return fmt.Errorf("telegraf did not write the page's %q but %v", line, lines)
			}
		}
		full := map[string]string{}
		for _, m := range out.heard() {
			var r struct {
				Type, Asset, Sensor string
				Values              struct{ Count, Mean json.Number }
			}
			if json.Unmarshal(m.payload, &r) != nil || r.Type != "feature" {
				continue
			}
			// A window of eight seconds has eight polls, one more or less at its ends.
			if n, err := r.Values.Count.Int64(); err == nil && n >= 7 && n <= 9 {
				full[r.Asset+"/"+r.Sensor] = r.Values.Mean.String()
			}
		}
		if !maps.Equal(full, want) {
			return fmt.Errorf("full windows say %v, want %v", full, want)
		}
		return nil
	})
	st, err := gw.status()
	if err != nil {
		t.Fatal(err)
	}
	if c := st.Inputs[0].Counts; c.Accepted < 28 || c.Accepted+c.Duplicate != c.Received {
		t.Errorf("%+v: want every reading accepted, the status too", c)
	}
}
