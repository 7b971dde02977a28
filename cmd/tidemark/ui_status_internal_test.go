package main

import "testing"

func TestCrop(t *testing.T) {
	const text = "verdict\na long line µµ\nthird\nfourth\n"
	for _, c := range []struct {
		width, height int
		want          string
	}{
		{80, 24, text},
		{80, 5, text},
		{13, 24, "verdict\na long line …\nthird\nfourth\n"},
		{80, 4, "verdict\na long line µµ\n… 2 lines more: without --watch, or in a higher window\n"},
		{0, 0, text},
	} {
		if got := crop(text, c.width, c.height); got != c.want {
			t.Errorf("%d x %d: %q, want %q", c.width, c.height, got, c.want)
		}
	}
}
