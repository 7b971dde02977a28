package configs

import (
	"time"

	"tidemark/reading"
)

const (
	// sourceTolerance is by how much a source's clock may be off and its times still
	// be taken (SEMANTICS S3).
	sourceTolerance = Duration(time.Second)
	// checkedBound is a generous error of a clock that is checked over a network.
	checkedBound = Duration(100 * time.Millisecond)
)

// widths says of a feature whose windows are short which of its inputs' readings may
// be left out: one whose time is known to half a window at best says nothing about
// the window (rule 7 of the disposition in SEMANTICS, part 2).
func (c *checker) widths(p string, f *Feature) {
	own := checkedBound
	if c.Clock.Trust == TrustLocal {
		own = c.Clock.LocalBound
	}
	for i := range c.Inputs {
		in := &c.Inputs[i]
		t := &in.Timestamps
		if !f.Select.Input.Match(in.Name) || t.WhenWrong == reading.PolicyTrusted {
			continue
		}
		delay, key := t.MaxDelay, "max_delay"
		if o := in.OPCUA; o != nil && o.Publishing+o.Sampling > delay {
			delay, key = o.Publishing+o.Sampling, "publishing + sampling"
		}
		off := sourceTolerance + 2*own // what is taken may be ahead by the tolerance and the gateway's own error
		if t.Use == UseIngest {
			off = own
		}
		if f.Window > 2*(off+delay) {
			continue
		}
		c.notice(p+".window", "windows of %v can be too short for input %q: a time that is taken may be off by %v (clocks) + %v (%s) either way, and a reading that is as unsure as half the window is left out as BOUND_TOO_WIDE; %s",
			f.Window, in.Name, off, delay, key, wideEnough(f.Window, off, delay, key))
	}
}

// wideEnough is the remedy for a window that is too short.
func wideEnough(window, off, delay Duration, key string) string {
	longer := "make the window longer than " + (2 * (off + delay)).String()
	if room := window/2 - off; room > 0 {
		return longer + ", or " + key + " shorter than " + room.String()
	}
	return longer
}
