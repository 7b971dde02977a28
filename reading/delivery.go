package reading

import "context"

// Parcel is what a source handed over in one piece and waits to have
// acknowledged: an MQTT publish, an OPC UA notification.
type Parcel struct {
	Input    string
	Readings []Reading
	Marks    []Mark
	Rejects  []Reject
	Gaps     []Gap
	// Memory, if not nil, is what the source must know after a restart, in its own
	// form. It is written in the same commit as the parcel.
	Memory []byte
	// Source is told when the parcel is on disk; nil if it does not wait.
	Source Source
	// Token grows by one with each parcel of its Source.
	Token uint64
}

// Source is the part of a reader that waits for its parcels to be on disk.
type Source interface {
	// Committed says that every parcel up to and including token is on disk (law
	// 1). It must not block.
	Committed(token uint64)
}

// Sink takes what readers bring. Deliver blocks while the gateway is full and
// returns ctx's error if that ends first; then nothing was taken.
type Sink interface {
	Deliver(ctx context.Context, p Parcel) error
}

// RejectKind tells apart what was received and is no reading.
type RejectKind uint8

const (
	// Malformed is what cannot be read: not JSON, a field missing, a value that
	// is no number.
	Malformed RejectKind = iota + 1
	// Unmatched is what the configuration has no place for: a topic with too few
	// levels, an unknown sensor.
	Unmatched
)

// String returns malformed or unmatched.
func (k RejectKind) String() string {
	return [...]string{"", "malformed", "unmatched"}[min(k, Unmatched)]
}

// Reject is received data that became no reading. It counts as one received
// reading in the sums of law 5.
type Reject struct {
	Kind     RejectKind
	Reason   string // a short code, such as not_json, field_missing, not_a_number
	Detail   string // a sentence that names the place and the remedy
	Place    string // the topic or node
	ID       string // the identity, where it could be read
	Excerpt  []byte // the first bytes of what came
	IngestNS int64
}

// Gap is a stretch that a source skipped, as far as is known: nothing, or not
// everything, of it will come.
type Gap struct {
	Reason string // a short code, such as subscription_lost, message_lost, overflow
	Detail string // a sentence that names the cause and the remedy
	Place  string // the node or subscription, empty for the whole input
	// The stretch in the source's time, Unix nanoseconds; NoTime where it is not
	// known.
	FromNS, ToNS int64
	Series       int   // how many series it concerns, 0 if that is not known
	AtNS         int64 // when it was noticed, the gateway's wall clock
}
