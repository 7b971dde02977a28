package uplink

import (
	"testing"

	"pgregory.net/rapid"
)

// The window against a list that is searched from its beginning: brokers that
// answer out of order, twice, or what was never sent change nothing that matters,
// and packet identifiers wrap without meeting.
func TestWindowAgainstList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type sent struct {
			id             uint16
			lane           Lane
			seq            uint64
			upTo           marks
			done, refusing bool
		}
		w := newWindow()
		most := rapid.SampledFrom([]int{1, 2, 5, maxWindow}).Draw(t, "most")
		w.open(most, false)
		w.nextID = rapid.SampledFrom([]uint16{0, 1, maxWindow - 3, maxWindow}).Draw(t, "first id")
		var list []sent
		var seq uint64
		settled := 0
		t.Repeat(map[string]func(*rapid.T){
			"send": func(t *rapid.T) {
				lane := Lane(rapid.IntRange(0, int(lanes)-1).Draw(t, "lane"))
				id, ok := w.add(alone(&Record{Seq: seq + 1, lane: lane}))
				if ok != (len(list)-settled < most) {
					t.Fatalf("room: %v with %d of %d in the window", ok, len(list)-settled, most)
				}
				if !ok {
					return
				}
				seq++
				for _, s := range list[settled:] {
					if s.id == id {
						t.Fatalf("identifier %d was given out twice", id)
					}
				}
				if id == 0 {
					t.Fatal("0 is no packet identifier")
				}
				s := sent{id: id, seq: seq, lane: lane}
				s.upTo[lane] = seq
				list = append(list, s)
			},
			"pass": func(t *rapid.T) {
				lane := Lane(rapid.IntRange(0, int(lanes)-1).Draw(t, "lane"))
				seq++
				var want marks
				if settled == len(list) {
					want[lane] = seq
				} else {
					list[len(list)-1].upTo[lane] = seq
				}
				if got := w.pass(lane, seq); got != want {
					t.Fatalf("passing %d settles %v, want %v", seq, got, want)
				}
			},
			"answer": func(t *rapid.T) {
				if len(list) == 0 {
					t.Skip("nothing sent")
				}
				i := rapid.IntRange(max(0, settled-3), len(list)-1).Draw(t, "which")
				refused := rapid.IntRange(0, 9).Draw(t, "refused") == 0
				s := &list[i]
				c, open := w.lookup(s.id)
				if open != !s.done || open && (c.last.Seq != s.seq || c.count != 1) {
					t.Fatalf("lookup of %d is %v %v, want %+v", s.id, c, open, *s)
				}
				got := w.answer(s.id, refused)
				if !s.done {
					s.done, s.refusing = true, refused
				}
				var want marks
				for settled < len(list) && list[settled].done && !list[settled].refusing {
					want.raise(list[settled].upTo)
					settled++
				}
				if got != want {
					t.Fatalf("marks are %d, want %d", got, want)
				}
			},
			"answer to nothing": func(t *rapid.T) {
				id := rapid.Uint16().Draw(t, "id")
				for _, s := range list[settled:] {
					if s.id == id {
						t.Skip("was sent")
					}
				}
				if got := w.answer(id, false); got != (marks{}) {
					t.Fatalf("an answer to %d moves the mark to %d", id, got)
				}
			},
			"": func(t *rapid.T) {
				open := 0
				for _, s := range list {
					if !s.done {
						open++
					}
				}
				if n, _ := w.unanswered(); n != open {
					t.Fatalf("%d wait for an answer, want %d", n, open)
				}
			},
		})
	})
}

// A cautious window begins with one record and doubles with every round trip.
func TestCautiousWindow(t *testing.T) {
	w := newWindow()
	w.open(5, true)
	seq := uint64(0)
	for _, want := range []int{1, 2, 4, 5, 5} {
		var ids []uint16
		for {
			id, ok := w.add(alone(&Record{Seq: seq + 1}))
			if !ok {
				break
			}
			seq++
			ids = append(ids, id)
		}
		if len(ids) != want {
			t.Fatalf("%d records at a time, want %d", len(ids), want)
		}
		for _, id := range ids {
			w.answer(id, false)
		}
	}
}

func TestMillisKeepTheirDigits(t *testing.T) {
	for ns, want := range map[int64]string{
		0: "0", 1: "0.000001", 4_100_000: "4.1", -1_500_000: "-1.5", 1e6: "1", 1 << 53: "9007199254.740992",
		-1 << 63: "-9223372036854.775808", 1<<63 - 1: "9223372036854.775807",
	} {
		if got := string(appendMillis(nil, ns)); got != want {
			t.Errorf("%d ns: %s ms, want %s", ns, got, want)
		}
	}
}
