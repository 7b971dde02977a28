package windowing

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
)

// snapshotVersion is the first byte of a snapshot. A new version reads the older
// ones; DESIGN.md lists them.
const snapshotVersion = 3

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// AppendSnapshot appends the engine's whole state, its configuration included:
// version, body, CRC-32C of both. It is taken between steps.
func (e *Engine) AppendSnapshot(dst []byte) []byte {
	from := len(dst)
	w := wire{buf: append(dst, snapshotVersion), version: snapshotVersion}
	w.engine(e)
	return binary.LittleEndian.AppendUint32(w.buf, crc32.Checksum(w.buf[from:], castagnoli))
}

// Snapshot is AppendSnapshot for a large state: it hands out the same bytes in parts
// of some 64 KB, one after the other, so that they are never all in memory. A part
// is put's until it returns. The error is put's.
func (e *Engine) Snapshot(put func(part []byte) error) error {
	w := wire{buf: append(make([]byte, 0, partLen+4096), snapshotVersion), version: snapshotVersion, out: put}
	w.engine(e)
	w.part()
	w.buf = binary.LittleEndian.AppendUint32(w.buf, w.sum)
	w.part()
	return w.err
}

// ErrNewer is wrapped by the errors about a snapshot or a configuration that a
// later version wrote: it is sound, and that version is what reads it.
var ErrNewer = errors.New("written by a newer version of tidemark: install that version or a later one")

// Restore returns an engine that continues exactly where the snapshot was taken.
// It fails on damage, and with ErrNewer on a snapshot of a later version.
func Restore(snapshot []byte) (*Engine, error) {
	if len(snapshot) < 5 {
		return nil, errors.New("engine snapshot: it is shorter than any can be")
	}
	body, sum := snapshot[:len(snapshot)-4], binary.LittleEndian.Uint32(snapshot[len(snapshot)-4:])
	if snapshot[0] == 0 || snapshot[0] > snapshotVersion {
		return nil, fmt.Errorf("engine snapshot: version %d, known here is %d: %w", snapshot[0], snapshotVersion, ErrNewer)
	}
	if crc32.Checksum(body, castagnoli) != sum {
		return nil, errors.New("engine snapshot: the checksum does not hold, it is damaged: use the older checkpoint")
	}
	return restoreBody(body)
}

// restoreBody reads a snapshot without its checksum.
func restoreBody(body []byte) (*Engine, error) {
	w := wire{buf: body, at: 1, reading: true, version: body[0]}
	e := empty()
	w.engine(e)
	if w.left() > 0 {
		w.fail(fmt.Errorf("%d bytes are left over", w.left()))
	}
	if w.err != nil {
		return nil, fmt.Errorf("engine snapshot: %w", w.err)
	}
	return e, nil
}

func (w *wire) engine(e *Engine) {
	w.config(&e.config)
	if w.reading && w.err == nil {
		if err := e.config.Validate(); err != nil {
			w.fail(err)
		}
	}
	list(w, &e.known, (*wire).definition)
	w.time(&e.now)
	w.time(&e.tidyAt)
	if w.err != nil {
		return
	}
	if w.reading {
		e.encoded = AppendConfig(nil, &e.config)
		e.restoreFeatures()
	}
	w.inputs(e)
	w.sensors(e)
	for _, f := range e.features {
		w.featureState(f)
	}
	w.sensorKeys(e)
	w.timers(e)
}

// restoreFeatures makes the features in force.
func (e *Engine) restoreFeatures() {
	for i := range e.config.Features {
		def := e.config.Features[i]
		if fault := e.define(&def); fault != "" {
			e.disabled = append(e.disabled, Fault{Feature: def.ID, Reason: fault})
			continue
		}
		f := newFeature(e, def)
		f.index = i
		e.features = append(e.features, f)
	}
}

func (w *wire) definition(d *definition) {
	w.str(&d.name)
	w.integer(&d.version)
	w.u32(&d.definition)
	w.fixed(&d.shape)
	if w.reading && w.version <= 2 {
		d.shape = 0 // the scope was part of it
	}
	w.time(&d.retiredEnd)
	w.u64(&d.windowed)
	w.u64(&d.late)
	w.u64(&d.excluded)
}
