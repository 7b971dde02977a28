package gateway

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"tidemark/buffer"
	"tidemark/history"
)

// frame is a piece of the answer that hands out the journal. The last one says so:
// an answer that was cut off is told apart from one that is whole.
type frame struct {
	Block    buffer.Block
	Evidence buffer.StoredEvidence
	Last     bool
	Err      string // of the last: why there is no more
}

// journalRoutes hands the journal out. The gateway reads short transactions and
// copies bytes; what is made of them is made by whoever asks, so that no question
// costs the pipeline more than that.
func (k *socket) journalRoutes(j Journal) {
	k.mux.HandleFunc("GET /journal/info", func(w http.ResponseWriter, r *http.Request) {
		info, err := j.Info(r.Context())
		answer(w, info, err)
	})
	k.mux.HandleFunc("GET /journal/headers", func(w http.ResponseWriter, r *http.Request) { serveBlocks(w, r, j.Headers) })
	k.mux.HandleFunc("GET /journal/blocks", func(w http.ResponseWriter, r *http.Request) { serveBlocks(w, r, j.Blocks) })
	k.mux.HandleFunc("GET /journal/evidence", func(w http.ResponseWriter, r *http.Request) {
		serveFrames(w, func(send func(frame) error) error {
			return j.Evidence(r.Context(), func(e buffer.StoredEvidence) error { return send(frame{Evidence: e}) })
		})
	})
	k.mux.HandleFunc("GET /journal/checkpoint", func(w http.ResponseWriter, r *http.Request) {
		before, err := number(r.URL.Query(), "before")
		if err != nil {
			refuse(w, http.StatusBadRequest, err)
			return
		}
		snapshot, seq, err := j.Checkpoint(r.Context(), before)
		answer(w, &checkpointAnswer{Snapshot: snapshot, Seq: seq}, err)
	})
}

type checkpointAnswer struct {
	Snapshot []byte `json:"snapshot"`
	Seq      uint64 `json:"seq"`
}

type walk func(ctx context.Context, from, to uint64, fn func(buffer.Block) error) error

func serveBlocks(w http.ResponseWriter, r *http.Request, walk walk) {
	q := r.URL.Query()
	from, err := number(q, "from")
	to, toErr := number(q, "to")
	if err = errors.Join(err, toErr); err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	serveFrames(w, func(send func(frame) error) error {
		return walk(r.Context(), from, to, func(b buffer.Block) error { return send(frame{Block: b}) })
	})
}

// serveFrames answers with what walk sends.
func serveFrames(w http.ResponseWriter, walk func(send func(frame) error) error) {
	w.Header().Set("Content-Type", "application/octet-stream")
	out := bufio.NewWriterSize(w, 64<<10)
	enc := gob.NewEncoder(out)
	err := walk(func(f frame) error { return enc.Encode(f) })
	last := frame{Last: true}
	if err != nil {
		last.Err = err.Error()
	}
	_ = enc.Encode(last) // a client that went away needs no end
	_ = out.Flush()
}

func number(q url.Values, name string) (uint64, error) {
	n, err := strconv.ParseUint(q.Get(name), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s=%q is no block's number", name, q.Get(name))
	}
	return n, nil
}

// askedJournal is the journal of a running gateway.
type askedJournal struct{ socket string }

// AskJournal is the journal of the gateway that listens at the socket. Nothing is
// asked yet.
func AskJournal(socket string) Journal { return askedJournal{socket} }

// Info implements history.Journal.
func (j askedJournal) Info(ctx context.Context) (*history.Info, error) {
	return askFor[history.Info](ctx, j.socket, http.MethodGet, "/journal/info")
}

// Checkpoint implements history.Journal.
func (j askedJournal) Checkpoint(ctx context.Context, before uint64) ([]byte, uint64, error) {
	a, err := askFor[checkpointAnswer](ctx, j.socket, http.MethodGet, "/journal/checkpoint?before="+strconv.FormatUint(before, 10))
	if err != nil {
		return nil, 0, err
	}
	return a.Snapshot, a.Seq, nil
}

// Headers implements history.Journal.
func (j askedJournal) Headers(ctx context.Context, from, to uint64, fn func(buffer.Block) error) error {
	return j.blocks(ctx, "/journal/headers", from, to, fn)
}

// Blocks implements history.Journal.
func (j askedJournal) Blocks(ctx context.Context, from, to uint64, fn func(buffer.Block) error) error {
	return j.blocks(ctx, "/journal/blocks", from, to, fn)
}

func (j askedJournal) blocks(ctx context.Context, path string, from, to uint64, fn func(buffer.Block) error) error {
	return j.frames(ctx, fmt.Sprintf("%s?from=%d&to=%d", path, from, to), func(f *frame) error { return fn(f.Block) })
}

// Evidence implements Journal.
func (j askedJournal) Evidence(ctx context.Context, fn func(buffer.StoredEvidence) error) error {
	return j.frames(ctx, "/journal/evidence", func(f *frame) error { return fn(f.Evidence) })
}

func (j askedJournal) frames(ctx context.Context, target string, fn func(*frame) error) error {
	resp, err := ask(ctx, j.socket, http.MethodGet, target)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	for dec := gob.NewDecoder(bufio.NewReaderSize(resp.Body, 64<<10)); ; {
		var f frame
		if err := dec.Decode(&f); err != nil {
			if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
				return errors.New("the gateway stopped in the middle of its answer")
			}
			return err
		}
		switch {
		case f.Err != "":
			return fmt.Errorf("the gateway cannot go on: %s", f.Err)
		case f.Last:
			return nil
		}
		if err := fn(&f); err != nil {
			return err
		}
	}
}
