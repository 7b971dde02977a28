package uplink

import "tidemark/windowing"

// typeReconciled is the type of a record of a reconciled view. It is not the
// features' own: who keeps the highest revision of what was served never takes one
// of these for it.
const typeReconciled = "reconciled"

// View names a reconciled view and says what it was made of.
type View struct {
	Name           string // its version tag; a later view has another
	ReconciledAtNS int64  // wall time at which it was made
	// FromNS and ToNS are the wall times of the first and the last commit of the
	// journal that it was made of; reading.NoTime if not known.
	FromNS, ToNS int64
}

// AppendReconciled appends a window of a reconciled view as a record: one JSON
// object without a line break. partial says why the window is not whole; empty if it
// is.
func (c *Encoder) AppendReconciled(dst []byte, v *View, e *windowing.Emission, partial []string) []byte {
	o := object{append(dst, '{')}
	o.str("type", typeReconciled)
	o.int("schema", Schema)
	o.str("gateway", c.Gateway)
	o.uint("generation", c.Generation)
	o.str("view", v.Name)
	o.time("reconciled_at", v.ReconciledAtNS)
	id := c.reconciledID(v, e)
	o.str("update_id", string(id[:]))
	w := emissionWriter{object: &o, e: e, upstream: true}
	w.windowKey()
	w.values()
	w.units()
	w.coverage()
	w.qualities()
	w.clockSummary()
	w.bool("partial", len(partial) > 0)
	w.list("partial_because", partial)
	w.open("journal")
	w.time("from", v.FromNS)
	w.time("to", v.ToNS)
	w.end()
	o.end()
	return o.b
}

// reconciledID names the window of that view.
func (c *Encoder) reconciledID(v *View, e *windowing.Emission) [updateIDLen]byte {
	h := c.newID(nil, typeReconciled)
	h.str(v.Name)
	h.window(e)
	return h.sum()
}
