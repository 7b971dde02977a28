// Package web answers over HTTP: the local page, what Prometheus scrapes and what a
// supervisor asks. It only shows; nothing can be changed through it.
//
// On a loopback address everybody on the machine may ask, by a loopback name: a page
// in a browser on the same machine must not read it under a name of its own (DNS
// rebinding). On any other address a token is needed: as a bearer token, or typed in
// once by a person, whose browser keeps it as a cookie.
package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// Gateway is what is shown. Its methods may be called at any time, several at once,
// and fail while the gateway starts or stops.
type Gateway interface {
	// Metrics returns the metrics in Prometheus' text format.
	Metrics(ctx context.Context) ([]byte, error)
	// Alive returns nil if the gateway works: it answers, whatever it waits for.
	Alive(ctx context.Context) error
	// Ready returns nil if what arrives is stored and features are made of it.
	Ready(ctx context.Context) error
}

// Server listens on one address.
type Server struct {
	listen string
	token  []byte // what others must know; nil: nobody else may ask
	mux    *http.ServeMux
	url    atomic.Value // string
	log    zerolog.Logger
}

// answerWithin bounds how long the gateway may think about an answer.
const answerWithin = 5 * time.Second

// New returns a server for host:port. With a token it answers whoever knows it,
// without one only this machine.
func New(listen string, g Gateway, token []byte, log zerolog.Logger) *Server {
	s := &Server{listen: listen, token: token, mux: http.NewServeMux(), log: log}
	s.handle("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		text, err := g.Metrics(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(text)
	})
	s.handle("GET /healthz", verdict(g.Alive))
	s.handle("GET /readyz", verdict(g.Ready))
	return s
}

// URL is where it answers, empty while it does not listen.
func (s *Server) URL() string {
	url, _ := s.url.Load().(string)
	return url
}

// handle adds an answer that is given within answerWithin.
func (s *Server) handle(pattern string, answer http.HandlerFunc) {
	s.mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), answerWithin)
		defer cancel()
		answer(w, r.WithContext(ctx))
	})
}

func verdict(ask func(context.Context) error) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := ask(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		_, _ = w.Write([]byte("ok\n"))
	}
}

// retryAfter spaces the attempts to listen.
const retryAfter = 5 * time.Second

// Run answers until ctx ends. An address that is in use is said once and tried
// again: it is not worth stopping the gateway for, nor does it make what the gateway
// says less true.
func (s *Server) Run(ctx context.Context) error {
	for said := false; ctx.Err() == nil; {
		ln, err := net.Listen("tcp", s.listen)
		if err == nil {
			s.url.Store("http://" + reachable(ln.Addr()) + "/")
			s.log.Info().Str("url", s.URL()).Msg("the page and the metrics can be asked for")
			said = false
			err = s.serve(ctx, ln)
			s.url.Store("")
		}
		if ctx.Err() != nil {
			return nil
		}
		if !said {
			s.log.Warn().Err(err).Str("listen", s.listen).Msg("nobody can ask for the page or the metrics: free the address, or choose another under web.listen")
			said = true
		}
		select {
		case <-time.After(retryAfter):
		case <-ctx.Done():
		}
	}
	return nil
}

// reachable is an address as a person can type it: one that stands for all of the
// host's by the host's name.
func reachable(a net.Addr) string {
	tcp, ok := a.(*net.TCPAddr)
	name, err := os.Hostname()
	if !ok || err != nil || !tcp.IP.IsUnspecified() {
		return a.String()
	}
	return net.JoinHostPort(name, strconv.Itoa(tcp.Port))
}

func (s *Server) serve(ctx context.Context, ln net.Listener) error {
	srv := &http.Server{
		Handler: s, ReadHeaderTimeout: answerWithin, ReadTimeout: answerWithin, WriteTimeout: 2 * answerWithin, IdleTimeout: time.Minute,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	defer context.AfterFunc(ctx, func() { _ = srv.Close() })()
	err := srv.Serve(ln)
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.lets(w, r) {
		s.mux.ServeHTTP(w, r)
	}
}
