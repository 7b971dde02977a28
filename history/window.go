package history

import (
	"tidemark/reading"
	"tidemark/windowing"
)

// Explanation is the life of a sensor's windows around one moment, one for each
// feature, as `tidemark explain --json` prints it.
type Explanation struct {
	Gateway string   `json:"gateway"`
	Asset   string   `json:"asset"`
	Sensor  string   `json:"sensor"`
	Windows []Window `json:"windows"`
	Journal Reach    `json:"journal"`
}

// Reach says what an explanation rests on.
type Reach struct {
	First    uint64 `json:"first_block"` // held
	Last     uint64 `json:"last_block"`
	OldestAt string `json:"oldest_at"` // commit of the first; readings that came before are gone
	LatestAt string `json:"latest_at"`
	// From and To are the blocks that were stepped again, with so many readings.
	From     uint64 `json:"stepped_from"`
	To       uint64 `json:"stepped_to"`
	Readings int    `json:"stepped_readings"`
	// Exact: the engine that stepped them began as the gateway's own.
	Exact bool `json:"exact"`
}

// Window is one window's life.
type Window struct {
	Feature   string `json:"feature"`
	Version   int    `json:"version"`
	Lifecycle string `json:"lifecycle"`
	Start     string `json:"window_start"`
	End       string `json:"window_end"`

	State WindowState `json:"state"`
	// Partial: it began before what the journal holds, so readings may be missing
	// here.
	Partial   bool       `json:"partial"`
	Revisions []Revision `json:"revisions"`
	Closing   *Closing   `json:"closing"`  // null while it is open
	Progress  *Progress  `json:"progress"` // null once it is closed

	Counts   map[Verdict]int `json:"counts"`
	Readings []Held          `json:"readings"`      // in the order of their arrival
	Omitted  int             `json:"omitted"`       // readings beyond those that are listed; they are counted
	Clocks   []ClockSeen     `json:"clocks"`        // what vouched for the times of the readings
	Sources  []SourceSeen    `json:"source_clocks"` // what was known of the sources' clocks

	feature  *windowing.Feature
	startMS  int64
	endMS    int64
	lateness int64
}

// WindowState is how far a window has come.
type WindowState string

// The states of a window.
const (
	WindowEmpty       WindowState = "empty" // no result
	WindowOpen        WindowState = "open"  // no result yet
	WindowProvisional WindowState = "provisional"
	WindowCorrected   WindowState = "corrected"
	WindowClosed      WindowState = "closed"
)

// Revision is one result of a window.
type Revision struct {
	Revision  uint32     `json:"revision"`
	Status    string     `json:"status"`
	Cause     string     `json:"cause"`
	KnownAt   string     `json:"known_at"` // wall time of the commit; an outage of the uplink comes on top
	Watermark string     `json:"watermark"`
	HeldBy    []string   `json:"held_by"` // the active partitions, the one that the watermark waited for first
	Idle      []string   `json:"idle"`
	Stalled   []string   `json:"stalled"`
	Values    Statistics `json:"values"`
	Observed  int64      `json:"observed"`
	Bad       int64      `json:"bad"`
	Partial   bool       `json:"partial_start"`
	Block     uint64     `json:"block"`
	// Proved: the digest that was committed with the block says that this is what
	// went upstream (law 2). Otherwise it was made again without all that the
	// gateway knew then.
	Proved bool `json:"proved"`
}

// Statistics are a result's values in the order of the feature's functions. As
// JSON they are one object.
type Statistics []Statistic

// Statistic is one of them.
type Statistic struct {
	Name  string
	Value reading.Value
	Unit  string
}

// MarshalJSON implements json.Marshaler.
func (s Statistics) MarshalJSON() ([]byte, error) {
	b := []byte{'{'}
	for i := range s {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(reading.AppendJSONString(b, s[i].Name), ':')
		b = s[i].Value.AppendJSON(b)
	}
	return append(b, '}'), nil
}

// Closing is the end of a window.
type Closing struct {
	Revision  uint32 `json:"revision"` // the last one; 0 if there was none
	Reason    string `json:"reason"`   // of a closing before its time
	KnownAt   string `json:"known_at"`
	Watermark string `json:"watermark"`
	Block     uint64 `json:"block"`
	Proved    bool   `json:"proved"`
}

// Progress is what an open window waits for.
type Progress struct {
	Watermark string   `json:"watermark"`  // combined; empty before the first
	ResultAt  string   `json:"result_at"`  // the watermark that brings the first result
	ClosingAt string   `json:"closing_at"` // the watermark that closes it
	HeldBy    []string `json:"held_by"`
	Idle      []string `json:"idle"`
	Stalled   []string `json:"stalled"`
}

// Held is a reading of a window.
type Held struct {
	Reading
	Block     uint64 `json:"block"`
	Committed string `json:"committed_at"`
	Revision  uint32 `json:"revision"` // the first that counts it; 0 if none does (yet)
}

// ClockSeen is a stretch of the gateway's clock.
type ClockSeen struct {
	Segment uint64  `json:"segment"`
	State   string  `json:"state"`
	Method  string  `json:"method"`
	Servers uint8   `json:"servers"`
	Worst   float64 `json:"max_error_ms"` // of the arrivals; negative if no bound is known
}

// SourceSeen is a stretch of a source's clock: its offset from the gateway's.
type SourceSeen struct {
	Device  string  `json:"device"`
	Verdict string  `json:"verdict"`
	MinMS   float64 `json:"offset_min_ms"`
	MaxMS   float64 `json:"offset_max_ms"`
}

// Proved reports whether the journal's digests prove every revision and the
// closing.
func (w *Window) Proved() bool {
	for i := range w.Revisions {
		if !w.Revisions[i].Proved {
			return false
		}
	}
	return w.Closing == nil || w.Closing.Proved
}
