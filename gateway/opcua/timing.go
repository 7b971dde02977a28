package opcua

import (
	"math"
	"time"
)

// What is asked of the server, before it revises it.
const (
	// keepAliveEvery is how long a subscription without news may say nothing. Three
	// such silences are its death.
	keepAliveEvery = 5 * time.Second
	// orphanLife is how long a subscription lives without anybody fetching: as long
	// as a restart of the gateway or a broken switch should take.
	orphanLife = 10 * time.Minute
	// bridge is the outage that each item's queue at the server outlives, where the
	// server grants it.
	bridge = 10 * time.Second
	// maxQueue bounds what one item may cost the server.
	maxQueue = 1000
	// perNotification is how many values one message may bring: about a parcel.
	perNotification = 1000
	// perSubscription bounds what is lost and made anew together.
	perSubscription = 2000
	// mostItemsPerCall is how many items one call asks the server to monitor, where it
	// takes as many.
	mostItemsPerCall = 1000
	// mostRequests is how many publish requests are ever kept at the server.
	mostRequests = 20
)

// pace is how a subscription is timed, as the server revised it.
type pace struct {
	publishing time.Duration
	keepAlive  uint32 // publishing intervals without news until the server says so
	lifetime   uint32 // publishing intervals without a request until it gives up; only asked for
}

// wish returns the counts to ask for with a publishing interval.
func wish(publishing time.Duration) pace {
	keepAlive := count(keepAliveEvery, publishing)
	return pace{publishing: publishing, keepAlive: keepAlive, lifetime: max(3*keepAlive, count(orphanLife, publishing))}
}

// count is how many intervals make up d, at least one and at most 2^31.
func count(d, interval time.Duration) uint32 {
	return uint32(min(max(1, math.Ceil(float64(d)/float64(max(interval, 1)))), 1<<31))
}

// silence is the longest that a healthy subscription says nothing, at most a
// year whatever the server made of it.
func (p pace) silence() time.Duration {
	ns := float64(max(p.keepAlive, 1)) * float64(max(p.publishing, time.Millisecond))
	return time.Duration(min(ns, float64(365*24*time.Hour)))
}

// deadAfter is how long nothing comes from a subscription that is dead. It lies
// within three keep-alive intervals with room for the watch's own pace.
func (p pace) deadAfter() time.Duration { return p.silence() * 5 / 2 }

// queueFor is the queue that an item needs at the server to lose nothing between
// two notifications, and over a bridge; sampling as revised, 0 for a server that
// samples by exception.
func queueFor(sampling, publishing time.Duration) uint32 {
	if sampling <= 0 {
		return maxQueue / 10
	}
	return min(count(publishing+bridge, sampling)+1, maxQueue)
}

// leastQueue is the queue below which values are lost even while all is well.
func leastQueue(sampling, publishing time.Duration) uint32 {
	if sampling <= 0 {
		return 1
	}
	return count(publishing, sampling)
}

// requests is how many publish requests to keep at the server: enough that every
// subscription can speak at once while the answers to the last ones travel.
func requests(subscriptions int) int {
	if subscriptions == 0 {
		return 0
	}
	return min(3+2*subscriptions, mostRequests)
}
