package gateway

import "encoding/json"

// metaLedger is the store's key for the ledger.
const metaLedger = "ledger"

// ledger is what the gateway itself must know after a restart, beside the
// journal. It is written with every commit, in the same transaction, so that it
// is exact after a crash.
type ledger struct {
	// Gateway is the gateway's name, so that a store at rest says whose it is.
	Gateway string `json:"gateway"`
	// Generation is the trusted wall time of the store's birth in microseconds
	// since 1970; 0 until the clock was trusted once. Every record carries it.
	Generation uint64 `json:"generation"`
	// Born is when the store was made, on the kernel's clock.
	Born *birth `json:"born,omitempty"`
	// Above is a generation that this store had before it was restored from a
	// backup, and its generation is above; 0 if it never was.
	Above uint64 `json:"above,omitempty"`
	// GatewayMS is gateway time at the last commit.
	GatewayMS int64 `json:"gateway_ms"`
	// PendingFrom is the first journal block that may hold undecided pending
	// readings; 0 if none does.
	PendingFrom uint64 `json:"pending_from,omitempty"`

	releases
	Floods floods `json:"floods,omitempty"`

	Counts *counters `json:"counts"`
}

// birth is a moment on CLOCK_BOOTTIME.
type birth struct {
	Boot   uint64 `json:"boot"`
	BootNS int64  `json:"boot_ns"`
}

// decodeLedger reads what encode wrote; nil data is a fresh store.
func decodeLedger(data []byte) (*ledger, error) {
	l := &ledger{Counts: newCounters(), Floods: floods{}}
	if data == nil {
		return l, nil
	}
	if err := json.Unmarshal(data, l); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *ledger) encode() []byte {
	data, err := json.Marshal(l)
	if err != nil {
		panic(err) // plain numbers and maps of numbers always marshal
	}
	return data
}
