package mqtt

import (
	"testing"
	"time"
)

func TestWindow(t *testing.T) {
	quiet := func(w *window, n int) {
		for i := 1; i <= n; i++ {
			w.grown(i)
		}
		w.acknowledging(n, stallQuiet)
		w.resumed(0)
	}
	w := window{ceiling: 2048}
	quiet(&w, 20)
	quiet(&w, 7)
	quiet(&w, 20)
	quiet(&w, 20)
	if w.limit != 0 {
		t.Error("guessed from two in a row")
	}
	w.acknowledging(20, stallQuiet-1) // says nothing
	quiet(&w, 20)
	if w.limit != 20 {
		t.Fatalf("limit %d", w.limit)
	}
	holds := 0
	for range 100 {
		if stalled, _ := w.grown(19); stalled {
			t.Fatal("stalled below the limit")
		}
		stalled, hold := w.grown(20)
		if !stalled {
			t.Fatal("not stalled at the limit")
		}
		if hold > 0 {
			holds++
		}
	}
	if holds != 2 || w.small() { // at 16 and 64
		t.Errorf("doubted %d times, small %v before it waited for long", holds, w.small())
	}
	w.acknowledging(20, probeFor)
	if w.resumed(stallQuiet); w.small() {
		t.Error("small though nothing waited: the source is slow")
	}
	w.acknowledging(20, probeFor)
	if w.resumed(0); !w.small() {
		t.Error("not small though it waited for long")
	}
	if stalled, _ := w.grown(21); stalled || w.limit != 0 || w.small() {
		t.Error("a further message did not disprove the guess")
	}
	for range 5 {
		quiet(&w, 20)
	}
	if w.limit != 0 {
		t.Error("a wrong guess costs no more evidence")
	}
	quiet(&w, 20)
	if w.limit != 20 {
		t.Error("never guesses again")
	}
	if stalled, hold := w.grown(2048); !stalled || hold != 0 {
		t.Error("the Receive Maximum is no stall")
	}
}

// A source that sends one message now and then stands still after each as well;
// but an acknowledgement makes nothing come.
func TestSlowSourceIsNoWindow(t *testing.T) {
	w := window{ceiling: 2048}
	for range 100 {
		w.grown(1)
		w.acknowledging(1, 300*time.Millisecond)
		w.resumed(400 * time.Millisecond)
	}
	if w.limit != 0 {
		t.Errorf("learnt a window of %d from a slow source", w.limit)
	}
}
