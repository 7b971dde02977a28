package opcua

import "github.com/gopcua/opcua/ua"

// State is how the connection stands.
type State uint8

const (
	// Connecting: no attempt has ended yet.
	Connecting State = iota
	// Connected: every subscription speaks.
	Connected
	// Waiting: the server cannot be reached; attempts go on, further and further
	// apart.
	Waiting
	// Refused: the server answers and will not have us, or we will not have it;
	// attempts go on.
	Refused
	// Stopped: Run has ended.
	Stopped
)

// String returns connecting, connected, waiting, refused or stopped.
func (s State) String() string {
	return [...]string{"connecting", "connected", "waiting", "refused", "stopped"}[min(s, Stopped)]
}

// Status is how a reader stands. Counts are since its start.
type Status struct {
	Input  string
	Server string // the endpoint
	State  State
	// Problem is what is wrong and the remedy, empty when all is well. A reader
	// that is connected can have one too.
	Problem string
	Resumed bool // the last connection took up what the server held for us

	Messages      uint64 // notifications
	Redelivered   uint64 // of these, those asked for again
	Readings      uint64 // made of them
	Gaps          uint64 // stretches that the server no longer had
	Overflows     uint64 // values that the server's queues dropped before
	Rebuilt       uint64 // subscriptions made anew
	LastNS        int64  // wall time of the last sign of life; reading.NoTime: none
	CatchingUp    bool
	Outstanding   int // messages that wait for our acknowledgement
	Subscriptions int
	Monitored     int      // nodes that the server watches
	Unread        []Unread // nodes that it does not, and why
}

// Unread is a node that is configured and not read, or not as configured.
type Unread struct{ Place, Reason string }

// statusName returns the name that the specification gives a status code.
func statusName(s ua.StatusCode) string {
	if d, ok := ua.StatusCodes[s]; ok {
		return d.Name
	}
	return s.Error()
}
