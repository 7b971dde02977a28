package gateway

import (
	"context"
	"errors"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"tidemark/buffer"
)

// failing is a journal that breaks in the middle.
type failing struct{ Journal }

func (failing) Blocks(_ context.Context, _, _ uint64, fn func(buffer.Block) error) error {
	if err := fn(buffer.Block{Seq: 1}); err != nil {
		return err
	}
	return errors.New("the disk is gone")
}

// What was cut off, or failed on the way, is never taken for the whole.
func TestHalfAJournalIsAnError(t *testing.T) {
	mux := http.NewServeMux()
	k := &socket{mux: mux}
	k.journalRoutes(failing{})
	path := filepath.Join(t.TempDir(), "g.sock")
	ln, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	var cut bool
	srv := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if cut {
			w.WriteHeader(http.StatusOK)
			return
		}
		mux.ServeHTTP(w, r)
	})}
	ended := make(chan error, 1)
	go func() { ended <- srv.Serve(ln) }()
	defer func() {
		srv.Close()
		<-ended
	}()
	for _, want := range []string{"the gateway cannot go on: the disk is gone", "stopped in the middle of its answer"} {
		n := 0
		err = AskJournal(path).Blocks(t.Context(), 1, 10, func(buffer.Block) error { n++; return nil })
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v after %d blocks, want %q", err, n, want)
		}
		cut = true
	}
	cut = false
	_, err = ask(t.Context(), path, http.MethodGet, "/journal/blocks?from=x&to=1")
	if err == nil || !strings.Contains(err.Error(), `from="x" is no block's number`) {
		t.Error(err)
	}
	_, err = ask(t.Context(), path, http.MethodGet, "/sausages")
	if err == nil || !strings.Contains(err.Error(), "is of another version") {
		t.Error(err)
	}
}
