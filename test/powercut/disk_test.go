package powercut

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"sync"
	"syscall"
)

// disk is a disk with a cache that a power cut empties, served to qemu over the
// network block device protocol. What was written lasts when the guest has flushed
// it; at a cut, each write since the last flush is kept, torn by sectors, or lost.
type disk struct {
	mu     sync.Mutex
	lasts  []byte  // what a cut leaves for certain
	shown  []byte  // what the guest reads
	writes []write // since the last flush
	fail   bool    // every write is an I/O error
	served int     // writes and flushes
	left   int     // of them until the power goes; below 0 it stays
}

type write struct {
	at   int64
	data []byte
}

const sector = 512

func newDisk(image []byte) *disk {
	return &disk{lasts: append([]byte(nil), image...), shown: append([]byte(nil), image...), left: -1}
}

// cutAfter has the power go after n more writes and flushes: nothing is answered
// from then on.
func (d *disk) cutAfter(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left = n
}

// spend reports whether there is power for one more; mu is held.
func (d *disk) spend() bool {
	d.served++
	if d.left > 0 {
		d.left--
	}
	return d.left != 0
}

// cut takes the power away: what the guest reads next is what lasted.
func (d *disk) cut(dice *rand.Rand) (lost int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	share := dice.Float64()
	for _, w := range d.writes {
		fate := dice.Float64()
		if fate >= 0.35 {
			lost++
		}
		for i := 0; i < len(w.data); i += sector {
			if fate < 0.35 || fate < 0.7 && dice.Float64() < share {
				copy(d.lasts[w.at+int64(i):], w.data[i:min(i+sector, len(w.data))])
			}
		}
	}
	d.writes = nil
	copy(d.shown, d.lasts)
	d.fail, d.left = false, -1
	return lost
}

// breaks makes every write fail from here on.
func (d *disk) breaks() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fail = true
}

// errCut ends a connection when the power goes.
var errCut = errors.New("the power is cut")

// refuses says why nothing more can be written; nil if it can. The lock is held.
func (d *disk) refuses() error {
	switch {
	case !d.spend():
		return errCut
	case d.fail:
		return syscall.EIO
	}
	return nil
}

func (d *disk) flush() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.refuses(); err != nil {
		return err
	}
	for _, w := range d.writes {
		copy(d.lasts[w.at:], w.data)
	}
	d.writes = d.writes[:0]
	return nil
}

func (d *disk) write(at int64, data []byte, lasts bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.refuses(); err != nil {
		return err
	}
	copy(d.shown[at:], data)
	if lasts {
		copy(d.lasts[at:], data)
		return nil
	}
	d.writes = append(d.writes, write{at, data})
	return nil
}

func (d *disk) read(at int64, data []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	copy(data, d.shown[at:])
}

// Numbers of the protocol, by the names of its description.
const (
	nbdMagic       = 0x4e42444d41474943 // NBDMAGIC
	nbdHaveOpt     = 0x49484156454f5054 // IHAVEOPT
	nbdReply       = 0x3e889045565a9
	nbdRequest     = 0x25609513
	nbdSimpleReply = 0x67446698

	nbdOptAbort, nbdOptInfo, nbdOptGo    = 2, 6, 7
	nbdRepAck, nbdRepInfo, nbdRepUnknown = 1, 3, 1<<31 + 1

	nbdRead, nbdWrite, nbdDisconnect, nbdFlush = 0, 1, 2, 3
	nbdFlagFUA                                 = 1
)

// serve answers one connection until it ends, as it does when qemu is killed.
func (d *disk) serve(conn net.Conn) error {
	defer conn.Close()
	if err := d.shake(conn); err != nil {
		return err
	}
	for {
		var r struct {
			Magic       uint32
			Flags, Type uint16
			Cookie      uint64
			At          int64
			Length      uint32
		}
		if err := binary.Read(conn, binary.BigEndian, &r); err != nil || r.Magic != nbdRequest {
			return err
		}
		if r.Type == nbdDisconnect {
			return nil
		}
		if r.At < 0 || r.At+int64(r.Length) > int64(len(d.shown)) && r.Type != nbdFlush {
			return fmt.Errorf("request beyond the disk's end: %+v", r)
		}
		var data []byte
		var err error
		switch r.Type {
		case nbdRead:
			data = make([]byte, r.Length)
			d.read(r.At, data)
		case nbdWrite:
			in := make([]byte, r.Length)
			if _, err := io.ReadFull(conn, in); err != nil {
				return nil // the cut came in the middle of it
			}
			err = d.write(r.At, in, r.Flags&nbdFlagFUA != 0)
		case nbdFlush:
			err = d.flush()
		default:
			err = syscall.EINVAL
		}
		if errors.Is(err, errCut) {
			return nil
		}
		errno, _ := err.(syscall.Errno)
		reply := binary.BigEndian.AppendUint32(nil, nbdSimpleReply)
		reply = binary.BigEndian.AppendUint32(reply, uint32(errno))
		reply = binary.BigEndian.AppendUint64(reply, r.Cookie)
		if _, err := conn.Write(append(reply, data...)); err != nil {
			return nil
		}
	}
}

var errAborted = errors.New("the client changed its mind")

// shake is the fixed newstyle handshake with the one export that there is.
func (d *disk) shake(conn net.Conn) error {
	hello := binary.BigEndian.AppendUint64(nil, nbdMagic)
	hello = binary.BigEndian.AppendUint64(hello, nbdHaveOpt)
	if _, err := conn.Write(binary.BigEndian.AppendUint16(hello, 1|2)); err != nil { // fixed newstyle, no zeroes
		return err
	}
	var flags uint32
	if err := binary.Read(conn, binary.BigEndian, &flags); err != nil {
		return err
	}
	for {
		var o struct {
			Magic          uint64
			Option, Length uint32
		}
		if err := binary.Read(conn, binary.BigEndian, &o); err != nil || o.Magic != nbdHaveOpt || o.Length > 4096 {
			return fmt.Errorf("option %+v: %w", o, err)
		}
		if _, err := io.CopyN(io.Discard, conn, int64(o.Length)); err != nil {
			return err
		}
		reply := func(kind uint32, data []byte) error {
			b := binary.BigEndian.AppendUint64(nil, nbdReply)
			b = binary.BigEndian.AppendUint32(b, o.Option)
			b = binary.BigEndian.AppendUint32(b, kind)
			b = binary.BigEndian.AppendUint32(b, uint32(len(data)))
			_, err := conn.Write(append(b, data...))
			return err
		}
		var err error
		switch o.Option {
		case nbdOptGo, nbdOptInfo:
			info := binary.BigEndian.AppendUint16(nil, 0) // the export
			info = binary.BigEndian.AppendUint64(info, uint64(len(d.shown)))
			info = binary.BigEndian.AppendUint16(info, 1|4|8) // flush and FUA are understood
			err = errors.Join(reply(nbdRepInfo, info), reply(nbdRepAck, nil))
			if err == nil && o.Option == nbdOptGo {
				return nil
			}
		case nbdOptAbort:
			return errors.Join(errAborted, reply(nbdRepAck, nil))
		default:
			err = reply(nbdRepUnknown, nil)
		}
		if err != nil {
			return err
		}
	}
}
