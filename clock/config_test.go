package clock_test

import (
	"strings"
	"testing"
	"time"

	"tidemark/clock"
)

func TestConfigValidate(t *testing.T) {
	for name, tc := range map[string]struct {
		cfg  clock.Config
		want string // part of the error; empty for none
	}{
		"nothing at all":            {clock.Config{}, ""},
		"names, addresses, ports":   {clock.Config{Servers: []string{"ntp.plant", "10.0.3.1", "10.0.3.2:1123", "fe80::1", "[::1]:123"}}, ""},
		"no host":                   {clock.Config{Servers: []string{":123"}}, "no host"},
		"a URL":                     {clock.Config{Servers: []string{"ntp://10.0.3.1"}}, "no host"},
		"twice":                     {clock.Config{Servers: []string{"10.0.3.1", "10.0.3.1"}}, "twice"},
		"too fast for a server":     {clock.Config{Servers: []string{"127.0.0.1", "10.0.3.1"}, PollMin: time.Second}, "RFC 4330"},
		"a name is no loopback":     {clock.Config{Servers: []string{"localhost"}, PollMin: time.Second}, "RFC 4330"},
		"fast on loopback":          {clock.Config{Servers: []string{"127.0.0.1:1123", "[::1]:1123"}, PollMin: 250 * time.Millisecond}, ""},
		"too fast even on loopback": {clock.Config{Servers: []string{"127.0.0.1"}, PollMin: 100 * time.Millisecond}, "poll_min"},
		"max below min":             {clock.Config{Servers: []string{"10.0.3.1"}, PollMin: time.Minute, PollMax: 30 * time.Second}, "poll_max"},
		"a long minimum":            {clock.Config{PollMin: 2 * time.Hour}, ""},
		"a bound beyond belief":     {clock.Config{Trust: clock.TrustLocal, LocalBound: 2 * time.Minute}, "local_bound"},
	} {
		err := tc.cfg.Validate()
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: error %v, want %q", name, err, tc.want)
		}
	}
}
