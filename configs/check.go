package configs

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// checker looks at a decoded tree as a whole: ranges, references, names.
type checker struct {
	*Config
	faults Faults
	bad    map[place]bool // where there is a fault already: it would only repeat
	meant  places         // keys that are only misspelt: their absence is no second fault
}

func newChecker(c *Config, faults Faults, meant places) *checker {
	k := &checker{Config: c, faults: faults, bad: map[place]bool{}, meant: meant}
	for _, f := range faults {
		k.bad[place{f.Line, f.Column}] = true
	}
	return k
}

// fault reports what stands at path, or what is missing there.
func (c *checker) fault(path, nearest, format string, args ...any) {
	at := c.places.of(path)
	if c.bad[at] && c.places.given(path) {
		return
	}
	c.faults = append(c.faults, Fault{File: c.file, Line: at.line, Column: at.column,
		Reason: fmt.Sprintf(format, args...), Nearest: nearest, feature: featureOf(path)})
}

// misspelt reports whether one of the keys below path seems to be there under a
// wrong name: what follows from its absence is no fault of its own.
func (c *checker) misspelt(path string, keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool { return c.meant.given(join(path, key)) })
}

// featureOf returns 1 + the index of the feature that path lies in, or 0.
func featureOf(path string) int {
	rest, ok := strings.CutPrefix(path, "features[")
	if !ok {
		return 0
	}
	number, _, _ := strings.Cut(rest, "]")
	i, err := strconv.Atoi(number)
	if err != nil {
		return 0
	}
	return i + 1
}

func (c *checker) notice(path, format string, args ...any) {
	n := Notice{File: c.file, Text: fmt.Sprintf(format, args...)}
	if path != "" && c.places.given(path) {
		at := c.places.of(path)
		n.Line, n.Column = at.line, at.column
	}
	c.Notices = append(c.Notices, n)
}

func (c *checker) check() {
	c.name("gateway.id", c.Gateway.ID)
	c.clock()
	c.store()
	c.web()
	within(c, "limits.max_open_windows", c.Limits.MaxOpenWindows, 1000, 100_000_000)
	if c.Limits.ForgetAfter != 0 {
		within(c, "limits.forget_after", c.Limits.ForgetAfter, Duration(time.Minute), 366*Day)
	}
	within(c, "limits.duplicate_horizon", c.Limits.DuplicateHorizon, 0, 366*Day)
	within(c, "limits.catchup_max", c.Limits.CatchupMax, 0, Day)
	c.inputs()
	c.assets()
	c.defaults()
	c.features()
	c.uplinks()
	c.sessions()
	c.echoes()
}

// within reports a value that the file gives and that is out of range.
func within[T int | Duration | Bytes](c *checker, path string, v, low, high T) {
	if v >= low && v <= high || !c.places.given(path) {
		return
	}
	c.fault(path, "", "%v is out of range: %v to %v", v, low, high)
}

// maxName is the longest name, in bytes: names are levels of MQTT topics.
const maxName = 128

// name reports what keeps s from being a name.
func (c *checker) name(path, s string) {
	if s == "" {
		if c.places.given(path) {
			c.fault(path, "", "a name cannot be empty")
		}
		return
	}
	if near, reason := wrongName(s); reason != "" {
		c.fault(path, near, "%s", reason)
	}
}

// wrongName returns why s can name nothing, and what may have been meant.
func wrongName(s string) (near, reason string) {
	switch {
	case len(s) > maxName:
		return "", fmt.Sprintf("a name is at most %d bytes long", maxName)
	case strings.ContainsFunc(s, unicode.IsControl) || strings.TrimSpace(s) != s:
		return strings.TrimSpace(s), "a name has no control characters, and no space at its ends"
	}
	return "", ""
}

// unique reports the second of its name among what stands at path.
func (c *checker) unique(kind, list string, names []string) {
	for i, n := range names {
		if first := slices.Index(names, n); first < i && n != "" {
			p := at(list, i) + ".name"
			c.fault(p, "", "there are two %ss named %q, the first in line %d", kind, clip(n), c.places.of(at(list, first)+".name").line)
		}
	}
}

func (c *checker) clock() {
	loopback := len(c.Clock.Servers) > 0
	for i, s := range c.Clock.Servers {
		p := at("clock.servers", i)
		host, ok := splitServer(s)
		if !ok {
			c.fault(p, "", "%q is no host or host:port", clip(s))
		} else if slices.Index(c.Clock.Servers, s) < i {
			c.fault(p, "", "%q stands here twice; a server has one vote", clip(s))
		}
		addr, err := netip.ParseAddr(host)
		loopback = loopback && err == nil && addr.IsLoopback()
	}
	floor := Duration(15 * time.Second) // RFC 4330 §10
	if loopback {
		floor = Duration(250 * time.Millisecond) // simulated servers
	}
	within(c, "clock.local_bound", c.Clock.LocalBound, Duration(time.Millisecond), Duration(time.Minute))
	within(c, "clock.poll_min", c.Clock.PollMin, floor, Duration(1024*time.Second))
	within(c, "clock.poll_max", c.Clock.PollMax, floor, Duration(1024*time.Second))
	if c.Clock.PollMax < c.Clock.PollMin {
		c.fault("clock.poll_max", "", "poll_max %v is below poll_min %v", c.Clock.PollMax, c.Clock.PollMin)
	}
	switch {
	case c.Clock.Trust == TrustLocal:
		c.notice("clock.trust", "the gateway's own clock is taken as it is (trust: local): for benches; every reading says clock unknown")
	case len(c.Clock.Servers) == 0:
		c.notice("", "no NTP server is named (clock.servers): only this host's chrony or kernel can vouch for its clock, and until one does readings wait as pending")
	case len(c.Clock.Servers) == 1:
		c.notice("clock.servers", "with one NTP server a wrong one cannot be told; name four")
	case len(c.Clock.Servers) < 3:
		c.notice("clock.servers", "with %d NTP servers a wrong one cannot be told; name four", len(c.Clock.Servers))
	}
}

// splitServer returns the host of host[:port], and whether it is one.
func splitServer(s string) (host string, ok bool) {
	if addr, err := netip.ParseAddr(strings.Trim(s, "[]")); err == nil {
		return addr.String(), true
	}
	host = s
	if strings.Contains(s, ":") {
		h, port, err := net.SplitHostPort(s)
		if n, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil || n == 0 {
			return "", false
		}
		host = h
	}
	return host, host != "" && !strings.ContainsAny(host, " /@\t[]")
}

// maxSocket is the longest path of a Unix socket on Linux, in bytes.
const maxSocket = 107

func (c *checker) store() {
	s := &c.Store
	if s.Path == "" && c.places.given("store.path") {
		c.fault("store.path", "", "the store needs a path")
	}
	if n := len(s.Path.Socket()); n > maxSocket {
		c.fault("store.path", "", "the path is too long: the socket beside the store, %s, has %d bytes, and the system takes %d; name a shorter store.path", clip(s.Path.Socket()), n, maxSocket)
	}
	if s.Quota > maxQuota && strconv.IntSize == 32 {
		c.notice("store.quota", "the quota is lowered to %v, the most that fits a 32-bit address space", maxQuota)
		s.Quota = maxQuota
	}
	within(c, "store.quota", s.Quota, 16<<20, maxQuota)
	within(c, "store.retain", s.Retain, Duration(time.Minute), 3660*Day)
	within(c, "store.commit_min_gap", s.CommitMinGap, 0, Duration(time.Second))
	within(c, "store.commit_interval", s.CommitInterval, Duration(time.Millisecond), Duration(time.Minute))
	within(c, "store.commit_bytes", s.CommitBytes, 4000, 16<<20)
	if s.CommitInterval < s.CommitMinGap {
		c.fault("store.commit_interval", "", "commit_interval %v is below commit_min_gap %v", s.CommitInterval, s.CommitMinGap)
	}
	if s.DailyBudget != 0 {
		within(c, "store.daily_budget", s.DailyBudget, 10e6, 1e15)
	}
}

func (c *checker) web() {
	if c.Web.Listen == "" {
		return
	}
	host, port, err := net.SplitHostPort(c.Web.Listen)
	if _, perr := strconv.ParseUint(port, 10, 16); err != nil || perr != nil {
		c.fault("web.listen", "", "%q is no host:port; write one such as 127.0.0.1:8080, or \"\" for no page", clip(c.Web.Listen))
		return
	}
	if addr, err := netip.ParseAddr(host); host != "localhost" && (err != nil || !addr.IsLoopback()) {
		if !c.Web.Token.Given() {
			c.fault("web.listen", "127.0.0.1:"+port, "%s is seen by other machines: say with web.token what they must know", clip(c.Web.Listen))
		}
		c.notice("web.listen", "the page and its token cross the network unencrypted: better listen on 127.0.0.1, behind a proxy with TLS or ssh -L")
	}
	if !c.secret("web.token", c.Web.Token) || !c.Web.Token.Given() {
		return
	}
	if token, err := c.Web.Token.Read(); err == nil && len(token) < shortToken {
		c.notice("web.token", "%d characters can be guessed; make a token with: head -c 18 /dev/urandom | base64", len(token))
	}
}

// shortToken is how many characters a token has at least that nobody tries out.
const shortToken = 16

func (c *checker) assets() {
	for i, a := range c.Assets {
		p := at("assets", i)
		c.name(p, a.Name)
		for j, l := range a.Lifecycles {
			q := at(p+".lifecycles", j)
			c.name(q+".id", l.ID)
			switch {
			case j > 0 && !c.places.given(q+".from"):
				c.fault(q, "", "every lifecycle but the first needs a from")
			case j > 0 && l.From.Given() && a.Lifecycles[j-1].From >= l.From:
				c.fault(q+".from", "", "lifecycles stand in order of time, and %v is not after %v", l.From, a.Lifecycles[j-1].From)
			}
		}
		for old, now := range a.Aliases {
			if _, again := a.Aliases[now]; again {
				c.fault(p+".aliases."+old, "", "%q is an alias itself; name the sensor as it is called now", clip(now))
			}
			c.name(p+".aliases."+old, now)
		}
	}
}
