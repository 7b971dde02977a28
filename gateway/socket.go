package gateway

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"time"
)

// socket answers the command line over HTTP on a Unix socket. Whoever may open the
// file may ask, may have quarantined readings judged again, and may have the
// configuration file, whoever wrote it, applied; nothing else can be changed
// through it.
type socket struct {
	ln   net.Listener
	path string
	mux  *http.ServeMux
}

// newSocket listens. The store of the same name is locked by this process, so a
// socket that is there already was left behind by one that is gone.
func newSocket(s *session) (*socket, error) {
	k := &socket{path: s.cfg.Store.Path.Socket(), mux: http.NewServeMux()}
	if err := os.Remove(k.path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("cannot clear the socket of an earlier run: %w", err)
	}
	ln, err := net.Listen("unix", k.path)
	if err != nil {
		return nil, fmt.Errorf("cannot open the socket for `tidemark status`: %w", err)
	}
	if err := os.Chmod(k.path, 0o660); err != nil {
		_ = ln.Close()
		return nil, fmt.Errorf("cannot protect the socket: %w", err)
	}
	k.ln = ln
	k.routes(s)
	return k, nil
}

// routes is what can be asked of a session.
func (k *socket) routes(s *session) {
	k.mux.HandleFunc("GET /status", func(w http.ResponseWriter, r *http.Request) {
		st, err := s.status(r.Context())
		answer(w, st, err)
	})
	k.mux.HandleFunc("GET /tags", func(w http.ResponseWriter, r *http.Request) {
		tags, _, err := s.tags(r.Context(), 0)
		answer(w, tags, err)
	})
	k.mux.HandleFunc("GET /tail", s.serveTail)
	k.mux.HandleFunc("POST /reload", s.reload)
	k.mux.HandleFunc("GET /backup", s.backup)
	k.journalRoutes(storedJournal{s.store})
	k.mux.HandleFunc("GET /quarantine", s.serveQuarantine)
	k.mux.HandleFunc("GET /quarantine/release", s.serveReleased)
	k.mux.HandleFunc("POST /quarantine/release", s.serveRelease)
}

func (k *socket) serve(ctx context.Context) error {
	srv := &http.Server{Handler: k.mux, ReadHeaderTimeout: 5 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	done := make(chan error, 1)
	go func() { done <- srv.Serve(k.ln) }()
	select {
	case err := <-done:
		return fmt.Errorf("the socket for `tidemark status` failed: %w", err)
	case <-ctx.Done():
	}
	_ = srv.Close()
	<-done
	return nil
}
