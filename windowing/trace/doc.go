// Package trace reads and writes traces for `tidemark replay`: one operation per
// line, each a JSON object, applied in order. Blank lines and lines that begin
// with # don't count.
//
//	{"op":"reading","input":"A","sensor":"bearing-temp","source_time":"2026-01-01T12:00:10Z","value":10}
//	{"op":"batch","readings":[{…},{…}],"time":"2026-01-01T12:00:11Z"}
//	{"op":"watermark","input":"A","time":"2026-01-01T12:04:59.999Z"}
//	{"op":"idle","input":"B"}
//	{"op":"active","input":"B"}
//	{"op":"inputs","names":["A","B"]}
//	{"op":"remove","input":"B"}
//	{"op":"advance","time":"2026-01-01T12:06:00Z"}
//
// A reading has input, sensor, source_time and value; and where it likes device,
// asset, lifecycle, id, seq, ingest_time, unit and quality. Other fields are
// ignored. Times are RFC 3339 with any number of digits, of which nine count, or
// whole milliseconds since 1970. Integers are exact up to 64 bits.
//
// Without a stamp a reading is taken at its word, as under the policy trusted: the
// source time is the event time; unless the Reader has a Judge and the trace has
// told of a clock. One that int64 nanoseconds cannot hold is quarantined as
// SOURCE_TIME_RANGE (SEMANTICS W4).
//
// # What a journal knows besides
//
// A [Writer] turns journal blocks into operations that give the same emissions
// again. These operations and members are theirs; they may be written by hand too.
//
//	{"op":"clock","segment":4,"state":"synchronized","error_ns":4100000,"method":"ntp",…}
//	{"op":"clock","source":12,"verdict":"OK","offset_min_ns":-2000000,"offset_max_ns":998000000}
//	{"op":"config","features":[{"name":"f","version":1,"window":300000,…}],"floor":"2026-01-01T00:00:00Z",…}
//	{"op":"evidence","input":"A","time":"2026-01-01T12:00:09Z"}
//	{"op":"catchup","input":"A","state":"begin"}
//	{"op":"exists","input":"A","device":"d1"}
//
// clock is the gateway's clock from here on (a clock segment; all members but state
// may be missing), or what is known of one source's clock; neither is a step of the
// engine. config is the engine's configuration; its durations are milliseconds.
// evidence proves a partition alive and is, with a time, a candidate for its
// watermark (I4); catchup begins or ends (G4); exists is inputs for one partition.
// idle may say until which event time values are held (held_until).
//
// A batch may have config, in force before its readings; marks, a list of
// operations about partitions, each with the number of readings that come before
// it (at); wall_time, the wall clock at the commit; clock, the number of a segment,
// else the latest; seq, its place in the journal; and emit, whether the periodic
// emission follows, else only if there is a time. Gateway time of a journal counts
// from the store's birth.
//
// A reading may have server_time, quality_status, delivery (initial, historical,
// redelivered, rejudged, released), and how its source time was sent:
// source_time_sent, source_time_unit, source_time_zoned, source_time_fault, named as
// in records. Its stamp is the verdict of the clock rules: disposition (ACCEPT),
// reason, time_basis, policy, flags, event_time (the source time), event_error_ns,
// ingest_error_ns, time_quality, watermark (the event time), clock (the batch's) and
// source_clock.
// What is missing has the value in brackets, or says nothing.
//
// A Reader holds one line at a time, of at most MaxLine bytes, and never more of
// the trace.
package trace
