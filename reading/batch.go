package reading

// Batch is what is written to the journal in one block and stepped through the
// engine in one step. The engine is a function of batches alone: everything that
// it depends on is in here.
type Batch struct {
	Seq uint64 // position in the journal, from 1

	// GatewayMS is gateway time at the end of the batch, in milliseconds of the
	// gateway's duration line (in a replay: Unix milliseconds). NoTime, or a
	// value below the one reached, leaves gateway time where it is.
	GatewayMS int64
	// WallNS is the gateway's wall clock at the commit; it only travels into
	// records as materialized_at.
	WallNS int64
	// Clock is the segment at the commit, nil in replay.
	Clock *ClockSegment

	Readings []Reading
	Marks    []Mark // in order of At
	// Emit runs the periodic watermark emission after the readings
	// (SEMANTICS G2).
	Emit bool
	// Config, if not nil, replaces the engine's configuration before anything
	// else in the batch; its form is the engine's own.
	Config []byte
}

// MarkKind is what a Mark says about a partition. Codes are stored: append,
// never renumber.
type MarkKind uint8

const (
	// MarkExists brings an input's partition into being without a reading; it
	// holds its keys back until it has a watermark or is idle (C8).
	MarkExists MarkKind = iota + 1
	// MarkRemove forgets the partition; the minimum is taken anew at the next
	// emission (C8).
	MarkRemove
	// MarkWatermark sets the partition's watermark to TimeMS, upward only
	// (explicit watermarks).
	MarkWatermark
	// MarkIdle is evidence that the partition is gone, such as a last will. It
	// holds until the partition speaks (I7). TimeMS, if not NoTime, is the event
	// time at which held values end; else they end after what the partition last
	// vouched for. A mark that names less than a partition, such as a device's
	// will where every input is one, is evidence of life only (I4).
	MarkIdle
	// MarkActive is evidence of life (I4, I7), such as a keep-alive. If TimeMS is
	// not NoTime it is a candidate for the watermark, before the out-of-orderness
	// is taken off.
	MarkActive
	// MarkCatchUpBegin holds the partition's watermark and keeps it active until
	// MarkCatchUpEnd (G4).
	MarkCatchUpBegin
	MarkCatchUpEnd
)

// Mark is an event in the life of a partition, between the readings of a batch.
// Input alone names every partition of that input; Device, or Asset and Sensor,
// narrow it for features of that scope.
type Mark struct {
	Kind   MarkKind
	At     int // number of the batch's readings that come before it
	Input  string
	Device string
	Asset  string
	Sensor string
	TimeMS int64 // for MarkWatermark and MarkActive; else NoTime
}

// InputMark returns a mark about a whole input, without a time.
func InputMark(kind MarkKind, input string, at int) Mark {
	return Mark{Kind: kind, At: at, Input: input, TimeMS: NoTime}
}
