package clock

import "time"

// leapWatch knows when a leap second is due. Servers announce it by the leap
// indicator before the end of a UTC month; some smear it over a day around.
type leapWatch struct {
	pending bool
	atNS    int64 // the instant after the leap second, while one is near
}

// leapSpan is how far from a leap second a reading may still feel it: half a
// day-long smear, and as much again for sources that announce nothing.
const leapSpan = int64(24 * time.Hour)

// announce takes in what a majority of the servers say at wallNS.
func (l *leapWatch) announce(pending bool, wallNS int64) {
	l.pending = pending
	if pending {
		t := time.Unix(0, wallNS).UTC()
		l.atNS = time.Date(t.Year(), t.Month()+1, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	}
}

// window reports whether a leap second may be felt at wallNS.
func (l leapWatch) window(wallNS int64) bool {
	return l.atNS != 0 && abs(wallNS-l.atNS) <= leapSpan
}
