package main

import (
	"fmt"
	"strings"
	"time"

	"tidemark/clock"
	"tidemark/gateway"
)

func clockLine(c *clock.Status) string {
	if c.Trust == clock.TrustLocal.String() {
		return "unchecked (trust: local), taken to be within " + milliseconds(c.BoundNS)
	}
	line := c.State
	if c.BoundNS >= 0 {
		line += ", within " + milliseconds(c.BoundNS)
	}
	switch {
	case len(c.Servers) == 0 && c.HostMethod == "none":
		return line + ", no server is named, and nothing on this host vouches for it"
	case len(c.Servers) == 0:
		return line + ", no server is named, only this host's " + c.HostMethod + " is asked"
	}
	agree := 0
	for _, s := range c.Servers {
		if s.Verdict == "truechimer" {
			agree++
		}
	}
	return line + fmt.Sprintf(", %d of %s agree", agree, count(len(c.Servers), "server"))
}

// clock tells what the servers say, and which sources are not right.
func (s *statusScreen) clock(c *clock.Status) {
	if !s.told("clock", c.Advice) {
		s.detail(c.Advice)
	}
	if c.HasOffset {
		s.detail(fmt.Sprintf("true time is %s to %s from this host's clock, by %s", offsetText(c.OffsetLoNS), offsetText(c.OffsetHiNS), c.Method))
	}
	if c.HostError != "" && len(c.Servers) == 0 {
		s.detail("this host: " + c.HostError)
	}
	for i := range c.Servers {
		s.detail(serverLine(&c.Servers[i]))
	}
	right := 0
	for i := range c.Sources {
		switch src := &c.Sources[i]; {
		case src.Advice == "":
			right++
		case i < sourcesShown && !s.told("source clocks", src.Advice):
			s.detail("! " + src.Advice)
		}
	}
	if wrong := len(c.Sources) - right; wrong > sourcesShown {
		s.detail(fmt.Sprintf("! and %s more; --json lists them", count(wrong-sourcesShown, "source clock")))
	}
	if right > 0 {
		s.detail(fmt.Sprintf("%s: nothing against them", count(right, "source clock")))
	}
}

// wrongSources counts them where there is no room to name them.
func (s *statusScreen) wrongSources(c *clock.Status) string {
	wrong := 0
	for i := range c.Sources {
		if c.Sources[i].Advice != "" {
			wrong++
		}
	}
	if wrong == 0 || s.brief == 0 {
		return ""
	}
	return fmt.Sprintf("; %d of %s off", wrong, count(len(c.Sources), "source"))
}

// sourcesShown is how many wrong source clocks are on the screen, the worst first.
const sourcesShown = 5

func serverLine(v *clock.ServerStatus) string {
	line := fmt.Sprintf("%-20s %s", v.Address, v.Verdict)
	if v.DistanceNS > 0 {
		line += fmt.Sprintf(", %s ± %s, stratum %d", offsetText(v.OffsetNS), spanText(v.DistanceNS), v.Stratum)
	}
	if v.Error != "" {
		line += ": " + v.Error
	}
	return line
}

// remarks tells of nodes that are read, but not as configured.
func (s *statusScreen) remarks(r *gateway.ReaderStatus) {
	if r == nil || r.Problem != "" || len(r.Unread) == 0 {
		return // what is not read at all comes first
	}
	first := r.Unread[0].Place + ": " + r.Unread[0].Reason
	if n := len(r.Unread); n > 1 {
		first = fmt.Sprintf("%s; the first, %s", count(n, "remark"), first)
	}
	s.detail(first)
}

func (s *statusScreen) input(in *gateway.InputStatus) {
	state := "not read"
	if r := in.Reader; r != nil {
		state = r.State + ", " + s.ago("data", r.LastData) + s.ends(r.CertificateEnds)
	}
	s.linef("input     %-16s %s", in.Name, state)
	if in.Reader != nil && !s.told("input "+in.Name, in.Reader.Problem) {
		s.detail(in.Reader.Problem)
	}
	s.remarks(in.Reader)
	c := &in.Counts
	s.detail(sums(c))
	if c.Pending > 0 {
		s.detail(fmt.Sprintf("of the pending: %d still are", in.PendingNow) + terms(", ",
			tally{"accepted", c.PendingAccepted}, tally{"duplicate", c.PendingDuplicate}, tally{"quarantined", c.PendingQuarantined}))
	}
	s.detail(reasons("quarantined for", in.Quarantine))
	if out := c.ReleasedAccepted + c.ReleasedDuplicate; out > 0 {
		s.detail(fmt.Sprintf("of the quarantined: %d still are", in.QuarantinedNow) + terms(", ",
			tally{"released and accepted", c.ReleasedAccepted}, tally{"released as duplicate", c.ReleasedDuplicate}))
	}
	s.detail(reasons("rejected for", in.Rejects))
}

// sums is where an input's readings are.
func sums(c *gateway.InputCounts) string {
	return fmt.Sprintf("received %d = accepted %d", c.Received, c.Accepted) + terms(" + ",
		tally{"duplicate", c.Duplicate}, tally{"malformed", c.Malformed}, tally{"unmatched", c.Unmatched},
		tally{"quarantined", c.Quarantined}, tally{"pending", c.Pending})
}

// received is what all inputs together brought, where there is no room for each.
func (s *statusScreen) received() {
	if s.brief == 0 {
		return
	}
	var all gateway.InputCounts
	for i := range s.st.Inputs {
		c := &s.st.Inputs[i].Counts
		all.Received += c.Received
		all.Accepted += c.Accepted
		all.Duplicate += c.Duplicate
		all.Malformed += c.Malformed
		all.Unmatched += c.Unmatched
		all.Quarantined += c.Quarantined
		all.Pending += c.Pending
	}
	s.linef("readings  %s", strings.Join(wrapTo(sums(&all), screenWidth-10, 2), "\n          "))
}

// ends warns of a certificate that will soon end.
func (s *statusScreen) ends(certificate string) string {
	t, err := time.Parse(time.RFC3339, certificate)
	days := t.Sub(s.at) / (24 * time.Hour)
	switch {
	case err != nil || s.at.IsZero() || days >= certificateDays:
		return ""
	case t.Before(s.at):
		return ", certificate ENDED at " + moment(certificate)
	}
	return fmt.Sprintf(", certificate ends in %s", count(int(days), "day"))
}

// certificateDays is for how long before its end a certificate is spoken of.
const certificateDays = 45

// store tells how full the store is, and how far back it reaches.
func (s *statusScreen) store() {
	st := &s.st.Store
	s.linef("store     block %d, %s, %s of %s used, %s free on disk",
		s.st.Block, count(st.Readings, "reading"), bytesText(st.UsedBytes), bytesText(st.QuotaBytes), bytesText(st.FreeBytes))
	reach := ""
	if st.OldestMS > 0 && !s.at.IsZero() {
		reach = "reaches back " + shortMS(max(0, s.at.UnixMilli()-st.OldestMS))
	}
	if left, ok := st.RoomFor(); ok {
		reach += ", room for " + shortMS(left.Milliseconds()) + " more at this rate"
	}
	s.more(reach)
}

// behind is a watermark by how far it is behind the status.
func (s *statusScreen) behind(watermark string) string {
	t, err := time.Parse(time.RFC3339, watermark)
	switch {
	case watermark == "":
		return "no watermark yet"
	case err != nil || s.at.IsZero():
		return "watermark " + watermark
	}
	return "watermark " + shortMS(s.at.Sub(t).Milliseconds()) + " behind"
}

func (s *statusScreen) feature(f *gateway.FeatureStatus) {
	if f.Disabled != "" {
		s.linef("feature   %-16s disabled: %s", f.Name, f.Disabled)
		return
	}
	held := ""
	// One partition alone is always the one.
	if len(f.HeldBy) > 0 && len(f.Active)+len(f.Idle)+len(f.Stalled) > 1 {
		held = ", held by " + strings.Join(f.HeldBy, ", ")
	}
	s.linef("feature   %-16s %s%s, %s, %s", f.Name, s.behind(f.Watermark), held, count(f.Keys, "key"), count(f.OpenWindows, "open window"))
	s.detail(fmt.Sprintf("windowed %d, late %d, excluded %d", f.Windowed, f.Late, f.Excluded))
}

func (s *statusScreen) uplink(u *gateway.UplinkStatus) {
	waits := fmt.Sprintf("backlog %d", u.Backlog)
	if t, err := time.Parse(time.RFC3339, u.Oldest); err == nil && !s.at.IsZero() && s.at.Sub(t) > 10*time.Second {
		waits += " for " + shortMS(s.at.Sub(t).Milliseconds())
	}
	if u.RawBlocks > 1 { // one is always on its way
		waits += fmt.Sprintf(" and the readings of %d blocks", u.RawBlocks)
	}
	s.linef("uplink    %-16s %s%s, %s, %s", u.Name, u.State, s.ends(u.CertificateEnds), waits, s.ago("acknowledgement", u.LastAck))
	if !s.told("uplink "+u.Name, u.Reason) {
		s.detail(u.Reason)
	}
	if u.SetAside > 0 {
		s.detail(fmt.Sprintf("%s set aside: the broker can never take them", count(u.SetAside, "record")))
	}
}
