package opcua

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"math"
	"net"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/gopcua/opcua/ua"
	"github.com/gopcua/opcua/uapolicy"
)

// agreed is a channel whose keys are agreed on, and how its server protects what it says.
func agreed(t *testing.T, conn net.Conn, mode ua.MessageSecurityMode) (*channel, seal) {
	t.Helper()
	c := &channel{
		by:    secured{policyURI: ua.SecurityPolicyURIBasic256Sha256, mode: mode, now: host{}.Now},
		wire:  wire{conn: conn, in: bufio.NewReader(conn), chunk: chunkLeast, whole: math.MaxInt32, chunks: math.MaxInt32},
		asked: map[uint32]*question{}, closed: make(chan struct{}), tokens: []token{{id: 7}},
	}
	if mode <= ua.MessageSecurityModeNone {
		return c, seal{}
	}
	ours, theirs := bytes.Repeat([]byte{1}, 32), bytes.Repeat([]byte{2}, 32)
	encrypt := mode == ua.MessageSecurityModeSignAndEncrypt
	ends := [2]seal{{encrypt: encrypt}, {encrypt: encrypt}}
	var err error
	for i, nonces := range [][2][]byte{{ours, theirs}, {theirs, ours}} {
		if ends[i].algo, err = uapolicy.Symmetric(c.by.policyURI, nonces[0], nonces[1]); err != nil {
			t.Fatal(err)
		}
	}
	c.tokens[0].seal = ends[0]
	return c, ends[1]
}

// says is a chunk of an answer to request n.
func says(t *testing.T, by seal, final byte, sequence, n uint32, part []byte) []byte {
	t.Helper()
	head := append([]byte("MSG"), final, 0, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0)
	b, err := by.close(head, slices.Concat(sequenceHeader(sequence, n), part))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// What was said once is not taken a second time, however small its number.
func TestChunksFollowOnEachOther(t *testing.T) {
	for _, mode := range modes {
		for _, tt := range []struct {
			sequences []uint32
			refused   bool
		}{
			{[]uint32{5, 6, 7}, false},
			{[]uint32{5, 7}, true},
			{[]uint32{5, 5}, true},
			{[]uint32{2000, 2001, 5}, true},
			{[]uint32{sequenceLast, 1}, false},
			{[]uint32{sequenceLast, sequenceFirst}, true},
			{[]uint32{sequenceLast - 1, 1}, true},
		} {
			c, server := agreed(t, nil, mode)
			var err error
			for _, n := range tt.sequences {
				err = c.chunk(says(t, server, 'F', n, 1, nil))
			}
			if (err != nil) != tt.refused {
				t.Errorf("%v: %v", tt.sequences, err)
			}
		}
	}
}

// A chunk of which any bit was changed is refused.
func TestChangedChunksAreRefused(t *testing.T) {
	for _, mode := range modes {
		whole := func() (*channel, []byte) {
			c, server := agreed(t, nil, mode)
			return c, says(t, server, 'F', 1, 1, []byte("value"))
		}
		_, b := whole()
		for i := range b {
			c, b := whole()
			b[i] ^= 1
			if i >= 4 && i < frameHead {
				continue // the size: what it says is what came
			}
			if c.chunk(b) == nil {
				t.Errorf("byte %d", i)
			}
		}
		for i := range b {
			if c, b := whole(); c.chunk(b[:i]) == nil {
				t.Errorf("the first %d bytes", i)
			}
		}
	}
}

// Lengths that are lies end a connection, and not the process, where an int has 32 bits
// too.
func TestLiesAboutLengths(t *testing.T) {
	lie := []byte{0xf0, 0xff, 0xff, 0xff}
	c, _ := agreed(t, nil, ua.MessageSecurityModeNone)
	if err := c.chunk(slices.Concat([]byte("OPNF"), make([]byte, 8), lie)); err == nil {
		t.Error("an opening is taken")
	}
	w := wire{in: bufio.NewReader(bytes.NewReader(slices.Concat([]byte("ERRF"), []byte{16, 0, 0, 0}, make([]byte, 4), lie)))}
	if _, err := w.frame(); err == nil || err == io.ErrUnexpectedEOF {
		t.Errorf("an error is taken: %v", err)
	}
	q := &question{answer: make(chan reply, 1)}
	c.asked[1] = q
	if err := c.chunk(says(t, seal{}, 'A', 1, 1, slices.Concat(make([]byte, 4), lie))); err != nil {
		t.Fatal(err)
	}
	if a := <-q.answer; a.err == nil {
		t.Error("an abort is taken")
	}
}

// Answers that are begun and never ended are forgotten with their requests.
func TestAnswersThatDoNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		conn, server := net.Pipe()
		c, _ := agreed(t, conn, ua.MessageSecurityModeNone)
		c.work.Go(c.listen)
		go func() {
			w := wire{in: bufio.NewReader(server)}
			for {
				b, err := w.frame()
				if err != nil {
					return
				}
				n := binary.LittleEndian.Uint32(b[messageHead+4:])
				for range 20 {
					if _, err := server.Write(says(t, seal{}, 'C', 1, n, make([]byte, 60_000))); err != nil {
						return
					}
				}
			}
		}()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range 20 {
			if _, err := c.send(t.Context(), nil, &ua.ReadRequest{}, 0); err == nil {
				t.Fatal("an answer")
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		if after.HeapAlloc > before.HeapAlloc+8<<20 {
			t.Errorf("%d MB more", (after.HeapAlloc-before.HeapAlloc)>>20)
		}
		c.abort(net.ErrClosed)
		server.Close()
	})
}

// A server that takes nothing more does not hold up the end of a connection.
func TestClosingBehindAWriteThatIsStuck(t *testing.T) {
	conn, server := net.Pipe()
	defer server.Close()
	c, _ := agreed(t, conn, ua.MessageSecurityModeNone)
	c.work.Go(c.listen)
	stuck := make(chan error, 1)
	go func() {
		_, err := c.send(t.Context(), nil, &ua.ReadRequest{}, requestTimeout)
		stuck <- err
	}()
	if _, err := server.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	c.close()
	if took := time.Since(begin); took > requestTimeout/2 {
		t.Errorf("it took %v", took)
	}
	if <-stuck == nil {
		t.Error("an answer")
	}
}
