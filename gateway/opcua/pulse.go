package opcua

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/gopcua/opcua/id"
	"github.com/gopcua/opcua/ua"

	"tidemark/reading"
)

const (
	pulseFirst  = 10 // measurements on a new connection
	pulseGap    = 50 * time.Millisecond
	pulseEvery  = time.Minute
	pulsePerSes = 3 // reads within a session's time-out, so that it does not end
)

// pulse measures the server's clock, and keeps the session alive where nothing
// else does. A server that does not answer is told to trouble.
func (r *Reader) pulse(ctx context.Context, s *session, trouble chan<- error) {
	every := pulseEvery
	if s.timeout > 0 {
		every = max(min(every, s.timeout/pulsePerSes), time.Second)
	}
	var fine resolution
	for n := 0; ; n++ {
		begin := r.clk.Now()
		v, err := readTime(ctx, s)
		switch {
		case err == nil:
			x := reading.ServerExchange{SentBootNS: begin.BootNS, ReceivedBootNS: r.clk.Now().BootNS, ServerNS: v}
			x.ResolutionNS = fine.note(x)
			r.clk.ObserveServer(x)
		case ctx.Err() != nil:
			return
		case endsConnection(err):
			trouble <- fmt.Errorf("the server does not answer a read of its clock: %w", err)
			return
		}
		wait := every
		if n < pulseFirst {
			wait = pulseGap
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// resolution learns by how much a server's clock, as it is read, may lag behind
// itself. Servers round it, and some refresh it only now and then.
type resolution struct {
	digits  int64 // the coarsest unit that every value so far was a multiple of
	stale   int64 // the longest that one value was seen to stand
	value   int64
	sinceNS int64 // boot time at which value had been answered first
}

// finest is the resolution that no clock read over a network is taken to exceed.
const finest = int64(100 * time.Microsecond)

func (f *resolution) note(x reading.ServerExchange) int64 {
	if f.digits == 0 {
		f.digits = int64(time.Second)
	}
	for f.digits > finest && x.ServerNS%f.digits != 0 {
		f.digits /= 10
	}
	if x.ServerNS == f.value {
		f.stale = max(f.stale, x.SentBootNS-f.sinceNS)
	} else {
		f.value, f.sinceNS = x.ServerNS, x.ReceivedBootNS
	}
	if f.stale > f.digits { // refreshed now and then; how rarely is not known yet
		return max(2*f.stale, int64(time.Second))
	}
	return f.digits
}

// readTime reads the server's clock.
func readTime(ctx context.Context, c caller) (int64, error) {
	dvs, err := readSome(ctx, c, specified(id.Server_ServerStatus_CurrentTime))
	if err != nil {
		return 0, err
	}
	if ns := timeOf(dvs[0]); ns != reading.NoTime {
		return ns, nil
	}
	return 0, errNoClock
}

var errNoClock = errors.New("the server does not tell its time")

// specified are the values of nodes of the standard's own namespace.
func specified(nodes ...uint32) []*ua.ReadValueID {
	ids := make([]*ua.ReadValueID, len(nodes))
	for i, n := range nodes {
		ids[i] = attribute(ua.NewNumericNodeID(0, n), ua.AttributeIDValue)
	}
	return ids
}

func timeOf(dv *ua.DataValue) int64 {
	if t, ok := value[time.Time](dv); ok {
		return wallNS(t)
	}
	return reading.NoTime
}

// learn asks a server for what it tells of itself: when it started, its time, and
// how much it takes in one call.
func (r *Reader) learn(ctx context.Context, c caller) {
	r.startNS, r.serverNS, r.itemsPerCall = 0, reading.NoTime, mostItemsPerCall
	ids := specified(id.Server_ServerStatus_StartTime, id.Server_ServerStatus_CurrentTime,
		id.Server_ServerCapabilities_OperationLimits_MaxMonitoredItemsPerCall)
	size := len(ids)
	dvs, err := readAll(ctx, c, &size, ids)
	if err != nil {
		return
	}
	if ns := timeOf(dvs[0]); ns != reading.NoTime {
		r.startNS = ns
	}
	r.serverNS = timeOf(dvs[1])
	if most := counted(dvs[2]); most > 0 {
		r.itemsPerCall = min(most, mostItemsPerCall)
	}
}
