package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/eclipse/paho.golang/paho"

	"tidemark/clock"
	"tidemark/gateway"
	"tidemark/gateway/sim"
)

const onlineConfig = `
gateway: {id: plant}
clock: {servers: [%s], poll_min: 250ms, poll_max: 250ms}
store: {path: %s}
web: {listen: ""}
inputs:
  - name: line
    mqtt:
      url: mqtt://%[3]s
      subscribe: [{topic: "line/{asset}/{device}", share: plant, time: {path: ts, unit: ms}, sensors: {temp: {path: v}}}]
features: [{name: minute, version: 1, window: 1m, functions: [count]}]
uplinks:
  - {name: up, mqtt: {url: "mqtt://%[3]s", client_id: plant-up}}
  - {name: away, mqtt: {url: "mqtt://127.0.0.1:1", client_id: plant-away}}
`

// TestCheckOnline measures a right clock and one that is 61 minutes ahead, beside
// whatever else the broker serves.
func TestCheckOnline(t *testing.T) {
	p := &plant{t: t, file: filepath.Join(t.TempDir(), "tidemark.yaml")}
	broker, err := sim.NewBroker()
	if err != nil {
		t.Fatal(err)
	}
	var served sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	served.Go(func() { _ = broker.Run(ctx) })
	var servers []string
	for range 3 {
		ts := &sim.TimeServer{Stratum: 2}
		if err := ts.Listen(time.Now); err != nil {
			t.Fatal(err)
		}
		served.Go(func() { _ = ts.Run(ctx) })
		servers = append(servers, ts.Addr())
	}
	p.connect(broker.Addr())
	served.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			for device, ahead := range map[string]time.Duration{"right": 0, "plc": 61 * time.Minute} {
				payload := fmt.Appendf(nil, `{"ts":%d,"v":%d}`, time.Now().Add(ahead).UnixMilli(), i)
				_, _ = p.dev.Publish(ctx, &paho.Publish{Topic: "line/press/" + device, QoS: 1, Payload: payload})
			}
			time.Sleep(100 * time.Millisecond)
		}
	})
	defer served.Wait()
	defer stop()
	if err := os.WriteFile(p.file, fmt.Appendf(nil, onlineConfig, strings.Join(servers, ", "), filepath.Join(t.TempDir(), "t.db"), broker.Addr()), 0o644); err != nil {
		t.Fatal(err)
	}
	out, errOut, code := p.try("check", "-c", p.file, "--online", "--for", "3s", "--json")
	var r checkReport
	if err := json.Unmarshal([]byte(out), &r); err != nil || r.Online == nil {
		t.Fatalf("%v: %s %s", err, out, errOut)
	}
	in := r.Online.Inputs[0]
	if code != exitRuntime || r.Online.OK || r.Online.Clock.State != "synchronized" || !in.OK || in.Readings["ACCEPT"] == 0 || in.Reasons["OFFSET_AHEAD"] == 0 {
		t.Errorf("exit %d, %s, %+v, reader %+v", code, r.Online.Clock.State, in, in.Reader)
	}
	if worst := r.Online.Clock.Sources[0]; in.WhenWrong != "correct_offset" || worst.Device != "plc" || worst.OffsetLoNS < 3659e9 || worst.OffsetLoNS > 3661e9 {
		t.Errorf("policy %q for %+v", in.WhenWrong, worst)
	}
	if u := r.Online.Uplinks; !u[0].OK || u[1].OK || !strings.Contains(u[1].Problem, "127.0.0.1:1") {
		t.Errorf("uplinks: %+v", u)
	}
}

func TestPrintOnline(t *testing.T) {
	var out bytes.Buffer
	err := printCheck(&out, &checkReport{File: "tidemark.yaml", OK: true, Inputs: 2, Uplinks: 1, Online: &gateway.Probed{
		Clock: clock.Status{State: "synchronized", BoundNS: 2e6, Servers: []clock.ServerStatus{{Address: "10.0.3.1", Verdict: "truechimer", OffsetNS: 1e6, DistanceNS: 2e6, Stratum: 2}},
			Advice: "one NTP server cannot be checked against another; configure four",
			Sources: []clock.SourceStatus{
				{Input: "kepware-3", Device: "plc-7", OffsetLoNS: 3660e9, OffsetHiNS: 3661e9, Verdict: "OFFSET_AHEAD", Samples: 30, Policy: "correct_offset", Advice: "248 tags of kepware-3 plc-7 wait: its clock is 61 min ahead"},
				{Input: "kepware-3", Server: true, OffsetLoNS: -3e6, OffsetHiNS: 4e6, Verdict: "OK", Samples: 8},
			}},
		Inputs: []gateway.ProbedInput{
			{Name: "kepware-3", OK: true, Reader: &gateway.ReaderStatus{State: "connected"}, Readings: map[string]int{"ACCEPT": 10, "QUARANTINE": 30}, Reasons: map[string]int{"OFFSET_AHEAD": 30}, WhenWrong: "correct_offset"},
			{Name: "vibration", Reader: &gateway.ReaderStatus{State: "refused", Problem: "the broker refuses the login"}, Rejects: map[string]int{"not_json": 2}},
		},
		Uplinks: []gateway.ProbedUplink{{Name: "plant", OK: true}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "online.txt", out.String())
}
