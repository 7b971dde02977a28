package sim

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// played is a message of the story with the machine that sends it.
type played struct {
	machine Machine
	message
}

// play returns everything that is sent until the given time, in order.
func play(seed uint64, until time.Duration) []played {
	var all []played
	for i, m := range Cast() {
		d := &device{Machine: m, dice: rand.New(rand.NewPCG(seed, uint64(i)))}
		for {
			r := d.pop()
			if r.send > until {
				break
			}
			all = append(all, played{m, r})
		}
	}
	slices.SortStableFunc(all, func(a, b played) int { return int(a.send/1e6 - b.send/1e6) })
	return all
}

func TestMachinesSendInOrderOfTime(t *testing.T) {
	for i, m := range Cast() {
		d := &device{Machine: m, dice: rand.New(rand.NewPCG(1, uint64(i)))}
		last := time.Duration(-1)
		seen := map[int]int{}
		for range 500 {
			r := d.pop()
			if r.send < last {
				t.Fatalf("%s sends at %v after %v", m.Asset, r.send, last)
			}
			last = r.send
			if !r.silent {
				seen[r.n]++
			}
		}
		for n := range 300 {
			if seen[n] == 0 {
				t.Errorf("%s never sends reading %d", m.Asset, n)
			}
		}
	}
}

func TestSameSeedSameStory(t *testing.T) {
	start := time.UnixMilli(1767225600000)
	f := func(seed uint64) (lines []string) {
		for _, p := range play(seed, time.Minute) {
			lines = append(lines, p.send.String()+p.machine.Topic()+string(p.machine.payload(p.message, start)))
		}
		return lines
	}
	if !slices.Equal(f(7), f(7)) {
		t.Error("one seed told two stories")
	}
	if slices.Equal(f(7), f(8)) {
		t.Error("two seeds told the same story")
	}
}

// TestStoryShowsEverythingInTime runs the story against the demo's windows, each
// machine with its own watermark, for every place in a window at which the story
// may begin, with up to 1.5 s between sending and the commit that windows it.
func TestStoryShowsEverythingInTime(t *testing.T) {
	const (
		size, order, lateness = 10 * time.Second, 2 * time.Second, 10 * time.Second
		trusted               = 8 * time.Second // the clock is, by then
	)
	for phase := time.Duration(0); phase < size; phase += 250 * time.Millisecond {
		for _, lag := range []time.Duration{0, 1500 * time.Millisecond} {
			first := map[string]time.Duration{}
			note := func(what string, at time.Duration) {
				if _, ok := first[what]; !ok {
					first[what] = at
				}
			}
			marks := map[string]time.Duration{}
			ids := map[string]map[int]bool{}
			for _, p := range play(3, 45*time.Second) {
				asset, at := p.machine.Asset, max(p.send+lag, trusted)
				switch {
				case p.silent:
					note("silence", at)
					continue
				case p.seconds:
					note("wrong unit", at)
					continue
				case p.skew > 0:
					note("future", at)
					continue
				case ids[asset][p.n]:
					note("duplicate", at)
					continue
				case ids[asset] == nil:
					ids[asset] = map[int]bool{}
				}
				ids[asset][p.n] = true
				if asset == "tank-6" && p.send > p.taken {
					note("backlog", at)
				}
				last := p.taken + size - (p.taken+phase)%size
				if asset == "tank-6" && p.taken+time.Millisecond < marks[asset]-order {
					t.Errorf("phase %v: tank-6 is behind its own clock at %v", phase, at)
				}
				switch mark := marks[asset] - order; {
				case mark >= last+lateness:
					note("late", at)
				case mark >= last:
					note("correction", at)
				}
				before := marks[asset] - order
				marks[asset] = max(before+order, p.taken)
				for end := size - phase; end < marks[asset]; end += size {
					if before < end && marks[asset]-order >= end {
						note("provisional", at)
					}
					if before < end+lateness && marks[asset]-order >= end+lateness {
						note("closing", at)
					}
				}
			}
			for what, by := range map[string]time.Duration{
				"provisional": 20 * time.Second, "correction": 38 * time.Second, "late": 38 * time.Second,
				"closing": 38 * time.Second, "wrong unit": 38 * time.Second, "future": 38 * time.Second, "duplicate": 38 * time.Second,
				"silence": 38 * time.Second, "backlog": 38 * time.Second,
			} {
				if at, ok := first[what]; !ok || at > by {
					t.Errorf("phase %v, lag %v: %s at %v (%v), want it by %v", phase, lag, what, at, ok, by)
				}
			}
		}
	}
}

func TestPayloadIsWhatTheMachineMeans(t *testing.T) {
	start := time.UnixMilli(1767225600000)
	m := Cast()[0]
	f := func(r message, ts int64) {
		t.Helper()
		var got struct {
			TS          int64
			Temperature float64
			ID, Quality string
		}
		if err := json.Unmarshal(m.payload(r, start), &got); err != nil {
			t.Fatal(err)
		}
		if got.TS != ts || got.Temperature != 1.5 || got.Quality != "good" || got.ID != "m1-3" {
			t.Errorf("%+v: got %+v, want ts %d", r, got, ts)
		}
	}
	f(message{n: 3, taken: 3 * time.Second, value: 1.5}, 1767225603000)
	f(message{n: 3, taken: 3 * time.Second, value: 1.5, seconds: true}, 1767225603)
	f(message{n: 3, taken: 3 * time.Second, value: 1.5, skew: fastClock}, 1767225693000)
}
