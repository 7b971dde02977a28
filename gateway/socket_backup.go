package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strconv"
)

// backup streams the store as it is at one moment.
func (s *session) backup(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "application/octet-stream")
	err := s.store.Copy(func(size int64) (io.Writer, error) {
		w.Header().Set("Content-Length", strconv.FormatInt(size, 10))
		return w, nil
	})
	if err != nil { // the client sees that the length is not what was announced
		s.log.Warn().Err(err).Msg("a backup of the store was broken off")
	}
}

// AskBackup returns a copy of the store of the gateway that listens at the socket,
// and its size in bytes. The caller closes it.
func AskBackup(ctx context.Context, socket string) (io.ReadCloser, int64, error) {
	resp, err := ask(ctx, socket, http.MethodGet, "/backup")
	if err != nil {
		return nil, 0, err
	}
	if resp.ContentLength < 0 {
		resp.Body.Close()
		return nil, 0, errors.New("the gateway does not say how long its store is")
	}
	return resp.Body, resp.ContentLength, nil
}
