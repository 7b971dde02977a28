package clock

import (
	"time"

	"tidemark/reading"
)

// Offsets that tell how a clock is wrong. TAI is 37 s and GPS time 18 s ahead of
// UTC since 2017; the zones are all that are or recently were in use.
const (
	taiAhead      = 37 * int64(time.Second)
	gpsAhead      = 18 * int64(time.Second)
	scaleSlack    = int64(time.Second / 2)
	zoneSlack     = 20 * int64(time.Second)
	rolloverSlack = int64(24 * time.Hour)
	// gpsRollover is 1024 weeks, what a receiver falls back by when its week
	// counter overflows.
	gpsRollover = -1024 * 7 * 24 * int64(time.Hour)
)

var zoneMinutes = [...]int16{
	60, -60, 120, -120, 180, -180, 210, -210, 240, -240, 300, -300, 360, -360, 420, -420, 480, -480,
	540, -540, 570, -570, 600, -600, 660, -660, 720, -720, -150,
	270, 330, 345, 390, 525, 630, 765, 780, 825, 840,
}

// covers reports whether the interval, widened by slack, contains ns.
func (i Interval) covers(ns, slack int64) bool { return i.LoNS-slack <= ns && ns <= i.HiNS+slack }

// shape names an offset that looks like another time scale or a zone. Several
// zones in a wide interval: the one nearest its middle.
func shape(i Interval) (reading.SourceVerdict, int16) {
	switch {
	case i.covers(taiAhead, scaleSlack):
		return reading.SourceTAIShaped, 0
	case i.covers(gpsAhead, scaleSlack):
		return reading.SourceGPSShaped, 0
	}
	best, zone := int64(-1), int16(0)
	for _, m := range zoneMinutes {
		ns := int64(m) * int64(time.Minute)
		if off := abs(ns - i.middle()); i.covers(ns, zoneSlack) && (best < 0 || off < best) {
			best, zone = off, m
		}
	}
	if best < 0 {
		return reading.SourceOK, 0
	}
	return reading.SourceTZShaped, zone
}
