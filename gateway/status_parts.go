package gateway

import (
	"tidemark/history"
	"tidemark/uplink"
	"tidemark/windowing"
)

// ReaderStatus is the connection of an input.
type ReaderStatus struct {
	State    string `json:"state"`   // connecting, connected, waiting, refused, contended, stopped
	Problem  string `json:"problem"` // what is wrong and the remedy; empty when all is well
	Broker   string `json:"broker"`
	ClientID string `json:"client_id"`
	LastData string `json:"last_data"` // wall time of the last message; empty before the first
	// CertificateEnds is when the source's certificate, or the one that is shown to it,
	// ends, whichever is first; empty without any.
	CertificateEnds string `json:"certificate_ends,omitempty"`
	Reconnects      uint64 `json:"reconnects"` // connections after the first, since the start
	Messages        uint64 `json:"messages"`   // since the start
	Redelivered     uint64 `json:"redelivered"`
	CatchingUp      bool   `json:"catching_up"`
	Outstanding     int    `json:"outstanding"` // messages that wait for our acknowledgement
	Window          int    `json:"window"`      // how many the broker sends before it waits; 0: not known
	Queued          int    `json:"queued"`      // readings that wait for the pipeline

	// Of an OPC UA server.
	Server        string       `json:"server,omitempty"`        // its endpoint
	Subscriptions int          `json:"subscriptions,omitempty"` // that it serves now
	Monitored     int          `json:"monitored,omitempty"`     // nodes that it watches
	Rebuilt       uint64       `json:"rebuilt,omitempty"`       // subscriptions made anew, since the start
	Unread        []UnreadNode `json:"unread,omitempty"`        // nodes that are not read as configured
}

// UnreadNode is a node that is not read, or not as configured.
type UnreadNode struct {
	Place  string `json:"place"`
	Reason string `json:"reason"` // with the remedy
}

// UplinkStatus is one uplink.
type UplinkStatus struct {
	Name       string `json:"name"`
	State      string `json:"state"`
	Reason     string `json:"reason"`      // why it is not online
	LastAck    string `json:"last_ack"`    // wall time of the last PUBACK; empty before the first
	InFlight   int    `json:"in_flight"`   // sent and not answered
	Backlog    int64  `json:"backlog"`     // records not delivered
	Oldest     string `json:"oldest"`      // wall time of the oldest of them; empty without any, or where it is not known
	RawBlocks  int64  `json:"raw_blocks"`  // journal blocks whose readings are not delivered, if the uplink takes readings
	Sent       uint64 `json:"sent"`        // since the start, every sending counted
	Resent     uint64 `json:"resent"`      // of these, sent before
	SetAside   uint64 `json:"set_aside"`   // records that the broker can never take
	Failures   uint64 `json:"failures"`    // connections that failed or were lost
	ReceiveMax int    `json:"receive_max"` // records in flight that the broker allows
	// CertificateEnds is when the broker's certificate, or the one that is shown to it,
	// ends, whichever is first; empty without any.
	CertificateEnds string `json:"certificate_ends,omitempty"`
}

func newUplinkStatus(s uplink.Status) UplinkStatus {
	u := UplinkStatus{
		Name: s.Name, State: s.State.String(), Reason: s.Reason, InFlight: s.InFlight, Backlog: s.Backlog,
		Sent: s.Sent, Resent: s.Resent, SetAside: s.SetAside, Failures: s.Failures, ReceiveMax: s.ReceiveMax,
		CertificateEnds: history.Time(s.CertificateEndNS),
	}
	if s.LastAckNS != 0 {
		u.LastAck = history.Time(s.LastAckNS)
	}
	return u
}

// FeatureStatus is one feature of the engine.
type FeatureStatus struct {
	Name        string   `json:"name"`
	Version     int      `json:"version"`
	Disabled    string   `json:"disabled"`  // the fault, empty if it runs
	Watermark   string   `json:"watermark"` // the lowest of its keys'; empty before the first
	HeldBy      []string `json:"held_by"`   // partitions that hold the watermark back
	Active      []string `json:"active"`
	Idle        []string `json:"idle"`
	Stalled     []string `json:"stalled"`
	Keys        int      `json:"keys"`
	OpenWindows int      `json:"open_windows"`
	// (reading, window) pairs; together they are what was assigned (law 5).
	Windowed uint64 `json:"windowed"`
	Late     uint64 `json:"late"`
	Excluded uint64 `json:"excluded"`
}

func newFeatureStatus(s *windowing.FeatureStatus) FeatureStatus {
	return FeatureStatus{
		Name: s.Feature.Name, Version: s.Feature.Version, Disabled: s.Disabled, Watermark: history.TimeMS(s.WatermarkMS), HeldBy: s.HeldBy,
		Active: s.Inputs.Active, Idle: s.Inputs.Idle, Stalled: s.Inputs.Stalled,
		Keys: s.Keys, OpenWindows: s.OpenWindows, Windowed: s.Windowed, Late: s.Late, Excluded: s.Excluded,
	}
}
