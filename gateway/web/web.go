// Package web answers over HTTP on the machine that the gateway runs on: what
// Prometheus scrapes and what a supervisor asks. It only shows; nothing can be
// changed through it, and nobody logs in, which is why it listens on the loopback
// interface alone and answers only those who ask it by a loopback name: a page in a
// browser on the same machine must not read it under a name of its own (DNS
// rebinding).
package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"strings"
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
	mux    *http.ServeMux
	log    zerolog.Logger
}

// answerWithin bounds how long the gateway may think about an answer.
const answerWithin = 5 * time.Second

// New returns a server for an address of the loopback interface, host:port.
func New(listen string, g Gateway, log zerolog.Logger) *Server {
	s := &Server{listen: listen, mux: http.NewServeMux(), log: log}
	s.mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		text, err := g.Metrics(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		_, _ = w.Write(text)
	})
	s.mux.HandleFunc("GET /healthz", verdict(g.Alive))
	s.mux.HandleFunc("GET /readyz", verdict(g.Ready))
	return s
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
			s.log.Info().Str("url", "http://"+ln.Addr().String()).Msg("metrics can be asked for")
			said = false
			err = s.serve(ctx, ln)
		}
		if ctx.Err() != nil {
			return nil
		}
		if !said {
			s.log.Warn().Err(err).Str("listen", s.listen).Msg("nobody can ask for metrics: free the address, or choose another under web.listen")
			said = true
		}
		select {
		case <-time.After(retryAfter):
		case <-ctx.Done():
		}
	}
	return nil
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
	if !loopback(r.Host) {
		http.Error(w, "ask by a loopback address or as localhost", http.StatusForbidden)
		return
	}
	w.Header().Set("X-Content-Type-Options", "nosniff")
	ctx, cancel := context.WithTimeout(r.Context(), answerWithin)
	defer cancel()
	s.mux.ServeHTTP(w, r.WithContext(ctx))
}

// loopback reports whether a Host header names this machine to itself.
func loopback(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	addr, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && addr.IsLoopback()
}
