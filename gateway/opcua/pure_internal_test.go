package opcua

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/gopcua/opcua/ua"
	"pgregory.net/rapid"

	"tidemark/reading"
)

// However answers overtake each other, every message comes out once and in order.
func TestSequenceOrdersWhatOvertakes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.SampledFrom([]uint32{1, 2, 7, 1<<32 - 3}).Draw(t, "first")
		numbers := make([]uint32, rapid.IntRange(1, 12).Draw(t, "n"))
		for i, n := 0, first; i < len(numbers); i, n = i+1, succ(n) {
			numbers[i] = n
		}
		arrival := rapid.Permutation(append(slices.Clone(numbers), rapid.SliceOf(rapid.SampledFrom(numbers)).Draw(t, "again")...)).Draw(t, "arrival")
		s := sequence{next: first}
		var out []uint32
		for _, n := range arrival {
			if f := s.put(&message{seq: n, publishNS: int64(distance(first, n)) + 1}); f == anew {
				t.Fatalf("%d was taken for a new count", n)
			}
			for m := s.pop(); m != nil; m = s.pop() {
				out = append(out, m.seq)
			}
		}
		if !slices.Equal(out, numbers) {
			t.Fatalf("came out %v, want %v", out, numbers)
		}
		if s.hole() != 0 {
			t.Fatalf("a hole of %d is left", s.hole())
		}
	})
}

func TestJumpIsAsManySteps(t *testing.T) {
	for _, from := range []uint32{1, 1000, 1<<32 - 3, 1<<32 - 1} {
		s, want := sequence{next: from}, from
		for n := range int64(6) {
			if s.next = from; n > 0 {
				want = succ(want)
			}
			if s.jump(n); s.next != want {
				t.Errorf("%d on from %d is %d, want %d", n, from, s.next, want)
			}
		}
	}
}

func TestSequence(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(s *sequence) string
		want string
	}{
		{"a message that waits shows a hole", func(s *sequence) string {
			s.put(&message{seq: 9})
			return fmt.Sprint(s.pop() == nil, s.hole())
		}, "true 4"},
		{"a keep-alive shows what never came", func(s *sequence) string {
			return fmt.Sprint(s.alive(8, 10), s.hole())
		}, "false 3"},
		{"a keep-alive with 0 says nothing", func(s *sequence) string {
			return fmt.Sprint(s.alive(0, 10), s.next)
		}, "false 5"},
		{"a keep-alive that a message overtook is no new count", func(s *sequence) string {
			s.put(&message{seq: 5, publishNS: 20})
			s.pop()
			return fmt.Sprint(s.alive(5, 10), s.next)
		}, "false 6"},
		{"a server that counts anew", func(s *sequence) string {
			return fmt.Sprint(s.put(&message{seq: 1, publishNS: 99}) == anew, s.pop().seq, s.next)
		}, "true 1 2"},
		{"an old message that comes again", func(s *sequence) string {
			s.lastNS = 100
			return fmt.Sprint(s.put(&message{seq: 1, publishNS: 99}) == repeated, s.next)
		}, "true 5"},
		{"giving up on what is missing", func(s *sequence) string {
			s.put(&message{seq: 7})
			s.skip()
			s.skip()
			return fmt.Sprint(s.pop().seq, s.hole())
		}, "7 0"},
		{"numbers go from the largest on to 1", func(s *sequence) string {
			return fmt.Sprint(succ(1<<32-1), distance(1<<32-1, 2), distance(2, 1<<32-1))
		}, "1 2 -2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := sequence{next: 5}
			if got := c.do(&s); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestPositionSurvives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := &position{startNS: rapid.Int64().Draw(t, "start"), plan: rapid.Uint64().Draw(t, "plan")}
		p.subs = rapid.SliceOf(rapid.Custom(func(t *rapid.T) subPosition {
			return subPosition{
				id: rapid.Uint32().Draw(t, "id"), seq: rapid.Uint32().Draw(t, "seq"), seenNS: rapid.Int64().Draw(t, "seen"),
				filling: rapid.Bool().Draw(t, "filling"), shallow: rapid.Bool().Draw(t, "shallow"),
				publishing: time.Duration(rapid.Int64().Draw(t, "publishing")), keepAlive: rapid.Uint32().Draw(t, "keep_alive"),
			}
		})).Draw(t, "subs")
		q, err := decodePosition(p.encode())
		if err != nil || q.startNS != p.startNS || q.plan != p.plan || !slices.Equal(q.subs, p.subs) {
			t.Fatalf("%+v became %+v, %v", p, q, err)
		}
	})
}

func FuzzPosition(f *testing.F) {
	f.Add((&position{subs: []subPosition{{id: 1, seq: 2}}}).encode())
	f.Add([]byte{})
	f.Add([]byte{positionForm})
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := decodePosition(data)
		if err != nil || p == nil {
			return
		}
		if again, err := decodePosition(p.encode()); err != nil || !slices.Equal(again.subs, p.subs) {
			t.Errorf("%+v became %+v, %v", p, again, err)
		}
	})
}

func TestTiming(t *testing.T) {
	p := wish(time.Second)
	if p.keepAlive != 5 || p.lifetime != 600 {
		t.Errorf("asks for %d and %d intervals of 1s", p.keepAlive, p.lifetime)
	}
	if p := wish(time.Minute); p.keepAlive != 1 || p.lifetime < 3*p.keepAlive {
		t.Errorf("asks for %d and %d intervals of 1m", p.keepAlive, p.lifetime)
	}
	// Noticed within three keep-alive intervals, the watch's own pace included.
	for _, every := range []time.Duration{100 * time.Millisecond, time.Second, time.Minute} {
		p := wish(every)
		if d := p.deadAfter() + watchEvery; d > 3*p.silence() && p.silence() >= time.Second {
			t.Errorf("a subscription of %v is noticed dead after %v", every, d)
		}
	}
	if d := (pace{publishing: 24 * time.Hour, keepAlive: 1<<32 - 1}).deadAfter(); d < 24*time.Hour {
		t.Errorf("a server that revises without bounds has dead subscriptions after %v", d)
	}
	for _, c := range []struct {
		sampling, publishing time.Duration
		least, most          uint32
	}{
		{50 * time.Millisecond, time.Second, 20, 300},
		{time.Second, time.Second, 1, 20},
		{0, time.Second, 10, 1000},
		{time.Millisecond, time.Second, 1000, 1000},
		{time.Nanosecond, time.Second, 1000, 1000},
	} {
		if q := queueFor(c.sampling, c.publishing); q < c.least || q > c.most || q < 2 {
			t.Errorf("a queue of %d for %v in %v", q, c.sampling, c.publishing)
		}
	}
}

func TestRetryPaces(t *testing.T) {
	sessions := fmt.Errorf("CreateSession: %w", ua.StatusBadTooManySessions)
	for _, c := range []struct {
		name        string
		err         error
		failed      int
		least, most time.Duration
	}{
		{"at once", errors.New("refused"), 1, retryFirst / 2, retryFirst},
		{"longer and longer", errors.New("refused"), 5, 2 * time.Second, 4 * time.Second},
		{"at most half a minute", errors.New("refused"), 50, retryMax / 2, retryMax},
		{"not pressing a full server", sessions, 1, retryReluctant / 2, retryReluctant},
		{"a certificate that may be approved", &mistrust{errors.New("untrusted")}, 50, retryDistrust / 2, retryDistrust},
	} {
		t.Run(c.name, func(t *testing.T) {
			var r retry
			for range c.failed {
				r.failed(0)
			}
			for _, dice := range []float64{0, 0.5, 0.999} {
				if d := r.delay(c.err, dice); d < c.least || d > c.most {
					t.Errorf("waits %v, want %v to %v", d, c.least, c.most)
				}
			}
		})
	}
	var r retry
	for range 9 {
		r.failed(0)
	}
	r.connected(0)
	r.failed(int64(lasting))
	if r.failing != 1 {
		t.Errorf("a connection that lasted leaves %d failures", r.failing)
	}
}

func TestCatchUp(t *testing.T) {
	c := catchUp{max: time.Minute}
	if !c.begin(0) || c.begin(1) {
		t.Error("it begins not once")
	}
	if c.end(false, int64(time.Minute)-1) {
		t.Error("it ends before everything has come")
	}
	if !c.end(true, 5) || c.end(true, 6) {
		t.Error("it ends not once")
	}
	c.begin(10)
	if !c.end(false, 10+int64(time.Minute)) {
		t.Error("it never ends")
	}
	if c = (catchUp{}); c.begin(0) || c.end(true, 1) {
		t.Error("with a bound of 0 the watermark waits")
	}
}

// How far a server's clock may lag behind itself, learnt from what it answers.
func TestResolution(t *testing.T) {
	const ms = int64(time.Millisecond)
	ask := func(r *resolution, every time.Duration, n int, clock func(boot int64) int64) (res int64) {
		for i := range int64(n) {
			boot := i * int64(every)
			res = r.note(reading.ServerExchange{SentBootNS: boot, ReceivedBootNS: boot + ms, ServerNS: clock(boot)})
		}
		return res
	}
	if res := ask(&resolution{}, 37*time.Millisecond, 10, func(b int64) int64 { return b - b%ms + 3*ms }); res != ms {
		t.Errorf("a clock in milliseconds: %d", res)
	}
	if res := ask(&resolution{}, 50*time.Millisecond, 10, func(b int64) int64 { return b - b%int64(time.Second) + 7*ms }); res < int64(time.Second) {
		t.Errorf("a clock refreshed each second: %d", res)
	}
}

func TestLagIsTheWorstOfTheLastMinutes(t *testing.T) {
	var l lag
	minute := int64(time.Minute)
	note := func(boot, behind int64) {
		l.note([]reading.Reading{{IngestNS: 1e18, Source: reading.SourceTime{NS: 1e18 - behind}}}, reading.Instant{BootNS: boot})
	}
	note(0, 10*int64(time.Second))
	note(1, 30*minute*1000) // wrong, not late
	if d := l.worst(reading.Instant{BootNS: 4 * minute}); d != 10*int64(time.Second) {
		t.Errorf("after 4 minutes %v", time.Duration(d))
	}
	l.worst(reading.Instant{BootNS: 6 * minute})
	if d := l.worst(reading.Instant{BootNS: 12 * minute}); d != 0 {
		t.Errorf("after 12 minutes %v", time.Duration(d))
	}
}

// Nothing weaker is ever used in place of what is configured.
func TestSelectsNoOtherSecurity(t *testing.T) {
	offer := func(policy string, mode ua.MessageSecurityMode, level uint8) *ua.EndpointDescription {
		return &ua.EndpointDescription{EndpointURL: "opc.tcp://h", SecurityPolicyURI: policy, SecurityMode: mode, SecurityLevel: level}
	}
	all := []*ua.EndpointDescription{
		offer(ua.SecurityPolicyURINone, ua.MessageSecurityModeNone, 0),
		offer(ua.SecurityPolicyURIBasic256Sha256, ua.MessageSecurityModeSign, 5),
		offer(ua.SecurityPolicyURIBasic128Rsa15, ua.MessageSecurityModeSignAndEncrypt, 9),
	}
	for security, want := range map[string]bool{
		"none": true, "Basic256Sha256/Sign": true, "Basic256Sha256/SignAndEncrypt": false, "Aes256_Sha256_RsaPss/Sign": false,
	} {
		policy, mode, err := parseSecurity(security)
		if err != nil {
			t.Fatal(err)
		}
		e, err := selectEndpoint(all, policy, mode)
		if (err == nil) != want || err == nil && (e.SecurityPolicyURI != policy || e.SecurityMode != mode) {
			t.Errorf("%s: %+v, %v", security, e, err)
		}
	}
	if _, _, err := parseSecurity("Basic128Rsa15/Sign"); err == nil {
		t.Error("a policy that is broken is taken")
	}
}

// Whoever stands in between can have a server want a readable password; where
// signatures were asked for, it gets none.
func TestNoReadablePasswordOnASignedConnection(t *testing.T) {
	r := &Reader{cfg: Config{Login: func() (string, []byte, error) { return "operator", []byte("secret"), nil }}}
	for mode, want := range map[ua.MessageSecurityMode]struct{ refused, alarm bool }{
		ua.MessageSecurityModeNone:           {alarm: true},
		ua.MessageSecurityModeSign:           {refused: true},
		ua.MessageSecurityModeSignAndEncrypt: {},
	} {
		a := &access{endpoint: &ua.EndpointDescription{SecurityMode: mode, UserIdentityTokens: []*ua.UserTokenPolicy{
			{TokenType: ua.UserTokenTypeUserName, SecurityPolicyURI: ua.SecurityPolicyURINone},
		}}}
		err := r.logIn(a)
		if errors.Is(err, errExposed) != want.refused || err != nil != want.refused || len(a.alarms) > 0 != want.alarm {
			t.Errorf("%v: %v, alarms %q", mode, err, a.alarms)
		}
	}
}

func TestLogsInByWhatProtectsBest(t *testing.T) {
	e := &ua.EndpointDescription{SecurityMode: ua.MessageSecurityModeNone, SecurityPolicyURI: ua.SecurityPolicyURINone, UserIdentityTokens: []*ua.UserTokenPolicy{
		{PolicyID: "plain", TokenType: ua.UserTokenTypeUserName},
		{PolicyID: "good", TokenType: ua.UserTokenTypeUserName, SecurityPolicyURI: ua.SecurityPolicyURIBasic256Sha256},
		{PolicyID: "old", TokenType: ua.UserTokenTypeUserName, SecurityPolicyURI: ua.SecurityPolicyURIBasic128Rsa15},
	}}
	p, err := tokenPolicy(e, ua.UserTokenTypeUserName)
	if err != nil || p.PolicyID != "good" || exposed(e, p) {
		t.Errorf("%+v, %v", p, err)
	}
	if !exposed(e, e.UserIdentityTokens[0]) {
		t.Error("a readable password is not noticed")
	}
	if _, err := tokenPolicy(e, ua.UserTokenTypeAnonymous); err == nil {
		t.Error("anonymous where nobody may be")
	}
}
