package trace

import (
	"errors"
	"fmt"
	"strconv"

	"tidemark/reading"
)

// clockOp is the operation clock: the gateway's clock from here on, or what is
// known of a source's clock, under the number that stamps name.
type clockOp struct {
	segment, state, method, traceable, servers  token
	epoch, boot, errorNS, rhoPPB                token
	startBootNS, startGatewayMS, wallMinusBoot  token
	source, verdict, offsetMin, offsetMax, zone token
}

func (c *clockOp) set(key []byte, v token) error {
	switch string(key) {
	case "segment":
		c.segment = v
	case "state":
		c.state = v
	case "method":
		c.method = v
	case "traceable":
		c.traceable = v
	case "servers":
		c.servers = v
	case "epoch":
		c.epoch = v
	case "boot":
		c.boot = v
	case "error_ns":
		c.errorNS = v
	case "rho_ppb":
		c.rhoPPB = v
	case "start_boot_ns":
		c.startBootNS = v
	case "start_gateway_ms":
		c.startGatewayMS = v
	case "wall_minus_boot_ns":
		c.wallMinusBoot = v
	case "source":
		c.source = v
	case "verdict":
		c.verdict = v
	case "offset_min_ns":
		c.offsetMin = v
	case "offset_max_ns":
		c.offsetMax = v
	case "zone_minutes":
		c.zone = v
	}
	return nil
}

// clock takes in an operation clock; it steps nothing.
func (r *Reader) clockOp(line token) error {
	var c clockOp
	if err := line.members(c.set); err != nil {
		return err
	}
	if c.source != nil {
		s, err := c.sourceClock()
		if err == nil {
			r.sources.put(s.ID, s)
		}
		return err
	}
	s, err := c.gatewayClock()
	if err == nil {
		r.clocks.put(s.ID, s)
		r.clock = s
	}
	return err
}

func (c *clockOp) gatewayClock() (*reading.ClockSegment, error) {
	if c.state == nil {
		return nil, missing("state")
	}
	s := &reading.ClockSegment{E0NS: -1}
	traceable := false
	err := errors.Join(
		enum("state", c.state, reading.ClockUnreliable, reading.ClockState.String, &s.State),
		enum("method", c.method, reading.MethodLocal, reading.ClockMethod.String, &s.Method),
		truth("traceable", c.traceable, &traceable), unsigned("segment", c.segment, &s.ID), unsigned("servers", c.servers, &s.Servers),
		unsigned("epoch", c.epoch, &s.Epoch), signed("error_ns", c.errorNS, &s.E0NS), signed("rho_ppb", c.rhoPPB, &s.RhoPPB),
		signed("start_boot_ns", c.startBootNS, &s.StartBootNS), signed("start_gateway_ms", c.startGatewayMS, &s.StartGatewayMS),
		signed("wall_minus_boot_ns", c.wallMinusBoot, &s.WallMinusBootNS),
	)
	s.Traceable = traceable
	if err != nil {
		return nil, err
	}
	if c.boot != nil {
		text, err := c.boot.text("boot")
		if err != nil {
			return nil, err
		}
		if s.Boot, err = strconv.ParseUint(string(text), 16, 64); err != nil {
			return nil, fmt.Errorf("boot %s is no number of up to 16 hexadecimal digits", quote(text))
		}
	}
	return s, nil
}

func (c *clockOp) sourceClock() (*reading.SourceSegment, error) {
	s := new(reading.SourceSegment)
	return s, errors.Join(
		unsigned("source", c.source, &s.ID), enum("verdict", c.verdict, reading.SourceStep, reading.SourceVerdict.String, &s.Verdict),
		signed("offset_min_ns", c.offsetMin, &s.LoNS), signed("offset_max_ns", c.offsetMax, &s.HiNS), signed("zone_minutes", c.zone, &s.ZoneMin),
	)
}
