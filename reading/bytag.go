package reading

import "iter"

// ByTag maps tags to what is known of their series. A look-up is that of an array, and
// readings that come in the same order again and again are found in one sweep through
// memory. The zero ByTag is empty; it is for one goroutine. It is as long as the highest
// number among its tags, which is at most that of all living ones.
type ByTag[T any] struct {
	slots []tagged[T]
	n     int
}

// tagged is one tag's entry, empty if it has no tag.
type tagged[T any] struct {
	series *Series
	value  T
}

// Get returns what is known of the tag, the zero T if nothing is.
func (m *ByTag[T]) Get(t Tag) (v T) {
	if int(t.number) < len(m.slots) {
		if s := &m.slots[t.number]; s.series == t.series {
			return s.value
		}
	}
	return v
}

// Len returns how many tags there are.
func (m *ByTag[T]) Len() int { return m.n }

// Set enters what is known of the tag.
func (m *ByTag[T]) Set(t Tag, v T) {
	for int(t.number) >= len(m.slots) {
		m.slots = append(m.slots, tagged[T]{})
	}
	s := &m.slots[t.number]
	if s.series == nil {
		m.n++
	}
	*s = tagged[T]{t.series, v}
}

// Delete forgets the tag.
func (m *ByTag[T]) Delete(t Tag) {
	if int(t.number) < len(m.slots) && m.slots[t.number].series == t.series {
		m.slots[t.number] = tagged[T]{}
		m.n--
	}
}

// Clear forgets all tags.
func (m *ByTag[T]) Clear() {
	clear(m.slots)
	m.n = 0
}

// All returns the tags with what is known of them; they may be deleted meanwhile.
func (m *ByTag[T]) All() iter.Seq2[Tag, T] {
	return func(yield func(Tag, T) bool) {
		for i := range m.slots {
			if s := &m.slots[i]; s.series != nil && !yield(Tag{s.series, uint32(i)}, s.value) {
				return
			}
		}
	}
}
