package reading

import "math"

// NoTime is the absence of a time, in whichever unit the field has.
const NoTime int64 = math.MinInt64

// Series names what a reading is of and how it reached the gateway. Empty
// fields mean that the source has no such level.
type Series struct {
	Input     string // configured name of the input
	Asset     string // the machine
	Device    string // the device that sends; a scope for watermarks, no part of a feature's key
	Lifecycle string // the physical specimen of the asset or part, for example a serial number
	Sensor    string
}

// Sender is whose clock stamps the series: the device, or where there is no such
// level the asset, the closest that there is.
func (s Series) Sender() string {
	if s.Device != "" {
		return s.Device
	}
	return s.Asset
}

// Delivery flags say how a reading came, which decides what it may prove.
type Delivery uint8

const (
	// Initial is the first notification of a monitored item or a retained
	// message: the state of things on arrival, not a new measurement
	// (SEMANTICS H3). It is never windowed and sets the carry-in only.
	Initial Delivery = 1 << iota
	// Historical readings come from a source's history or its own backlog mark.
	// They move no watermark and are never too old.
	Historical
	// Redelivered readings were sent before and not acknowledged.
	Redelivered
	// Rejudged readings were pending or quarantined once and come out of the
	// journal for a second verdict.
	Rejudged
	// Released readings, which are Rejudged and Historical too, come out of
	// quarantine because somebody said so.
	Released
)

// Has reports whether any of the flags f is set.
func (d Delivery) Has(f Delivery) bool { return d&f != 0 }

var deliveryNames = [...]string{"initial", "historical", "redelivered", "rejudged", "released"}

// Names returns the flags as records spell them, in the order of their bits.
func (d Delivery) Names() []string { return bitNames(d, deliveryNames[:]) }

// bitNames returns the names of the bits that are set; bit i is called names[i].
func bitNames[T ~uint8 | ~uint16](set T, names []string) (some []string) {
	for bit, n := range names {
		if set&(1<<bit) != 0 {
			some = append(some, n)
		}
	}
	return some
}

// Reading is one value of one sensor, with everything that is known about its
// time. A Reading is a value: rooms pass it on and never change it, except for
// the Stamp, which the clock sets once.
type Reading struct {
	Tag     Tag
	Value   Value
	Unit    string // UCUM; empty when unknown
	Quality Quality

	// Identity (SEMANTICS D1). ID is the source's event id, the array index
	// appended as "#3" where one message carries several readings; empty if the
	// source has none. Seq counts only when HasSeq.
	ID     string
	Seq    uint64
	HasSeq bool

	Delivery Delivery

	Source   SourceTime // as the device stamped it
	ServerNS int64      // the server's timestamp, or NoTime
	IngestNS int64      // the gateway's wall clock at arrival, in the epoch of Stamp.Clock

	Stamp Stamp // the zero Stamp is unjudged
}

// TimeUnit is the unit of a source timestamp sent as a number.
type TimeUnit uint8

const (
	UnitNone    TimeUnit = iota // sent as text
	UnitSeconds                 // since 1970
	UnitMillis
	UnitMicros
	UnitNanos
)

// Nanos returns the unit's length in nanoseconds, 0 for UnitNone.
func (u TimeUnit) Nanos() int64 {
	switch u {
	case UnitSeconds:
		return 1e9
	case UnitMillis:
		return 1e6
	case UnitMicros:
		return 1e3
	case UnitNanos:
		return 1
	}
	return 0
}

// String returns the unit as configurations and records spell it: s, ms, us, ns,
// or the empty string.
func (u TimeUnit) String() string {
	return [...]string{"", "s", "ms", "us", "ns"}[min(u, UnitNanos)]
}

// TimeFault says why a source timestamp is no usable time. The zero value is
// none.
type TimeFault uint8

const (
	TimeOK          TimeFault = iota
	TimeNull                  // absent, JSON null, or OPC UA's 1601-01-01
	TimeUnparseable           // text that is no time in the declared form
	TimeRange                 // a time that int64 nanoseconds cannot hold
)

// String returns the fault as records spell it: null, unparseable, range, or the empty
// string.
func (f TimeFault) String() string {
	return [...]string{"", "null", "unparseable", "range"}[min(f, TimeRange)]
}

// SourceTime is a source timestamp as sent and as read.
type SourceTime struct {
	NS    int64     // as read; NoTime if Fault is set
	Fault TimeFault // why there is no NS
	Zoned bool      // the text named its zone; a number always counts as zoned
	Unit  TimeUnit  // of a number, as declared
	// Raw is what was sent, kept only where NS and Unit do not give it back
	// exactly: text, a fraction, or anything with a Fault.
	Raw string
}

// Given reports whether the source sent a time that could be read.
func (t SourceTime) Given() bool { return t.Fault == TimeOK && t.NS != NoTime }

// FloorMS floors nanoseconds to whole milliseconds, towards the past for times
// before 1970 too. NoTime stays NoTime.
func FloorMS(ns int64) int64 {
	if ns == NoTime {
		return NoTime
	}
	ms := ns / 1e6
	if ns%1e6 < 0 {
		ms--
	}
	return ms
}
