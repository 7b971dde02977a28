package uplink

import (
	"testing"

	"tidemark/windowing"
)

// What cannot be chosen is sent, so that whoever renders it says what is wrong.
func TestTypesTake(t *testing.T) {
	chosen, err := parseTypes([]string{"late"}, false)
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[windowing.EmissionKind]bool{
		windowing.EmitLate: true, windowing.EmitFeature: false, windowing.EmitDuplicate: true, windowing.EmitWatermark: true, 0: true, 200: true,
	} {
		if got := chosen.takesEmission(kind); got != want {
			t.Errorf("emission of kind %d: %v, want %v", kind, got, want)
		}
	}
}
