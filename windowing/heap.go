package windowing

// deadlines is a heap of things by a time, the earliest first. Entries are not
// moved when their time grows; whoever takes one out looks whether it still
// holds.
type deadlines[T any] struct {
	entries []deadline[T]
}

type deadline[T any] struct {
	at   int64
	item T
}

func (h *deadlines[T]) push(at int64, item T) {
	h.entries = append(h.entries, deadline[T]{at, item})
	i := len(h.entries) - 1
	for i > 0 {
		up := (i - 1) / 2
		if h.entries[up].at <= h.entries[i].at {
			return
		}
		h.entries[up], h.entries[i] = h.entries[i], h.entries[up]
		i = up
	}
}

// first returns the earliest entry, nil if there is none.
func (h *deadlines[T]) first() *deadline[T] {
	if len(h.entries) == 0 {
		return nil
	}
	return &h.entries[0]
}

func (h *deadlines[T]) pop() T {
	item := h.entries[0].item
	last := len(h.entries) - 1
	h.entries[0] = h.entries[last]
	h.entries[last] = deadline[T]{}
	h.entries = h.entries[:last]
	h.down()
	return item
}

// postpone gives the earliest entry a later time.
func (h *deadlines[T]) postpone(at int64) {
	h.entries[0].at = at
	h.down()
}

func (h *deadlines[T]) down() {
	for i, n := 0, len(h.entries); ; {
		child := 2*i + 1
		if child+1 < n && h.entries[child+1].at < h.entries[child].at {
			child++
		}
		if child >= n || h.entries[i].at <= h.entries[child].at {
			return
		}
		h.entries[i], h.entries[child] = h.entries[child], h.entries[i]
		i = child
	}
}

func (h *deadlines[T]) reset() { h.entries = h.entries[:0] }
