package windowing

import (
	"testing"
	"unsafe"
)

// An open window fills a size of the allocator, 384 bytes: one field more would
// cost 32.
func TestWindowFitsItsSize(t *testing.T) {
	if n := unsafe.Sizeof(window{}); n > 384 && unsafe.Sizeof(uintptr(0)) == 8 {
		t.Errorf("a window is %d bytes", n)
	}
}
