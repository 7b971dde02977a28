// Package trace reads recorded traces for `tidemark replay`: one operation per
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
// Readings are not judged by the clock rules: the source time is the event time,
// as under the policy trusted. One that int64 nanoseconds cannot hold is
// quarantined as SOURCE_TIME_RANGE (SEMANTICS W4).
//
// A Reader holds one line at a time, of at most MaxLine bytes, and never more of
// the trace.
package trace
