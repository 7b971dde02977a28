package gateway

import (
	"context"
	"errors"
	"net/http"

	"tidemark/configs"
)

// Reloading is a reload that has begun. It is over when Status's
// Configuration.Loads is above Loads.
type Reloading struct {
	Loads  uint64 `json:"loads"`
	Socket string `json:"socket"` // where the gateway will answer, if the file names another store
}

// reload reads the file and answers before it is put in force, which ends the
// session and this socket with it.
func (s *session) reload(w http.ResponseWriter, _ *http.Request) {
	g := s.gateway
	if g.opts.Load == nil {
		answer(w, nil, errors.New("it was not started from a configuration file"))
		return
	}
	cfg, err := g.load()
	if err != nil {
		refuse(w, http.StatusConflict, err)
		return
	}
	answer(w, Reloading{s.configStatus().Loads, configs.Absolute(cfg.Store.Path.Socket())}, nil)
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
	g.Reload(cfg)
}

// AskReload has the gateway that listens at the socket read its configuration
// file. A file with a fault is the error.
func AskReload(ctx context.Context, socket string) (*Reloading, error) {
	return askFor[Reloading](ctx, socket, http.MethodPost, "/reload")
}
