package mqtt

// State is how the connection stands.
type State uint8

const (
	// Connecting: no attempt has ended yet.
	Connecting State = iota
	// Connected: messages come.
	Connected
	// Waiting: the broker cannot be reached; attempts go on, further and further
	// apart.
	Waiting
	// Refused: the broker answers and will not have us; attempts go on.
	Refused
	// Contended: another client uses our client id; attempts are minutes apart.
	Contended
	// Stopped: Run has ended.
	Stopped
)

// String returns connecting, connected, waiting, refused, contended or stopped.
func (s State) String() string {
	return [...]string{"connecting", "connected", "waiting", "refused", "contended", "stopped"}[min(s, Stopped)]
}

// Status is how a reader stands. Counts are since its start.
type Status struct {
	Input    string
	Broker   string // host and port
	ClientID string
	State    State
	// Problem is what is wrong and the remedy, empty when all is well. A reader
	// that is connected can have one too.
	Problem string
	Resumed bool // the broker had kept our session

	Reconnects  uint64 // connections after the first
	Messages    uint64 // received
	Redelivered uint64 // of these, those recognised as waiting for their commit already
	Readings    uint64 // made of them
	Rejects     uint64
	LastNS      int64 // wall time of the last message; reading.NoTime: none

	CatchingUp  bool
	Queued      int // readings and rejects that wait for the gateway
	Outstanding int // messages that wait for our acknowledgement
	// CertificateEndNS is when the broker's certificate ends, Unix; reading.NoTime
	// where it shows none.
	CertificateEndNS int64
	// Limit is how many the broker sends before it waits, as learnt; 0 is not
	// known, and not less than ReceiveMaximum.
	Limit int
}
