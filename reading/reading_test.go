package reading_test

import (
	"testing"

	"tidemark/reading"
)

// Two names never become one in JSON, where bytes that are no UTF-8 are all U+FFFD.
func TestNamesAreTextThatJSONTellsApart(t *testing.T) {
	for sent, want := range map[string]string{
		"K\xfchler": "Kühler", "K\xe4hler": "Kähler", "Kühler": "Kühler", "\xff": "ÿ", "\xfe": "þ", "": "", "温度": "温度", "\ufffd": "\ufffd",
	} {
		s := reading.MakeTag(reading.Series{Input: sent, Asset: sent, Device: sent, Lifecycle: sent, Sensor: sent}).Value()
		if s != (reading.Series{Input: want, Asset: want, Device: want, Lifecycle: want, Sensor: want}) {
			t.Errorf("%q: %q, want %q", sent, s, want)
		}
	}
}
