package gateway

import (
	"context"
	"errors"
	"net/http"
)

// reloadAnswer says how a client sees that the reload is over: Status's
// Configuration.Loads is above Loads then.
type reloadAnswer struct {
	Loads uint64 `json:"loads"`
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
	answer(w, reloadAnswer{s.configStatus().Loads}, nil)
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
	g.Reload(cfg)
}

// AskReload has the gateway that listens at the socket read its configuration
// file, and returns what Status's Configuration.Loads will exceed once that is
// done. A file with a fault is the error.
func AskReload(ctx context.Context, socket string) (loads uint64, err error) {
	a, err := askFor[reloadAnswer](ctx, socket, http.MethodPost, "/reload")
	if err != nil {
		return 0, err
	}
	return a.Loads, nil
}
