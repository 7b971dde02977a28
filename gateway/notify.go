package gateway

import (
	"context"
	"fmt"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/rs/zerolog"

	"tidemark/clock"
)

// notifier speaks to systemd. The watchdog is fed only while the pipeline looks
// at its work: a gateway that hangs is restarted, one that waits for a full disk
// is not, since it knows what it waits for.
type notifier struct {
	on     bool
	health *health
	look   func() // brings the health up to date
	log    zerolog.Logger
}

func (n *notifier) say(state string) {
	if !n.on {
		return
	}
	if _, err := daemon.SdNotify(false, state); err != nil {
		n.log.Warn().Err(err).Msg("cannot notify systemd")
	}
}

func (n *notifier) ready()    { n.say(daemon.SdNotifyReady) }
func (n *notifier) stopping() { n.say(daemon.SdNotifyStopping) }

// reloading begins what the next ready ends. systemd wants the time at which it
// began on CLOCK_MONOTONIC (sd_notify(3)).
func (n *notifier) reloading() {
	n.say(fmt.Sprintf("%s\nMONOTONIC_USEC=%d", daemon.SdNotifyReloading, clock.Monotonic()/1000))
}

// watch keeps the health up to date, feeds the watchdog, if there is one, and
// tells systemd the verdict when it changes, until ctx ends.
func (n *notifier) watch(ctx context.Context) error {
	every := time.Second
	interval, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		n.log.Warn().Err(err).Msg("the watchdog's interval cannot be read; it is not fed")
	} else if interval > 0 {
		every = min(every, interval/3)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	var beat uint64
	var told string
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if b := n.health.beats.Load(); b != beat && interval > 0 {
			beat = b
			n.say(daemon.SdNotifyWatchdog)
		}
		n.look()
		if v := n.health.line(); v != told {
			told = v
			n.say("STATUS=" + v)
		}
	}
}
