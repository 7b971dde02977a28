package clock

import (
	"context"
	"fmt"
	"math"
	"net"
	"time"

	"github.com/facebook/time/ntp/chrony"
)

// chronyAddress is chronyd's command port; it answers tracking requests of
// anybody on the host.
const chronyAddress = "127.0.0.1:323"

// chronyUnsynchronised is the leap status of a chronyd without a source.
const chronyUnsynchronised = 3

// askChrony reads chronyd's tracking report. A report without any reference is
// an error: its delay and dispersion are placeholders.
func askChrony(ctx context.Context) (chronyReading, error) {
	d := net.Dialer{Timeout: time.Second}
	conn, err := d.DialContext(ctx, "udp", chronyAddress)
	if err != nil {
		return chronyReading{}, fmt.Errorf("cannot reach chronyd: %w", err)
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return chronyReading{}, fmt.Errorf("cannot ask chronyd: %w", err)
	}
	answer, err := (&chrony.Client{Connection: conn, Sequence: 1}).Communicate(chrony.NewTrackingPacket())
	if err != nil {
		return chronyReading{}, fmt.Errorf("cannot ask chronyd: %w", err)
	}
	tracking, ok := answer.(*chrony.ReplyTracking)
	if !ok {
		return chronyReading{}, fmt.Errorf("chronyd answers with a %T", answer)
	}
	if tracking.RefID == 0 {
		return chronyReading{}, fmt.Errorf("chronyd has no reference")
	}
	return chronyReading{
		RefID: tracking.RefID, Stratum: tracking.Stratum, Synchronised: tracking.LeapStatus != chronyUnsynchronised,
		LeapPending:  tracking.LeapStatus == 1,
		SystemTimeNS: secondsUp(tracking.CurrentCorrection), RootDelayNS: secondsUp(tracking.RootDelay),
		RootDispersionNS: secondsUp(tracking.RootDispersion),
	}, nil
}

// secondsUp converts to nanoseconds, away from zero; what int64 cannot hold
// saturates, and NaN is as large as can be.
func secondsUp(s float64) int64 {
	ns := s * 1e9
	switch {
	case !(math.Abs(ns) < math.MaxInt64):
		return math.MaxInt64
	case ns < 0:
		return int64(math.Floor(ns))
	}
	return int64(math.Ceil(ns))
}
