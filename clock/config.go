package clock

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Trust is how the gateway's clock comes to be believed.
type Trust uint8

const (
	// TrustChecked believes the clock only as far as NTP servers or a host daemon
	// vouch for it.
	TrustChecked Trust = iota
	// TrustLocal accepts the host's clock with Config.LocalBound wherever nothing
	// better is known; the state shown stays unknown. For benches only.
	TrustLocal
)

// String returns the trust as the configuration spells it.
func (t Trust) String() string { return [...]string{"checked", "local"}[min(t, TrustLocal)] }

// Config is what a user says about time.
type Config struct {
	// Servers are NTP servers, host or host:port. Four are recommended; three
	// tolerate one liar. With none, the host's daemon is the only evidence.
	Servers []string
	Trust   Trust
	// LocalBound is the error that TrustLocal assumes, DefaultLocalBound if zero.
	LocalBound time.Duration
	// PollMin and PollMax bound the time between two polls of a server;
	// DefaultPollMin and DefaultPollMax if zero.
	PollMin, PollMax time.Duration
}

// Defaults and limits of Config.
const (
	DefaultLocalBound = time.Second
	DefaultPollMin    = 64 * time.Second
	DefaultPollMax    = 1024 * time.Second

	// PollFloor is the least time between two polls of a server (RFC 4330 §10).
	PollFloor = 15 * time.Second
	// LoopbackPollFloor takes its place for a server whose address is written as
	// one of the loopback network: nobody else's server can be meant, and
	// simulated ones are asked often.
	LoopbackPollFloor = 250 * time.Millisecond
)

// Validate returns what is wrong with c, naming the key and the remedy.
func (c Config) Validate() error {
	seen := make(map[string]bool, len(c.Servers))
	for _, s := range c.Servers {
		if _, _, err := splitServer(s); err != nil {
			return fmt.Errorf("clock.servers: %q is no host or host:port: %w", s, err)
		}
		if seen[s] {
			return fmt.Errorf("clock.servers: %q stands there twice; a server votes once", s)
		}
		seen[s] = true
	}
	if c.Trust > TrustLocal {
		return fmt.Errorf("clock.trust: must be checked or local")
	}
	if c.LocalBound < 0 || c.LocalBound > time.Duration(unknownAbove) {
		return fmt.Errorf("clock.local_bound: %v is outside 0 to %v", c.LocalBound, time.Duration(unknownAbove))
	}
	c = c.withDefaults()
	if floor := c.pollFloor(); c.PollMin < floor {
		return fmt.Errorf("clock.poll_min: %v is below %v, the least that public and plant servers are asked at (RFC 4330 §10)", c.PollMin, floor)
	}
	if c.PollMax < c.PollMin {
		return fmt.Errorf("clock.poll_max: %v is below poll_min, %v", c.PollMax, c.PollMin)
	}
	return nil
}

func (c Config) withDefaults() Config {
	c.LocalBound = cmp.Or(c.LocalBound, DefaultLocalBound)
	c.PollMin = cmp.Or(c.PollMin, DefaultPollMin)
	c.PollMax = cmp.Or(c.PollMax, max(DefaultPollMax, c.PollMin))
	return c
}

// pollFloor is the least poll interval that every server of c allows.
func (c Config) pollFloor() time.Duration {
	for _, s := range c.Servers {
		if !isLoopback(s) {
			return PollFloor
		}
	}
	if len(c.Servers) == 0 {
		return PollFloor
	}
	return LoopbackPollFloor
}

// isLoopback reports whether server is written as a loopback address. A name is
// not looked up: what it means may change.
func isLoopback(server string) bool {
	host, _, err := splitServer(server)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.IsLoopback()
}

// splitServer splits host[:port]; the port is "123" if not given.
func splitServer(server string) (host, port string, err error) {
	if addr, err := netip.ParseAddr(strings.Trim(server, "[]")); err == nil {
		return addr.String(), "123", nil
	}
	if strings.Contains(server, ":") {
		if host, port, err = net.SplitHostPort(server); err != nil {
			return "", "", err
		}
	} else {
		host, port = server, "123"
	}
	if host == "" || strings.ContainsAny(host, " /@") {
		return "", "", errors.New("no usable host name")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", "", fmt.Errorf("no usable port %q", port)
	}
	return host, port, nil
}
