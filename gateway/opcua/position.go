package opcua

import (
	"encoding/binary"
	"errors"
	"time"
)

// position is what a restart needs to take the server's subscriptions over. It
// is written in the transaction of the readings that it stands behind
// (reading.Parcel.Memory), so that it never says more than is on disk.
type position struct {
	startNS int64  // when the server started, by its clock: another start, other subscriptions
	plan    uint64 // hash of what is subscribed to: client handles mean nothing beyond it
	subs    []subPosition
}

type subPosition struct {
	id      uint32 // 0: it was to be made
	seq     uint32 // the last message that is safe; 0: none yet
	seenNS  int64  // until when nothing is missing, by the server's clock; 0: it never spoke
	filling bool   // history since then was being fetched
	shallow bool   // its queues cannot say that they overflowed

	publishing time.Duration // as the server revised it
	keepAlive  uint32        // likewise, in publishing intervals
}

const (
	positionForm   = 1
	positionHeader = 1 + 8 + 8
	positionSub    = 4 + 4 + 8 + 1 + 8 + 4
)

func (p *position) encode() []byte {
	b := make([]byte, 0, positionHeader+len(p.subs)*positionSub)
	b = append(b, positionForm)
	b = binary.LittleEndian.AppendUint64(b, uint64(p.startNS))
	b = binary.LittleEndian.AppendUint64(b, p.plan)
	for _, s := range p.subs {
		b = binary.LittleEndian.AppendUint32(b, s.id)
		b = binary.LittleEndian.AppendUint32(b, s.seq)
		b = binary.LittleEndian.AppendUint64(b, uint64(s.seenNS))
		b = append(b, flag(s.filling)|flag(s.shallow)<<1)
		b = binary.LittleEndian.AppendUint64(b, uint64(s.publishing))
		b = binary.LittleEndian.AppendUint32(b, s.keepAlive)
	}
	return b
}

var errPosition = errors.New("the stored position is not of a known form")

// decodePosition reads what encode wrote; nil data is no position.
func decodePosition(data []byte) (*position, error) {
	switch {
	case data == nil:
		return nil, nil
	case len(data) < positionHeader || data[0] != positionForm || (len(data)-positionHeader)%positionSub != 0:
		return nil, errPosition
	}
	p := &position{
		startNS: int64(binary.LittleEndian.Uint64(data[1:])),
		plan:    binary.LittleEndian.Uint64(data[9:]),
	}
	for b := data[positionHeader:]; len(b) > 0; b = b[positionSub:] {
		p.subs = append(p.subs, subPosition{
			id:      binary.LittleEndian.Uint32(b),
			seq:     binary.LittleEndian.Uint32(b[4:]),
			seenNS:  int64(binary.LittleEndian.Uint64(b[8:])),
			filling: b[16]&1 != 0,
			shallow: b[16]&2 != 0,

			publishing: time.Duration(binary.LittleEndian.Uint64(b[17:])),
			keepAlive:  binary.LittleEndian.Uint32(b[25:]),
		})
	}
	return p, nil
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}
