package web_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"tidemark/gateway/web"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type shown struct{ metrics, alive, ready error }

func (s *shown) Metrics(context.Context) ([]byte, error) { return []byte("up 1\n"), s.metrics }
func (s *shown) Alive(context.Context) error             { return s.alive }
func (s *shown) Ready(context.Context) error             { return s.ready }

func TestAnswers(t *testing.T) {
	full := errors.New("the disk is full")
	for _, c := range []struct {
		path, host string // asked from this machine
		shown      shown
		code       int
		body       string
	}{
		{"/metrics", "127.0.0.1:8080", shown{}, 200, "up 1\n"},
		{"/metrics", "localhost", shown{metrics: full}, 503, "the disk is full\n"},
		{"/healthz", "[::1]:8080", shown{ready: full}, 200, "ok\n"},
		{"/healthz", "LOCALHOST:1", shown{alive: full}, 503, "the disk is full\n"},
		{"/readyz", "127.0.0.9", shown{}, 200, "ok\n"},
		{"/readyz", "::1", shown{ready: full}, 503, "the disk is full\n"},
		{"/elsewhere", "127.0.0.1", shown{}, 404, "404 page not found\n"},
		{"/metrics", "evil.example:8080", shown{}, 403, "ask by a loopback address or as localhost\n"},
		{"/metrics", "10.0.0.1", shown{}, 403, "ask by a loopback address or as localhost\n"},
	} {
		s := web.New("127.0.0.1:0", &c.shown, nil, zerolog.Nop())
		r := httptest.NewRequest("GET", c.path, nil)
		r.Host, r.RemoteAddr = c.host, "127.0.0.1:50000"
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != c.code || w.Body.String() != c.body {
			t.Errorf("%s as %s: %d %q, want %d %q", c.path, c.host, w.Code, w.Body, c.code, c.body)
		}
	}
}

// Without a token only this machine may ask, by a name that no page from elsewhere has.
func TestNobodyElseMayAsk(t *testing.T) {
	for _, c := range []struct{ host, from string }{
		{"localhost", "192.0.2.1:5"}, {"127.0.0.1", "[2001:db8::1]:5"}, {"127.0.0.1.evil.example", "127.0.0.1:5"},
		{"localhost.evil.example", "127.0.0.1:5"}, {"localhost.", "127.0.0.1:5"}, {"evil@localhost", "127.0.0.1:5"}, {"", "127.0.0.1:5"},
		{"0.0.0.0", "127.0.0.1:5"}, {"2130706433", "127.0.0.1:5"}, {"localhost", ""},
	} {
		r := httptest.NewRequest("GET", "/metrics", nil)
		r.Host, r.RemoteAddr = c.host, c.from
		w := httptest.NewRecorder()
		web.New("127.0.0.1:0", &shown{}, nil, zerolog.Nop()).ServeHTTP(w, r)
		if h := w.Header(); w.Code != 403 || h.Get("Content-Security-Policy") == "" || h.Get("Cache-Control") != "no-store" || h.Get("Cross-Origin-Resource-Policy") != "same-origin" {
			t.Errorf("%+v: %d, %v", c, w.Code, w.Header())
		}
	}
}

// An address that is taken is said once; when it is free, somebody answers.
func TestListens(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	said := make(chan string, 10)
	s := web.New(ln.Addr().String(), &shown{}, nil, zerolog.New(lines(said)))
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	if l := <-said; !strings.Contains(l, ln.Addr().String()) || !strings.Contains(l, `"level":"warn"`) {
		t.Errorf("said %s", l)
	}
	ln.Close()
	if l := <-said; !strings.Contains(l, `"level":"info"`) {
		t.Errorf("said %s", l)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	res, err := client.Get("http://" + ln.Addr().String() + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	if body, err := io.ReadAll(res.Body); err != nil || string(body) != "ok\n" {
		t.Errorf("%q, %v", body, err)
	}
	res.Body.Close()
	cancel()
	wg.Wait()
}

// lines passes each line on.
type lines chan string

func (l lines) Write(b []byte) (int, error) {
	l <- string(b)
	return len(b), nil
}

// The address that is told is one that a person can ask for.
func TestURLNamesAHost(t *testing.T) {
	host, err := os.Hostname()
	if err != nil {
		t.Skip(err)
	}
	for listen, want := range map[string]string{"127.0.0.1:0": "127.0.0.1", "0.0.0.0:0": host, "[::]:0": host} {
		said := make(chan string, 10)
		s := web.New(listen, &shown{}, []byte("token"), zerolog.New(lines(said)))
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = s.Run(ctx) })
		<-said
		if got, err := url.Parse(s.URL()); err != nil || got.Hostname() != want {
			t.Errorf("%s: %s, %v", listen, s.URL(), err)
		}
		cancel()
		wg.Wait()
	}
}
