package clock

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

func bootNow() int64 {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return monotonicNow()
	}
	return ts.Nano()
}

// Monotonic returns CLOCK_MONOTONIC in nanoseconds, by which systemd counts.
func Monotonic() int64 { return monotonicNow() }

func monotonicNow() int64 {
	var ts unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts) // fails only for clocks that don't exist
	return ts.Nano()
}

// bootID hashes the kernel's random boot id; 0 if it cannot be read, which
// equals no stored one.
func bootID() uint64 {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return 0
	}
	h := fnv.New64a()
	h.Write(b)
	return h.Sum64()
}

// timesyncdRan exists once systemd-timesyncd has set the clock. It starts the
// kernel's maxerror at zero, which is then no bound.
const timesyncdRan = "/run/systemd/timesync/synchronized"

func askKernel() (kernelReading, error) {
	var tx unix.Timex
	if _, err := unix.Adjtimex(&tx); err != nil {
		return kernelReading{}, fmt.Errorf("cannot ask the kernel for its clock's error: %w", err)
	}
	if _, err := os.Stat(timesyncdRan); err == nil {
		return kernelReading{}, errors.New("systemd-timesyncd keeps no error bound in the kernel; configure clock.servers")
	}
	scale := int64(1e3)
	if tx.Status&unix.STA_NANO != 0 {
		scale = 1
	}
	return kernelReading{
		MaxErrorUS:      int64(tx.Maxerror),
		PendingOffsetNS: int64(tx.Offset) * scale,
		Disciplined:     tx.Status&unix.STA_UNSYNC == 0,
		LeapPending:     tx.Status&unix.STA_INS != 0,
	}, nil
}

// watchSteps waits on a timer that never fires and that the kernel cancels when
// the wall clock is set (TFD_TIMER_CANCEL_ON_SET). Slewing does not cancel it.
func watchSteps(ctx context.Context, stepped func()) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_REALTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return // the look at every second goes on without it
	}
	f := os.NewFile(uintptr(fd), "timerfd")
	stop := context.AfterFunc(ctx, func() { f.Close() })
	defer func() {
		if stop() {
			f.Close()
		}
	}()
	for arm(fd) == nil {
		_, err := f.Read(make([]byte, 8))
		if ctx.Err() != nil || !errors.Is(err, unix.ECANCELED) {
			return
		}
		stepped()
	}
}

func arm(fd int) error {
	far := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(math.MaxInt32) * 1e9)}
	return unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME|unix.TFD_TIMER_CANCEL_ON_SET, &far, nil)
}
