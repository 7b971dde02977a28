package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"tidemark/buffer"
	"tidemark/clock"
	"tidemark/gateway"
)

// calmStatus is a bench where all is well.
func calmStatus() *gateway.Status {
	return &gateway.Status{
		Verdict: "trustworthy", Since: "2026-01-01T11:58:00Z", Gateway: "line-3", At: "2026-01-01T12:00:10.123456789Z", Conserved: true, Block: 12,
		Clock: clock.Status{State: "unknown", Trust: "local", BoundNS: 1e9},
		Inputs: []gateway.InputStatus{{
			Name: "devices", Reader: &gateway.ReaderStatus{State: "connected", LastData: "2026-01-01T12:00:09.623456789Z"},
			Counts: gateway.InputCounts{Received: 1, Accepted: 1},
		}},
		Features: []gateway.FeatureStatus{{
			Name: "five-minutes", Watermark: "2026-01-01T11:59:49.5Z", Keys: 1, OpenWindows: 1, Windowed: 1,
			HeldBy: []string{"devices"}, Active: []string{"devices"},
		}},
		Uplinks: []gateway.UplinkStatus{{Name: "plant", State: "online", LastAck: "2026-01-01T11:58:50Z", InFlight: 1}},
		Store:   buffer.Stats{Readings: 1, UsedBytes: 1 << 20, QuotaBytes: 64 << 20, FreeBytes: 20000 << 20},
	}
}

// troubledStatus is a plant where much is wrong.
func troubledStatus() *gateway.Status {
	st := calmStatus()
	st.Verdict, st.Since, st.Conserved = "degraded", "2026-01-01T11:00:00.123456789Z", false
	st.Because = []gateway.Fault{
		{Name: "input devices", Detail: "the broker refuses the login; look at login", Since: "2026-01-01T11:00:00.123456789Z"},
		{Name: "uplink plant", Detail: "waiting: nobody listens at 127.0.0.1:1883", Since: "2026-01-01T11:00:01Z"},
	}
	st.Clock = clock.Status{State: "holdover", Trust: "checked", BoundNS: 12_345_678, HasOffset: true, OffsetLoNS: -1_500_000, OffsetHiNS: 4_100_000, Method: "ntp",
		Advice: "no time source for 8 polls",
		Servers: []clock.ServerStatus{
			{Address: "10.0.3.1", Verdict: "truechimer", OffsetNS: 1_300_000, DistanceNS: 2_800_000, Stratum: 2},
			{Address: "10.0.3.2", Verdict: "falseticker", OffsetNS: -90e9, DistanceNS: 3_000_000, Stratum: 2},
			{Address: "ntp.plant.example", Verdict: "dns", Error: "lookup ntp.plant.example: no such host"},
		},
		Sources: []clock.SourceStatus{
			{Input: "kepware-3", Verdict: "OFFSET_AHEAD", Advice: "248 tags of kepware-3 wait: its clock is 61 min ahead: set `when_wrong: correct_offset`, or its clock"},
			{Input: "devices", Verdict: "OK"},
		}}
	st.Inputs[0].Reader = &gateway.ReaderStatus{State: "refused", Problem: "the broker refuses the login; look at login"}
	st.Inputs[0].Counts = gateway.InputCounts{Received: 60, Accepted: 20, Duplicate: 2, Malformed: 3, Unmatched: 1, Quarantined: 14, Pending: 20, PendingAccepted: 15, PendingQuarantined: 1, ReleasedAccepted: 2}
	st.Inputs[0].QuarantinedNow = 13
	st.Inputs[0].PendingNow = 4
	st.Inputs[0].Quarantine = map[string]uint64{"FUTURE": 11, "UNIT_MISMATCH": 2, "FROZEN": 2}
	st.Inputs[0].Rejects = map[string]uint64{"no_value": 3, "unmatched_topic": 1}
	st.Inputs = append(st.Inputs, gateway.InputStatus{Name: "kepware-3"})
	st.Inputs = append(st.Inputs, gateway.InputStatus{Name: "press-plc", Reader: &gateway.ReaderStatus{
		State: "connected", Unread: []gateway.UnreadNode{{Place: "nsu=u;s=p", Reason: "the configuration says kPa and the server bar"}, {Place: "nsu=u;s=q", Reason: "x"}},
	}})
	st.Features[0].Idle = []string{"kepware-3"}
	st.Features = append(st.Features, gateway.FeatureStatus{Name: "off", Disabled: "version 1 has another definition; raise it"})
	st.Uplinks[0] = gateway.UplinkStatus{Name: "plant", State: "waiting", Reason: "nobody listens at 127.0.0.1:1883", Backlog: 7, SetAside: 1, Oldest: "2026-01-01T11:40:00Z", CertificateEnds: "2026-01-13T12:00:00Z"}
	st.Uplinks = append(st.Uplinks, gateway.UplinkStatus{Name: "cloud", State: "connecting", Reason: "for the first time"})
	return st
}

func TestPrintStatus(t *testing.T) {
	for name, st := range map[string]*gateway.Status{"status_calm.txt": calmStatus(), "status_troubled.txt": troubledStatus(), "status_brief.txt": troubledStatus(), "status_worse.txt": worseStatus()} {
		var out bytes.Buffer
		if err := printStatus(&out, st, name == "status_troubled.txt"); err != nil {
			t.Fatal(err)
		}
		golden(t, name, out.String())
		if name != "status_troubled.txt" && !fits(out.String()) {
			t.Errorf("%s does not fit a terminal", name)
		}
	}
}

// worseStatus is a plant where everything is wrong.
func worseStatus() *gateway.Status {
	st := troubledStatus()
	long := strings.Repeat("a reason that goes on and on, ", 10)
	for i := range 40 {
		name := fmt.Sprintf("%s-%d", strings.Repeat("long", i), i)
		st.Because = append(st.Because, gateway.Fault{Name: "input " + name, Detail: long, Since: "2025-12-31T11:00:00Z"})
		st.Inputs = append(st.Inputs, gateway.InputStatus{Name: name, Counts: gateway.InputCounts{Received: 1 << 60, Accepted: 1 << 59, Malformed: 1 << 58, Pending: 1 << 57}})
		st.Features = append(st.Features, gateway.FeatureStatus{Name: name, Disabled: long})
		st.Uplinks = append(st.Uplinks, gateway.UplinkStatus{Name: name, State: "waiting", Backlog: 1 << 60, Reason: long, CertificateEnds: "2026-01-05T11:00:00Z", Oldest: "2025-12-31T11:00:00Z"})
		st.Clock.Sources = append(st.Clock.Sources, clock.SourceStatus{Input: name, Advice: long})
	}
	return st
}

func TestClockLine(t *testing.T) {
	for want, c := range map[string]clock.Status{
		"unchecked (trust: local), taken to be within 1.0 s":                                {State: "unknown", Trust: "local", BoundNS: 1e9},
		"synchronized, within 1.3 ms, 1 of 1 server agree":                                  {State: "synchronized", Trust: "checked", BoundNS: 1_260_000, Servers: []clock.ServerStatus{{Verdict: "truechimer"}}},
		"unknown, no server is named, and nothing on this host vouches for it":              {State: "unknown", Trust: "checked", BoundNS: -1, HostMethod: "none"},
		"synchronized, within 0.5 ms, no server is named, only this host's chrony is asked": {State: "synchronized", Trust: "checked", BoundNS: 500_000, HostMethod: "chrony"},
	} {
		if got := clockLine(&c); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestStatusWithoutAGateway(t *testing.T) {
	dir := t.TempDir()
	left := filepath.Join(dir, "left.sock") // by a gateway that was killed
	ln, err := net.Listen("unix", left)
	if err != nil {
		t.Fatal(err)
	}
	ln.(*net.UnixListener).SetUnlinkOnClose(false)
	ln.Close()
	for _, socket := range []string{filepath.Join(dir, "none.sock"), left} {
		var out, errOut bytes.Buffer
		code := run(t.Context(), []string{"status", "--socket", socket}, nil, &out, &errOut)
		if want := "tidemark: the gateway is not running: nobody listens at " + socket + "\n"; code != exitRuntime || errOut.String() != want {
			t.Errorf("exit %d, %q, want %q", code, &errOut, want)
		}
	}
	err = explainSilence("x.sock", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.EACCES)})
	if want := "permission denied: you may not open x.sock; ask as the gateway's user, its group or root"; err.Error() != want {
		t.Errorf("%q, want %q", err, want)
	}
}

// serveStatus answers at socket until stop is called.
func serveStatus(t *testing.T, socket string) (stop func()) {
	t.Helper()
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(calmStatus())
	})}
	go func() { _ = srv.Serve(ln) }()
	return func() { srv.Close() }
}

// heard is a writer that tells when it has taken what is waited for.
type heard struct {
	mu   sync.Mutex
	text strings.Builder
}

func (h *heard) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.Write(b)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.text.String()
}

func (h *heard) holds(want string) bool { return strings.Contains(h.String(), want) }

func (h *heard) wait(t *testing.T, want string) {
	t.Helper()
	for range 500 {
		h.mu.Lock()
		_, rest, ok := strings.Cut(h.text.String(), want)
		if ok {
			h.text.Reset()
			h.text.WriteString(rest)
		}
		h.mu.Unlock()
		if ok {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("%q never came", want)
}

func TestStatusWatchOutlivesARestart(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "g.sock")
	ctx, interrupt := context.WithCancel(t.Context())
	var out heard
	cmd := &cobra.Command{}
	cmd.SetOut(&out)
	cmd.SetContext(ctx)
	done := make(chan error, 1)
	stop := serveStatus(t, socket)
	go func() {
		done <- watchStatus(cmd, func(ctx context.Context) error { return showStatus(ctx, cmd, socket, false, false, true) }, false, 5*time.Millisecond)
	}()
	out.wait(t, "TRUSTWORTHY")
	stop()
	out.wait(t, "no answer: the gateway is not running: nobody listens at "+socket+"; asking again\n")
	stop = serveStatus(t, socket)
	defer stop()
	out.wait(t, "TRUSTWORTHY")
	interrupt()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestPrintJSONHasNoNulls(t *testing.T) {
	var out bytes.Buffer
	if err := printJSON(&out, troubledStatus()); err != nil {
		t.Fatal(err)
	}
	if got := strings.Count(out.String(), "null"); got != 1 || !strings.Contains(out.String(), `"reader": null`) {
		t.Errorf("%d nulls, want only that of the input which nobody reads:\n%s", got, &out)
	}
	out.Reset()
	if err := printJSON(&out, struct{ A []string }{}); err != nil || out.String() != "{\n  \"A\": []\n}\n" {
		t.Errorf("%v %q", err, &out)
	}
}
