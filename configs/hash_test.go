package configs_test

import (
	"fmt"
	"strings"
	"testing"
)

const hashed = `
inputs:
  - name: a
    mqtt: {url: "mqtt://h", subscribe: [{topic: x, sensors: {t: {unit: Cel}, v: {scale: 0.1}}}]}
  - name: b
    mqtt: {url: "mqtt://h", subscribe: [{topic: y, sensors: {w: {}}}]}
features:
  - name: f
    version: 1
    select: {input: "*", type: number}
    functions: [count, mean]
`

// The hashes are part of records: a change here is a change for every consumer.
func TestHashesAreStable(t *testing.T) {
	f := mustParse(t, hashed).Features[0]
	if got, want := fmt.Sprintf("%08x %08x", f.Definition(), f.Tuning()), "838208d9 3b4a7a87"; got != want {
		t.Errorf("definition and tuning %s, want %s", got, want)
	}
}

// What changes values changes the definition; what changes their timing, the
// tuning; the rest neither.
func TestHashesFollowWhatTheyStandFor(t *testing.T) {
	const definition, tuning = 1, 2
	for _, x := range []struct {
		name, old, now string
		changes        int
	}{
		{"select", "type: number", "type: number, sensor: t", definition},
		{"input", `"*"`, "a", definition},
		{"functions", "[count, mean]", "[count, mean, max]", definition},
		{"order of functions", "[count, mean]", "[mean, count]", 0},
		{"window", "version: 1", "window: 10m", definition},
		{"window by defaults", "features:", "defaults: {window: 10m}\nfeatures:", definition},
		{"default window written out", "version: 1", "window: 5m", 0},
		{"every", "version: 1", "every: 1m", definition},
		{"offset", "version: 1", "offset: 1m", definition},
		{"hold", "version: 1", "hold: {max: 1h}", definition},
		{"group", "version: 1", "group: g", definition},
		{"group per asset", "version: 1", "group: g\n    group_per_asset: true", definition},
		{"quality", "version: 1", "quality: good_only", definition},
		{"emit_empty", "version: 1", "emit_empty: true", definition},
		{"scale", "scale: 0.1", "scale: 0.2", definition},
		{"scale of a sensor that is not selected", "type: number", "sensor: [t, w], type: number", definition},
		{"a sensor more", "w: {}", "w: {}, x: {unit: bar}", 0},
		{"time policy", "  - name: b\n", "  - name: b\n    timestamps: {use: ingest}\n", definition},
		{"identity", "  - name: b\n", "  - name: b\n    identity: none\n", definition},
		{"version", "version: 1", "version: 2", 0},
		{"name", "name: f", "name: g", 0},
		{"out_of_orderness", "version: 1", "out_of_orderness: 1s", tuning},
		{"allowed_lateness", "version: 1", "allowed_lateness: 1s", tuning},
		{"idle_after", "version: 1", "idle_after: 1s", tuning},
		{"scope", "version: 1", "scope: device", tuning},
		{"flush_after", "version: 1", "flush_after: 1s", tuning},
	} {
		t.Run(x.name, func(t *testing.T) {
			if !strings.Contains(hashed, x.old) {
				t.Fatalf("%q is not there to be changed", x.old)
			}
			before := mustParse(t, hashed).Features[0]
			after := mustParse(t, strings.Replace(hashed, x.old, x.now, 1)).Features[0]
			changed := 0
			if before.Definition() != after.Definition() {
				changed |= definition
			}
			if before.Tuning() != after.Tuning() {
				changed |= tuning
			}
			if changed != x.changes {
				t.Errorf("changed %d, want %d (1 definition, 2 tuning)", changed, x.changes)
			}
		})
	}
}

// Inputs that a feature selects by their absence share its policy: one more of
// them is a longer tag list, no other definition.
func TestInputMoreIsNoNewDefinition(t *testing.T) {
	one := `
inputs:
  - {name: a, mqtt: {url: "mqtt://h", subscribe: [{topic: "x/{sensor}"}]}}
features: [{name: f}]
`
	two := strings.Replace(one, "features", "  - {name: b, mqtt: {url: \"mqtt://h\", subscribe: [{topic: \"y/{sensor}\"}]}}\nfeatures", 1)
	if a, b := mustParse(t, one).Features[0], mustParse(t, two).Features[0]; a.Definition() != b.Definition() {
		t.Errorf("definition %08x became %08x", a.Definition(), b.Definition())
	}
}
