package trace

// told is what a trace has said under a number. The writer and the reader of a
// trace keep one each and forget alike, so that neither grows with the trace: the
// writer says again what is not recent, and the reader still knows what was recent
// before, which the operation at hand may go by.
type told[T comparable] struct {
	recent, before map[uint64]*T
}

// news reports whether v has to be said under id, and takes it as said.
func (t *told[T]) news(id uint64, v *T) bool {
	if known := t.recent[id]; known != nil && *known == *v {
		return false
	}
	t.put(id, v)
	return true
}

func (t *told[T]) put(id uint64, v *T) {
	if t.recent == nil || len(t.recent) >= maxCached {
		t.recent, t.before = make(map[uint64]*T), t.recent
	}
	t.recent[id] = v
}

// get returns what was said under id, nil if nothing is known.
func (t *told[T]) get(id uint64) *T {
	if v := t.recent[id]; v != nil {
		return v
	}
	return t.before[id]
}
