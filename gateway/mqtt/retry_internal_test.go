package mqtt

import (
	"testing"
	"time"
)

func TestRetry(t *testing.T) {
	var r retry
	now := int64(0)
	delay := func(attempt int) time.Duration { return r.delay(attempt, now, 1) }
	connection := func(lasts time.Duration) {
		r.connected(now)
		now += int64(lasts)
		r.lost(now, false)
	}
	if d := delay(0); d != 0 {
		t.Errorf("the first attempt waits %v", d)
	}
	if d := delay(1); d != 2*retryFirst {
		t.Errorf("the second waits %v", d)
	}
	if d := delay(50); d != retryMax {
		t.Errorf("the last waits %v", d)
	}
	if d := r.delay(50, now, 0); d != retryMax/2 {
		t.Errorf("spread to %v", d)
	}
	connection(time.Hour)
	if d := delay(0); d != retryFirst {
		t.Errorf("after a good connection %v", d)
	}
	for range 3 {
		connection(time.Second)
	}
	if d := delay(0); d != retryFirst<<3 {
		t.Errorf("after three that did not last %v", d)
	}
	r.connected(now)
	if r.lost(now, true); delay(0) != retryFirst {
		t.Errorf("after one that brought something %v", delay(0))
	}
	for range 3 {
		connection(time.Second)
		r.takenOver(now)
	}
	if d := delay(0); d != takeoverRetry || !r.contended(now) {
		t.Errorf("after three takeovers %v", d)
	}
	now += int64(2 * takeoverRetry) // both stood back for as long as they may
	r.takenOver(now)                // still
	now += int64(takeoverQuiet)
	if !r.contended(now) {
		t.Error("forgot too early")
	}
	if now++; r.contended(now) { // connected or not: the broker may be away by now
		t.Error("never forgives")
	}
	if r.takenOver(now); r.contended(now) {
		t.Error("one takeover after the quiet is a fight")
	}
}

// mosquitto 2.0.11 closes the loser's connection without a word.
func TestHangupsAreNamed(t *testing.T) {
	var r retry
	now := int64(0)
	r.delay(0, now, 1)
	hangUp := func(lasts time.Duration) {
		r.connected(now)
		now += int64(lasts)
		r.lost(now, true)
		r.hungUp(now)
	}
	for range hangupLimit - 1 {
		hangUp(time.Second)
	}
	if r.suspicious(now) {
		t.Error("too early")
	}
	r.unreachable() // a broker that restarts
	hangUp(time.Second)
	if r.suspicious(now) {
		t.Error("a broker that was away is no fight")
	}
	for range hangupLimit {
		hangUp(hangupSpan - 1)
	}
	if d := r.delay(0, now, 1); !r.suspicious(now) || d != hangupRetry {
		t.Errorf("after %d hang-ups %v", hangupLimit, d)
	}
	if hangUp(hangupSpan); r.suspicious(now) {
		t.Error("a connection that lasted is no fight")
	}
	for range hangupLimit {
		hangUp(time.Second)
	}
	if now += int64(hangupQuiet); !r.suspicious(now) {
		t.Error("forgot too early")
	}
	if now++; r.suspicious(now) {
		t.Error("never forgives")
	}
	if hangUp(time.Second); r.suspicious(now) {
		t.Error("one hang-up after the quiet is a fight")
	}
}

func TestTakeoversFarApartAreNoFight(t *testing.T) {
	var r retry
	for i := range int64(10) {
		r.takenOver(i * int64(takeoverSpan))
		if r.contended(i * int64(takeoverSpan)) {
			t.Fatal("contended")
		}
	}
}
