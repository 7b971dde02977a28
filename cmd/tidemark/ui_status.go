package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/term"

	"tidemark/clock"
	"tidemark/gateway"
)

// clearScreen clears a terminal for the next picture.
func clearScreen(w io.Writer) { fmt.Fprint(w, "\x1b[H\x1b[2J") }

// onScreen is the text as a terminal has room for it, so that the verdict at its
// beginning stays in sight; on anything else it is the text as it is.
func onScreen(text string, w io.Writer) string {
	f, ok := w.(*os.File)
	if !ok {
		return text
	}
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return text
	}
	return crop(text, width, height)
}

// crop cuts a text to so many columns and lines, and says what it leaves out.
func crop(text string, width, height int) string {
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	if height > 2 && len(lines) > height-1 { // the cursor takes the last
		more := len(lines) - (height - 2)
		lines = append(lines[:height-2], fmt.Sprintf("… %d lines more: without --watch, or in a higher window", more))
	}
	for i, l := range lines {
		if r := []rune(l); width > 1 && len(r) > width {
			lines[i] = string(r[:width-1]) + "…"
		}
	}
	return strings.Join(lines, "\n") + "\n"
}

// statusScreen writes the gateway's status for people.
type statusScreen struct {
	strings.Builder
	st *gateway.Status
	at time.Time // of the status; zero if it cannot be read
}

// printStatus prints the gateway's status on one screen, the verdict first.
func printStatus(w io.Writer, st *gateway.Status) error {
	s := statusScreen{st: st}
	s.at, _ = time.Parse(time.RFC3339, st.At)
	s.linef("%s  %s  %s", st.Gateway, strings.ToUpper(st.Verdict), moment(st.At))
	for _, f := range st.Because {
		s.linef("  ! %s: %s (since %s)", f.Name, f.Detail, moment(f.Since))
	}
	s.linef("\nclock     %s", clockLine(&st.Clock))
	s.clock(&st.Clock)
	for i := range st.Inputs {
		s.input(&st.Inputs[i])
	}
	s.features(st.Features)
	for i := range st.Uplinks {
		s.uplink(&st.Uplinks[i])
	}
	s.store()
	if st.Conserved {
		s.linef("sums      hold: every reading is accounted for")
	} else {
		s.linef("sums      DO NOT HOLD: a reading is not accounted for. This is a fault of the gateway; please report it.")
	}
	_, err := io.WriteString(w, s.String())
	return err
}

// printNoAnswer stands in for the status while the gateway is away.
func printNoAnswer(w io.Writer, err error) error {
	_, werr := fmt.Fprintf(w, "no answer: %v; asking again\n", err)
	return werr
}

func (s *statusScreen) linef(format string, args ...any) {
	fmt.Fprintf(s, format+"\n", args...)
}

// more writes a line that goes on with the one above.
func (s *statusScreen) more(text string) {
	if text != "" {
		s.linef("          %s", text)
	}
}

// told reports whether the verdict says it already.
func (s *statusScreen) told(name, problem string) bool {
	return slices.ContainsFunc(s.st.Because, func(f gateway.Fault) bool {
		return f.Name == name && strings.Contains(f.Detail, problem)
	})
}

func clockLine(c *clock.Status) string {
	if c.Trust == clock.TrustLocal.String() {
		return "unchecked (trust: local), taken to be within " + milliseconds(c.BoundNS)
	}
	line := c.State
	if c.BoundNS >= 0 {
		line += ", within " + milliseconds(c.BoundNS)
	}
	if len(c.Servers) == 0 {
		return line + ", no server is named; this host says: " + c.HostMethod
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
		s.more(c.Advice)
	}
	if c.HasOffset {
		s.more(fmt.Sprintf("true time is %s to %s from this host's clock, by %s", offsetText(c.OffsetLoNS), offsetText(c.OffsetHiNS), c.Method))
	}
	if c.HostError != "" && len(c.Servers) == 0 {
		s.more("this host: " + c.HostError)
	}
	for i := range c.Servers {
		s.more(serverLine(&c.Servers[i]))
	}
	right := 0
	for i := range c.Sources {
		switch src := &c.Sources[i]; {
		case src.Advice == "":
			right++
		case i < sourcesShown && !s.told("source clocks", src.Advice):
			s.more("! " + src.Advice)
		}
	}
	if wrong := len(c.Sources) - right; wrong > sourcesShown {
		s.more(fmt.Sprintf("! and %s more; --json lists them", count(wrong-sourcesShown, "source clock")))
	}
	if right > 0 {
		s.more(fmt.Sprintf("%s: nothing against them", count(right, "source clock")))
	}
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

// offsetText is an offset with its sign.
func offsetText(ns int64) string {
	if ns < 0 {
		return "-" + spanText(-ns)
	}
	return "+" + spanText(ns)
}

// spanText is a length of time with as many digits as say something of a clock.
func spanText(ns int64) string {
	if ns < 1e6 {
		return strconv.FormatInt((ns+999)/1000, 10) + " µs"
	}
	return milliseconds(ns)
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
	s.more(first)
}

func (s *statusScreen) input(in *gateway.InputStatus) {
	state := "not read"
	if r := in.Reader; r != nil {
		state = r.State + ", " + s.ago("data", r.LastData)
	}
	s.linef("input     %-16s %s", in.Name, state)
	if in.Reader != nil && !s.told("input "+in.Name, in.Reader.Problem) {
		s.more(in.Reader.Problem)
	}
	s.remarks(in.Reader)
	c := &in.Counts
	s.more(fmt.Sprintf("received %d = accepted %d", c.Received, c.Accepted) + terms(" + ",
		tally{"duplicate", c.Duplicate}, tally{"malformed", c.Malformed}, tally{"unmatched", c.Unmatched},
		tally{"quarantined", c.Quarantined}, tally{"pending", c.Pending}))
	if c.Pending > 0 {
		s.more(fmt.Sprintf("of the pending: %d still are", in.PendingNow) + terms(", ",
			tally{"accepted", c.PendingAccepted}, tally{"duplicate", c.PendingDuplicate}, tally{"quarantined", c.PendingQuarantined}))
	}
	s.more(reasons("quarantined for", in.Quarantine))
	if out := c.ReleasedAccepted + c.ReleasedDuplicate; out > 0 {
		s.more(fmt.Sprintf("of the quarantined: %d still are", in.QuarantinedNow) + terms(", ",
			tally{"released and accepted", c.ReleasedAccepted}, tally{"released as duplicate", c.ReleasedDuplicate}))
	}
	s.more(reasons("rejected for", in.Rejects))
}

// featuresShown is how many features are on the screen: those that are disabled,
// then those that are furthest behind.
const featuresShown = 8

func (s *statusScreen) features(list []gateway.FeatureStatus) {
	worst := slices.Clone(list)
	slices.SortStableFunc(worst, func(a, b gateway.FeatureStatus) int {
		return cmp.Or(-cmp.Compare(len(a.Disabled), len(b.Disabled)), cmp.Compare(a.Watermark, b.Watermark))
	})
	for i := range worst[:min(featuresShown, len(worst))] {
		s.feature(&worst[i])
	}
	if n := len(worst) - featuresShown; n > 0 {
		s.linef("          and %s that are no further behind; --json lists them", count(n, "feature"))
	}
}

// store tells how full the store is, and how far back it reaches.
func (s *statusScreen) store() {
	st := &s.st.Store
	line := fmt.Sprintf("store     block %d, %s, %s of %s used, %s free on disk",
		s.st.Block, count(st.Readings, "reading"), bytesText(st.UsedBytes), bytesText(st.QuotaBytes), bytesText(st.FreeBytes))
	if st.OldestMS > 0 && !s.at.IsZero() {
		line += ", reaches back " + shortMS(max(0, s.at.UnixMilli()-st.OldestMS))
	}
	if left, ok := st.RoomFor(); ok {
		line += ", room for " + shortMS(left.Milliseconds()) + " more"
	}
	if st.RoomMS >= 0 && st.OldestMS > 0 {
		line += ", room for " + shortMS(st.RoomMS) + " more at this rate"
	}
	s.linef("%s", line)
}

// bytesText is a number of bytes as people read it.
func bytesText(n int64) string {
	f := float64(n)
	switch {
	case n < 0:
		return "an unknown number of bytes"
	case n >= 10<<30:
		return fmt.Sprintf("%.0f GiB", f/(1<<30))
	case n >= 1<<30:
		return fmt.Sprintf("%.1f GiB", f/(1<<30))
	case n >= 10<<20:
		return fmt.Sprintf("%.0f MiB", f/(1<<20))
	}
	return fmt.Sprintf("%.1f MiB", f/(1<<20))
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
	return "watermark " + shortMS(s.at.Sub(t).Milliseconds()) + " behind, at " + moment(watermark)
}

func (s *statusScreen) feature(f *gateway.FeatureStatus) {
	if f.Disabled != "" {
		s.linef("feature   %-16s disabled: %s", f.Name, f.Disabled)
		return
	}
	s.linef("feature   %-16s %s, %s, %s", f.Name, s.behind(f.Watermark), count(f.Keys, "key"), count(f.OpenWindows, "open window"))
	s.more(fmt.Sprintf("windowed %d, late %d, excluded %d", f.Windowed, f.Late, f.Excluded))
	// One partition alone is always the one.
	if len(f.HeldBy) > 0 && len(f.Active)+len(f.Idle)+len(f.Stalled) > 1 {
		s.more("held back by " + strings.Join(f.HeldBy, ", "))
	}
}

func (s *statusScreen) uplink(u *gateway.UplinkStatus) {
	raw := ""
	if u.RawBlocks > 1 { // one is always on its way
		raw = fmt.Sprintf(" and the readings of %d blocks", u.RawBlocks)
	}
	s.linef("uplink    %-16s %s, backlog %d%s, in flight %d, %s", u.Name, u.State, u.Backlog, raw, u.InFlight, s.ago("acknowledgement", u.LastAck))
	if !s.told("uplink "+u.Name, u.Reason) {
		s.more(u.Reason)
	}
	if u.SetAside > 0 {
		s.more(fmt.Sprintf("%s set aside: the broker can never take them", count(u.SetAside, "record")))
	}
}

// tally is a count with its name.
type tally struct {
	name string
	n    uint64
}

// terms lists those that are not 0, each after sep.
func terms(sep string, list ...tally) string {
	var b strings.Builder
	for _, t := range list {
		if t.n > 0 {
			fmt.Fprintf(&b, "%s%s %d", sep, t.name, t.n)
		}
	}
	return b.String()
}

// reasons lists counts by reason, the most frequent first; nothing if there are
// none.
func reasons(what string, counts map[string]uint64) string {
	names := slices.SortedFunc(maps.Keys(counts), func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b))
	})
	if len(names) == 0 {
		return ""
	}
	for i, name := range names {
		names[i] = name + " " + strconv.FormatUint(counts[name], 10)
	}
	return what + " " + strings.Join(names, ", ")
}

// milliseconds is an error bound as people read it.
func milliseconds(ns int64) string {
	switch {
	case ns < 0:
		return "an unknown error"
	case ns >= 1e9:
		return strconv.FormatFloat(float64(ns)/1e9, 'f', 1, 64) + " s"
	}
	return strconv.FormatFloat(float64(ns)/1e6, 'f', 1, 64) + " ms"
}

// moment is an RFC 3339 time to the second.
func moment(text string) string {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return text
	}
	return t.UTC().Format(time.RFC3339)
}

// ago says how long before the status it was that something happened, at an RFC
// 3339 time that is empty before the first time.
func (s *statusScreen) ago(what, text string) string {
	if text == "" {
		return "no " + what + " yet"
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || s.at.IsZero() {
		return "last " + what + " at " + text
	}
	switch d := max(0, s.at.Sub(t)); {
	case d < 10*time.Second:
		return fmt.Sprintf("last %s %.1f s ago", what, d.Seconds())
	case d < 2*time.Minute:
		return fmt.Sprintf("last %s %.0f s ago", what, d.Seconds())
	case d < 2*time.Hour:
		return fmt.Sprintf("last %s %.0f min ago", what, d.Minutes())
	}
	return "last " + what + " at " + moment(text)
}
