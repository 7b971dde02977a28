package web_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"tidemark/gateway/web"
)

// looked serves a page over a view, and counts how often that is made.
func looked(t *testing.T, view web.View) *httptest.Server {
	t.Helper()
	p := web.NewPage(view, zerolog.Nop())
	s := web.New("127.0.0.1:0", &shown{}, nil, zerolog.Nop())
	p.Register(s)
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	wg.Go(func() { _ = p.Run(ctx) })
	srv := httptest.NewServer(s)
	t.Cleanup(func() {
		srv.Close()
		cancel()
		wg.Wait()
	})
	return srv
}

func get(t *testing.T, url string) (int, string, http.Header) {
	t.Helper()
	res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var b strings.Builder
	if _, err := bufio.NewReader(res.Body).WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, b.String(), res.Header
}

// Everything that the page needs comes from the gateway: nothing names another
// host, nothing is written into the document that a policy would have to allow.
func TestPageIsWhole(t *testing.T) {
	srv := looked(t, func(context.Context) (any, error) { return map[string]int{"block": 7}, nil })
	size := 0
	for path, kind := range map[string]string{"/": "text/html", "/app.js": "text/javascript", "/format.js": "text/javascript", "/style.css": "text/css", "/icon.svg": "image/svg+xml"} {
		code, body, head := get(t, srv.URL+path)
		size += len(body)
		if code != 200 || !strings.HasPrefix(head.Get("Content-Type"), kind) || head.Get("Content-Security-Policy") == "" {
			t.Errorf("%s: %d, %v", path, code, head)
		}
		for _, alien := range []string{"://", "style=\"", "onclick", "innerHTML", "eval("} {
			if at := strings.Index(strings.ReplaceAll(body, "http://www.w3.org/2000/svg", ""), alien); at >= 0 {
				t.Errorf("%s has %q", path, alien)
			}
		}
	}
	if size > 200_000 {
		t.Errorf("the page has %d bytes", size)
	}
	if code, body, _ := get(t, srv.URL+"/api/view"); code != 200 || body != "{\"block\":7}\n" {
		t.Errorf("%d %q", code, body)
	}
}

// Two who look share each view; when nobody looks, none is made.
func TestStreamSendsViewsWhileSomebodyLooks(t *testing.T) {
	var made atomic.Int32
	srv := looked(t, func(context.Context) (any, error) {
		if made.Add(1) == 2 {
			return nil, errors.New("restarting")
		}
		return "view", nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var lines [2]*bufio.Scanner
	for i := range lines {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, srv.URL+"/api/stream", nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if i == 0 {
			lines[i] = bufio.NewScanner(res.Body)
			lines[i].Scan()
			if got := lines[i].Text(); got != `data: "view"` {
				t.Fatalf("first: %q", got)
			}
			lines[i].Scan()
			continue
		}
		lines[i] = bufio.NewScanner(res.Body)
	}
	for i := range lines {
		lines[i].Scan()
		if got := lines[i].Text(); got != `data: {"error":"restarting"}` {
			t.Errorf("reader %d: %q", i, got)
		}
	}
	if n := made.Load(); n > 3 {
		t.Errorf("%d views were made for two that were seen", n)
	}
}

func TestTokenLetsIn(t *testing.T) {
	s := web.New("0.0.0.0:0", &shown{}, []byte("open sesame"), zerolog.Nop())
	ask := func(edit func(*http.Request)) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", "/readyz", nil)
		r.Host = "gateway.plant.example"
		edit(r)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	if w := ask(func(*http.Request) {}); w.Code != 401 || !strings.Contains(w.Body.String(), "<form") {
		t.Errorf("without: %d %s", w.Code, w.Body)
	}
	if w := ask(func(r *http.Request) { r.Header.Set("Authorization", "Bearer open") }); w.Code != 401 {
		t.Errorf("with a wrong one: %d", w.Code)
	}
	if w := ask(func(r *http.Request) { r.Header.Set("Authorization", "Bearer open sesame") }); w.Code != 200 {
		t.Errorf("as a bearer: %d %s", w.Code, w.Body)
	}
	login := func(token string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("POST", "/login", strings.NewReader("token="+token))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		return w
	}
	if w := login("open"); w.Code != 401 || len(w.Result().Cookies()) > 0 || !strings.Contains(w.Body.String(), "not the token") || !strings.Contains(w.Body.String(), "<form") {
		t.Errorf("a wrong login: %d %s", w.Code, w.Body)
	}
	w := login("open+sesame")
	cookies := w.Result().Cookies()
	if w.Code != 303 || len(cookies) != 1 || strings.Contains(cookies[0].Value, "sesame") || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode {
		t.Fatalf("login: %d, %v", w.Code, cookies)
	}
	if w := ask(func(r *http.Request) { r.AddCookie(cookies[0]) }); w.Code != 200 {
		t.Errorf("with the cookie: %d", w.Code)
	}
}

// Somebody who looks and takes nothing for half a minute makes room for others.
func TestStreamEndsOfWhoTakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var made atomic.Int32
		p := web.NewPage(func(context.Context) (any, error) { made.Add(1); return "view", nil }, zerolog.Nop())
		s := web.New("127.0.0.1:0", &shown{}, nil, zerolog.Nop())
		p.Register(s)
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { _ = p.Run(ctx) })
		here, there := net.Pipe()
		srv := &http.Server{Handler: s}
		wg.Go(func() { _ = srv.Serve(&oneConn{c: local{there}, ctx: ctx}) })
		look := func() {
			if _, err := here.Write([]byte("GET /api/stream HTTP/1.1\r\nHost: localhost\r\n\r\n")); err != nil {
				t.Error(err)
			}
		}
		look()
		first := bufio.NewScanner(here)
		for first.Scan() && first.Text() != `data: "view"` {
		}
		time.Sleep(29 * time.Second)
		if n := made.Load(); n < 29 {
			t.Errorf("%d views in 29 s", n)
		}
		time.Sleep(3 * time.Second)
		before := made.Load()
		time.Sleep(time.Minute)
		if n := made.Load(); n != before {
			t.Errorf("%d views more are made for nobody", n-before)
		}
		cancel()
		srv.Close()
		here.Close()
		wg.Wait()
	})
}

// oneConn is a listener to which one connection comes.
type oneConn struct {
	c   net.Conn
	ctx context.Context
}

func (l *oneConn) Accept() (net.Conn, error) {
	if c := l.c; c != nil {
		l.c = nil
		return c, nil
	}
	<-l.ctx.Done()
	return nil, net.ErrClosed
}

// local is a connection from this machine.
type local struct{ net.Conn }

func (local) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 5} }

func (l *oneConn) Close() error   { return nil }
func (l *oneConn) Addr() net.Addr { return &net.TCPAddr{} }

// Without the token nothing is to be had but the form that asks for it.
func TestNobodyGetsRoundTheToken(t *testing.T) {
	s := web.New("0.0.0.0:0", &shown{}, []byte("open sesame"), zerolog.Nop())
	web.NewPage(func(context.Context) (any, error) { return "secret", nil }, zerolog.Nop()).Register(s)
	none := func(*http.Request) {}
	header := func(name, value string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(name, value) }
	}
	for _, c := range []struct {
		method, target string
		edit           func(*http.Request)
	}{
		{"GET", "/metrics", none}, {"GET", "/", none}, {"GET", "/api/view", none}, {"GET", "/api/stream", none}, {"GET", "/app.js", none},
		{"HEAD", "/metrics", none}, {"POST", "/metrics", none}, {"GET", "/login", none}, {"GET", "//metrics", none},
		{"GET", "/style.css/../metrics", none}, {"GET", "/style.css/%2e%2e/metrics", none}, {"GET", "/metrics?/style.css", none}, {"GET", "/login/../metrics", none},
		{"GET", "/metrics", func(r *http.Request) { r.Host, r.RemoteAddr = "localhost", "127.0.0.1:5" }},
		{"GET", "/metrics", header("X-Forwarded-For", "127.0.0.1")},
		{"GET", "/metrics", header("Authorization", "Bearer ")}, {"GET", "/metrics", header("Authorization", "Bearer")},
		{"GET", "/metrics", header("Authorization", "Basic b3BlbiBzZXNhbWU=")}, {"GET", "/metrics", header("Authorization", "Bearer open sesame ")},
		{"GET", "/metrics", header("Cookie", "tidemark_token=")}, {"GET", "/metrics", header("Cookie", `tidemark_token="open sesame"`)},
		{"GET", "/metrics?token=open+sesame", none}, {"POST", "/login?token=open", none},
	} {
		r := httptest.NewRequest(c.method, c.target, nil)
		r.Host = "gateway.plant.example"
		c.edit(r)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != 401 || strings.Contains(w.Body.String(), "up 1") || strings.Contains(w.Body.String(), "secret") || len(w.Result().Cookies()) > 0 {
			t.Errorf("%s %s %v: %d %s", c.method, c.target, r.Header, w.Code, w.Body)
		}
	}
}
