package reading

import (
	"runtime"
	"strings"
	"sync"
	"unicode/utf8"
	"weak"
)

// Tag is an interned Series: two tags are equal exactly when their series are, and
// vanish with their last user. Each has a number that no other living tag has, one
// that was given back before a new one, so that what is known of a series is found
// without hashing: see [ByTag]. Make a Tag with MakeTag and keep it where the same series comes again. The
// zero Tag is of no series and has no Value.
type Tag struct {
	series *Series
	number uint32
}

// Value returns the series.
func (t Tag) Value() Series { return *t.series }

// interned are the living tags of the process.
var interned = struct {
	mu   sync.Mutex
	tags map[Series]living
	free []uint32 // numbers that were given before
	next uint32   // the lowest that never was
}{tags: map[Series]living{}}

// living finds a tag for as long as somebody has it.
type living struct {
	series weak.Pointer[Series]
	number uint32
}

// MakeTag interns s. Names that are no UTF-8, which JSON could not tell apart, are
// taken to be Latin-1, as of a device from before Unicode.
func MakeTag(s Series) Tag {
	for _, name := range seriesFields(&s) {
		if !utf8.ValidString(*name) {
			*name = latin1(*name)
		}
	}
	in := &interned
	in.mu.Lock()
	defer in.mu.Unlock()
	if l, ok := in.tags[s]; ok {
		if series := l.series.Value(); series != nil {
			return Tag{series, l.number}
		}
	}
	return newTag(s)
}

// newTag enters s, which has no living tag. The lock is held.
func newTag(s Series) Tag {
	for _, name := range seriesFields(&s) {
		*name = strings.Clone(*name) // it may be part of a large payload
	}
	in := &interned
	t := Tag{series: &s}
	if n := len(in.free); n > 0 {
		t.number, in.free = in.free[n-1], in.free[:n-1]
	} else {
		t.number = in.next
		in.next++
	}
	l := living{weak.Make(t.series), t.number}
	in.tags[s] = l
	runtime.AddCleanup(t.series, func(s Series) { forget(s, l) }, s)
	return t
}

// forget gives back the number of a tag that nobody has any more. Its series may have
// another tag by now.
func forget(s Series, l living) {
	in := &interned
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.tags[s] == l {
		delete(in.tags, s)
	}
	in.free = append(in.free, l.number)
}

// latin1 returns bytes of ISO 8859-1, whose values are those of their runes.
func latin1(s string) string {
	runes := make([]rune, len(s))
	for i := range len(s) {
		runes[i] = rune(s[i])
	}
	return string(runes)
}
