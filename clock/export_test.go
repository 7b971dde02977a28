package clock

import (
	"context"
	"errors"
)

// Device lets tests put a fake world under a Clock.
type Device struct {
	Clocks func() (wallNS, monoNS int64)
	Pair   func() (wallNS, bootNS int64)
	BootID uint64
	Query  func(ctx context.Context, server string) (Reply, error)
	Chrony func() (Chrony, error)
	Kernel func() (Kernel, error)
}

type (
	Reply  = reply
	Chrony = chronyReading
	Kernel = kernelReading
)

// MakeReply makes a server's answer.
func MakeReply(thetaNS, rttNS, rootDelayNS, rootDispNS int64, stratum uint8, bootNS, wallMinusBootNS int64) Reply {
	return reply{thetaNS: thetaNS, rttNS: rttNS, rootDelayNS: rootDelayNS, rootDispNS: rootDispNS, precisionNS: 1000,
		stratum: stratum, refID: 0x0A000301, bootNS: bootNS, wallMinusBNS: wallMinusBootNS}
}

// KissError is a kiss-o'-death.
func KissError(code string) error { return &queryError{fault: faultKiss, kiss: code} }

// TimeoutError is no answer.
func TimeoutError() error { return &queryError{fault: faultTimeout, err: context.DeadlineExceeded} }

// DNSError is a name that resolves to nothing.
func DNSError() error { return &queryError{fault: faultDNS, err: errors.New("no such host")} }

// NewOn makes a Clock on a fake device.
func NewOn(cfg Config, o Options, d Device) *Clock {
	return newClock(cfg, o, device{
		clocks: d.Clocks, pair: d.Pair, bootID: func() uint64 { return d.BootID }, query: d.Query,
		chrony:     func(context.Context) (chronyReading, error) { return d.Chrony() },
		kernel:     d.Kernel,
		watchSteps: func(context.Context, func()) {},
	})
}

// QueryNTP is the real query.
var QueryNTP = queryNTP

// FaultOf names the fault of a query's error.
func FaultOf(err error) (fault, kiss string) {
	q := asQueryError(err)
	return string(q.fault), q.kiss
}

// Measured returns offset and half width of an answer at its arrival.
func (r reply) Measured() (thetaNS, lambdaNS int64) { return r.thetaNS, r.lambda(r.bootNS, 0) }
