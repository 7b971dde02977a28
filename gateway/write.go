package gateway

import (
	"errors"
	"fmt"
	"time"

	"tidemark/buffer"
)

// This file is how a prepared batch comes to disk.

// prepared is a batch that was stepped and waits to be on disk. The engine is
// never asked about it again.
type prepared struct {
	commit buffer.Commit
	bytes  int
	tried  time.Duration
}

// retryAfter spaces the attempts to write to a full disk.
const retryAfter = time.Second

func (p *pipeline) retry(now time.Duration) (time.Duration, error) {
	if now-p.prepared.tried < retryAfter {
		return retryAfter - (now - p.prepared.tried), nil
	}
	return retryAfter, p.write(now)
}

// write commits the prepared batch. If the store is full the batch stays
// prepared, to be tried again; nothing was written and nothing is acknowledged.
func (p *pipeline) write(now time.Duration) error {
	pr := p.prepared
	pr.tried = now
	begin := p.clk.Now().BootNS
	err := p.store.Commit(&pr.commit)
	if err != nil {
		p.measures.failures++
	} else {
		p.measures.commit.observe(float64(p.clk.Now().BootNS-begin) / 1e9)
	}
	switch {
	case errors.Is(err, buffer.ErrFull):
		p.health.full(err)
		return nil
	case err != nil:
		return &storageError{err: fmt.Errorf("cannot commit block %d: %w", p.seq+1, err)}
	}
	p.health.full(nil)
	p.settle(now)
	if p.checkpointDue() || p.store.WantsCheckpoint() {
		return p.checkpoint()
	}
	return nil
}

// settle is what follows a commit that is on disk: the sources may acknowledge.
func (p *pipeline) settle(now time.Duration) {
	pr := p.prepared
	p.prepared = nil
	if pr.commit.Block != nil {
		p.seq = pr.commit.Block.Seq
	}
	p.tails.post()
	p.results.post()
	p.cad.committed(now, pr.bytes)
	p.saved = now
	for src, token := range p.acks {
		src.Committed(token)
	}
	clear(p.acks)
}

// commitBytes is about what a commit adds to the file.
func commitBytes(c *buffer.Commit) int {
	n := 0
	if c.Block != nil {
		n += len(c.Block.Data)
	}
	for i := range c.Records {
		n += len(c.Records[i].Data)
	}
	for i := range c.Evidence {
		n += len(c.Evidence[i].Data)
	}
	return n
}
