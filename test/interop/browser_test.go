package interop

import (
	"bufio"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"tidemark/test/process"
)

// browser is a headless Chromium with one page, led by its DevTools protocol.
type browser struct {
	t       *testing.T
	ws      *websocket.Conn
	session string
	last    int
	said    []string // what the page wrote to the console, and errors of any kind
}

// newBrowser returns when the page can be led. It ends with the test.
func newBrowser(t *testing.T) *browser {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("chromium is needed for this suite: %v", err)
	}
	cmd := exec.Command(chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
		"--disable-extensions", "--disable-background-networking", "--remote-debugging-port=0", "--user-data-dir="+process.Scratch(t), "about:blank")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its children end with it
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	b := &browser{t: t}
	lines := bufio.NewScanner(stderr)
	for lines.Scan() {
		if _, url, ok := strings.Cut(lines.Text(), "DevTools listening on "); ok {
			if b.ws, _, err = websocket.DefaultDialer.Dial(url, nil); err != nil {
				t.Fatal(err)
			}
			break
		}
	}
	if b.ws == nil {
		t.Fatal("chromium ended without listening")
	}
	go func() {
		for lines.Scan() { // so that it never waits for us
		}
	}()
	t.Cleanup(func() { b.ws.Close() })
	b.attach()
	return b
}

func (b *browser) attach() {
	b.t.Helper()
	var target struct{ TargetID string }
	b.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var attached struct{ SessionID string }
	b.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &attached)
	b.session = attached.SessionID
	for _, domain := range []string{"Runtime", "Log", "Page", "HeapProfiler"} {
		b.call(domain+".enable", nil, nil)
	}
}

// answer is a message of the protocol: an answer, or an event.
type answer struct {
	ID     int
	Method string
	Error  *struct{ Message string }
	Result json.RawMessage
	Params json.RawMessage
}

// call waits for the answer, and notes what the page says meanwhile.
func (b *browser) call(method string, params any, result any) {
	b.t.Helper()
	b.last++
	if params == nil {
		params = struct{}{}
	}
	ask := map[string]any{"id": b.last, "method": method, "params": params}
	if b.session != "" {
		ask["sessionId"] = b.session
	}
	if err := b.ws.WriteJSON(ask); err != nil {
		b.t.Fatalf("%s: %v", method, err)
	}
	for {
		_ = b.ws.SetReadDeadline(time.Now().Add(60 * time.Second))
		var a answer
		if err := b.ws.ReadJSON(&a); err != nil {
			b.t.Fatalf("%s: %v", method, err)
		}
		switch {
		case a.Method == "Runtime.consoleAPICalled", a.Method == "Runtime.exceptionThrown", a.Method == "Log.entryAdded":
			b.said = append(b.said, a.Method+" "+string(a.Params))
		case a.ID != b.last:
		case a.Error != nil:
			b.t.Fatalf("%s: %s", method, a.Error.Message)
		default:
			if result != nil {
				if err := json.Unmarshal(a.Result, result); err != nil {
					b.t.Fatalf("%s: %v", method, err)
				}
			}
			return
		}
	}
}

// eval runs JavaScript in the page, waits for what it promises, and reads that.
func (b *browser) eval(script string, result any) {
	b.t.Helper()
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails json.RawMessage
	}
	b.call("Runtime.evaluate", map[string]any{"expression": script, "awaitPromise": true, "returnByValue": true}, &r)
	if r.ExceptionDetails != nil {
		b.t.Fatalf("%s: %s", script, r.ExceptionDetails)
	}
	if result != nil {
		if err := json.Unmarshal(r.Result.Value, result); err != nil {
			b.t.Fatalf("%s gives %s: %v", script, r.Result.Value, err)
		}
	}
}

func (b *browser) open(url string) {
	b.t.Helper()
	b.call("Page.navigate", map[string]any{"url": url}, nil)
	b.until(`document.readyState === "complete"`)
}

// until waits until the page finds the condition true.
func (b *browser) until(condition string) {
	b.t.Helper()
	process.Eventually(b.t, 60*time.Second, func() error {
		var met bool
		b.eval(condition, &met)
		if !met {
			return fmt.Errorf("not so: %s", condition)
		}
		return nil
	})
}

// look makes the window as wide as that, and light or dark.
func (b *browser) look(width int, scheme string) {
	b.t.Helper()
	b.call("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 600}, nil)
	b.call("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}}, nil)
}

// shoot keeps a picture of the whole page in $TIDEMARK_SHOTS, for people to look at.
func (b *browser) shoot(name string) {
	dir := os.Getenv("TIDEMARK_SHOTS")
	if dir == "" {
		return
	}
	var shot struct{ Data string }
	b.call("Page.captureScreenshot", map[string]any{"captureBeyondViewport": true}, &shot)
	png, err := base64.StdEncoding.DecodeString(shot.Data)
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644)
	}
	if err != nil {
		b.t.Error(err)
	}
}

// press presses and releases a key.
func (b *browser) press(key string, code int) {
	b.t.Helper()
	for _, kind := range []string{"rawKeyDown", "keyUp"} {
		b.call("Input.dispatchKeyEvent", map[string]any{"type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code}, nil)
	}
}
