package reading

// Instant is one moment as the gateway knows it: a reading arrives at one.
type Instant struct {
	WallNS    int64         // wall clock, Unix ns, as the host has it
	GatewayMS int64         // the duration line that deadlines run on
	BootNS    int64         // CLOCK_BOOTTIME, which no step of the wall clock moves
	BoundNS   int64         // largest error of WallNS against true time; -1 if none is known
	State     ClockState    // that of Segment
	Segment   *ClockSegment // never changed once shared; nil only where no clock was asked
}

// ServerExchange is one two-way measurement of a server's clock (SEMANTICS S1).
// The moments of asking and of the answer are Instant.BootNS.
type ServerExchange struct {
	SentBootNS, ReceivedBootNS int64
	ServerNS                   int64 // its clock, Unix ns
	ResolutionNS               int64 // by which ServerNS may lag: rounding, caching
}
