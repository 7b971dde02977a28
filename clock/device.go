package clock

import (
	"context"
	"time"
)

// device is everything outside the process that the clock looks at. Tests put
// fake time here; every field must be set.
type device struct {
	// clocks reads the wall clock and a monotonic clock in one cheap look. The
	// monotonic one may stand still while the machine sleeps.
	clocks func() (wallNS, monoNS int64)
	// pair reads the wall clock and CLOCK_BOOTTIME as close together as can be.
	pair func() (wallNS, bootNS int64)
	// bootID is the same for as long as the machine runs.
	bootID func() uint64
	// chrony asks chronyd; kernel asks adjtimex. An error means that there is none
	// to ask, or none that says anything.
	chrony func(context.Context) (chronyReading, error)
	kernel func() (kernelReading, error)
	// query asks one NTP server.
	query func(ctx context.Context, server string) (reply, error)
	// watchSteps calls stepped soon after each step of the wall clock, until ctx
	// ends or there is nothing to watch with. The look at every second goes on
	// beside it.
	watchSteps func(ctx context.Context, stepped func())
}

// host is the device that the gateway runs on.
func host() device {
	base := time.Now()
	return device{
		clocks: func() (int64, int64) {
			now := time.Now() // one look: both readings are of the same instant
			return now.UnixNano(), now.Sub(base).Nanoseconds()
		},
		pair:       func() (int64, int64) { return tightPair(wallNow, bootNow) },
		bootID:     bootID,
		chrony:     askChrony,
		kernel:     askKernel,
		query:      queryNTP,
		watchSteps: watchSteps,
	}
}

// HostTime is the host's wall clock as it is, checked by nobody: for what a person
// makes, such as a file's name or a certificate, never for a reading.
func HostTime() time.Time { return time.Now() }

func wallNow() int64 { return time.Now().UnixNano() }

// tightPair reads wall between two looks at boot and keeps the closest of five
// tries, so that a preempted thread is not taken for a step.
func tightPair(wall, boot func() int64) (wallNS, bootNS int64) {
	best := int64(-1)
	for range 5 {
		before := boot()
		w := wall()
		after := boot()
		if gap := after - before; best < 0 || gap < best {
			best, wallNS, bootNS = gap, w, before+gap/2
		}
	}
	return wallNS, bootNS
}
