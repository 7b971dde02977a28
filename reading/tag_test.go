package reading_test

import (
	"fmt"
	"maps"
	"runtime"
	"testing"

	"pgregory.net/rapid"

	"tidemark/reading"
)

// ByTag is a map: whatever is done to both, they hold the same.
func TestByTagIsAMap(t *testing.T) {
	pool := make([]reading.Tag, 20)
	for i := range pool {
		pool[i] = reading.MakeTag(reading.Series{Input: "tags", Sensor: fmt.Sprint(i)})
	}
	rapid.Check(t, func(t *rapid.T) {
		var tags reading.ByTag[int]
		twin := map[reading.Tag]int{}
		tag := rapid.SampledFrom(pool)
		t.Repeat(map[string]func(*rapid.T){
			"set": func(t *rapid.T) {
				k, v := tag.Draw(t, "tag"), rapid.Int().Draw(t, "value")
				tags.Set(k, v)
				twin[k] = v
			},
			"delete": func(t *rapid.T) {
				k := tag.Draw(t, "tag")
				tags.Delete(k)
				delete(twin, k)
			},
			"clear": func(*rapid.T) {
				tags.Clear()
				clear(twin)
			},
			"": func(t *rapid.T) {
				k := tag.Draw(t, "tag")
				if tags.Get(k) != twin[k] || tags.Len() != len(twin) || !maps.Equal(maps.Collect(tags.All()), twin) {
					t.Fatalf("%v instead of %v", maps.Collect(tags.All()), twin)
				}
			},
		})
	})
}

// A tag that nobody has is forgotten, and its number serves another; one that somebody
// has stays the only one of its series.
func TestTagsVanishWithTheirLastUser(t *testing.T) {
	kept := reading.MakeTag(reading.Series{Input: "kept"})
	var tags reading.ByTag[bool]
	tags.Set(kept, true)
	const each, rounds = 5_000, 20
	var before, after runtime.MemStats
	for round := range rounds {
		for i := range each {
			reading.MakeTag(reading.Series{Input: "passing", Sensor: fmt.Sprint(round, "/", i)})
		}
		runtime.GC()
		runtime.GC()
		if round == rounds/2 {
			runtime.ReadMemStats(&before)
		}
	}
	runtime.ReadMemStats(&after)
	if grown := int64(after.HeapAlloc) - int64(before.HeapAlloc); grown > 4<<20 {
		t.Errorf("%d tags that are gone took %d bytes", each*rounds/2, grown)
	}
	if again := reading.MakeTag(reading.Series{Input: "kept"}); again != kept || !tags.Get(again) {
		t.Error("a living tag has a twin")
	}
}
