package gateway_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"tidemark/buffer"
	"tidemark/configs"
	"tidemark/gateway"
)

const reloadConfig = `
gateway: {id: bench}
clock: {trust: local}
store: {path: %s, quota: 64MiB}
web: {listen: ""}
inputs:
  - {name: in, mqtt: {url: "mqtt://127.0.0.1:1", subscribe: [{topic: "t/{asset}", sensors: {temp: {}}}]}}
features:
  - {name: %s}
uplinks:
  - {name: up, mqtt: {url: "mqtt://127.0.0.1:1"}}
`

func configOf(t *testing.T, store, feature string) *configs.Config {
	t.Helper()
	cfg, err := configs.Parse("bench.yaml", fmt.Appendf(nil, reloadConfig, store, feature), "host")
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// serving runs a gateway until the test ends.
func serving(t *testing.T, cfg *configs.Config) *gateway.Gateway {
	t.Helper()
	return servingFile(t, cfg, nil)
}

// servingFile runs a gateway whose configuration load reads.
func servingFile(t *testing.T, cfg *configs.Config, load func() (*configs.Config, error)) *gateway.Gateway {
	t.Helper()
	g := gateway.New(cfg, gateway.Options{Log: zerolog.Nop(), Load: load})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- g.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return g
}

// becomes waits until the status is as wanted, and returns it.
func becomes(t *testing.T, g *gateway.Gateway, what string, ok func(*gateway.Status) bool) *gateway.Status {
	t.Helper()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	end := time.After(20 * time.Second)
	for {
		st, err := g.Status(t.Context())
		if err == nil && ok(st) {
			return st
		}
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("never %s: %+v, %v", what, st, err)
		}
	}
}

func feature(name string) func(*gateway.Status) bool {
	return func(st *gateway.Status) bool { return len(st.Features) == 1 && st.Features[0].Name == name }
}

func TestReloadPutsAnotherConfigurationInForce(t *testing.T) {
	store := filepath.Join(t.TempDir(), "t.db")
	g := serving(t, configOf(t, store, "one"))
	before := becomes(t, g, "serving", feature("one"))
	other := configOf(t, store, "two")
	g.Reload(other)
	after := becomes(t, g, "serving the second", feature("two"))
	if after.Generation != before.Generation || after.GatewayMS < before.GatewayMS {
		t.Errorf("the store is another: %d at %d ms, then %d at %d ms", before.Generation, before.GatewayMS, after.Generation, after.GatewayMS)
	}
	if c := after.Configuration; c.Hash != other.Hash() || c.File != "bench.yaml" || c.Rejected != nil {
		t.Errorf("configuration %+v", c)
	}
}

// Asked over the socket, the gateway answers for the file.
func TestReloadOfTheFile(t *testing.T) {
	store := filepath.Join(t.TempDir(), "t.db")
	next, fault := (*configs.Config)(nil), errors.New("bench.yaml:3:1: no such key")
	g := servingFile(t, configOf(t, store, "one"), func() (*configs.Config, error) { return next, fault })
	becomes(t, g, "serving", feature("one"))
	var refused *gateway.Refusal
	if _, err := gateway.AskReload(t.Context(), configs.Path(store).Socket()); !errors.As(err, &refused) || refused.Reason != fault.Error() {
		t.Fatalf("a file at fault: %v", err)
	}
	st, err := g.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	r := st.Configuration.Rejected
	if r == nil || r.Reason != fault.Error() || r.At == "" || st.Verdict != "degraded" || !shows(st, "configuration", "no such key") {
		t.Errorf("rejected %+v, %s because %+v", r, st.Verdict, st.Because)
	}
	next, fault = configOf(t, store, "two"), nil
	began, err := gateway.AskReload(t.Context(), configs.Path(store).Socket())
	if err != nil {
		t.Fatal(err)
	}
	st = becomes(t, g, "serving the second", func(st *gateway.Status) bool {
		return st.Configuration.Loads > began.Loads && feature("two")(st)
	})
	if st.Configuration.Rejected != nil || shows(st, "configuration", "") {
		t.Errorf("%+v, still %+v", st.Configuration, st.Because)
	}
}

// A configuration of which no session can be made is taken back.
func TestReloadThatCannotServeIsTakenBack(t *testing.T) {
	dir := t.TempDir()
	held := filepath.Join(dir, "held.db")
	other, _, err := buffer.Open(held, buffer.Options{Quota: 64 << 20})
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	g := serving(t, configOf(t, filepath.Join(dir, "t.db"), "one"))
	first := becomes(t, g, "serving", feature("one"))
	g.Reload(configOf(t, held, "two"))
	st := becomes(t, g, "back", func(st *gateway.Status) bool { return st.Configuration.Rejected != nil })
	if !feature("one")(st) || st.Configuration.Hash != first.Configuration.Hash || !strings.Contains(st.Configuration.Rejected.Reason, "held.db") {
		t.Errorf("status %+v, features %+v", st.Configuration, st.Features)
	}
}

func shows(st *gateway.Status, name, detail string) bool {
	for _, f := range st.Because {
		if f.Name == name && strings.Contains(f.Detail, detail) {
			return true
		}
	}
	return false
}

// The store keeps the file that was last served, for when it cannot be read.
func TestLastGoodConfiguration(t *testing.T) {
	dir := t.TempDir()
	file, store := filepath.Join(dir, "t.yaml"), filepath.Join(dir, "t.db")
	good := fmt.Sprintf(reloadConfig, store, "one")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(good)
	cfg, err := configs.Load(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Run("serve", func(t *testing.T) {
		becomes(t, serving(t, cfg), "committed", func(st *gateway.Status) bool { return st.Block > 0 })
	})
	write(good + "oops: 1\n")
	if got, err := gateway.LastGood(file); err != nil || got.Hash() != cfg.Hash() {
		t.Errorf("%v, %v", got, err)
	}
	elsewhere := filepath.Join(dir, "other.yaml")
	if err := os.Rename(file, elsewhere); err != nil {
		t.Fatal(err)
	}
	if _, err := gateway.LastGood(elsewhere); err == nil || !strings.Contains(err.Error(), "is of another file") {
		t.Errorf("another file's: %v", err)
	}
	write(strings.Replace(good, store, filepath.Join(dir, "none.db"), 1))
	if _, err := gateway.LastGood(file); err == nil {
		t.Error("found one without a store")
	}
}
