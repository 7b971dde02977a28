// Package uplink carries the outbox to MQTT 5 brokers and gives every record its
// form.
//
// An Encoder renders what the engine says (windowing.Emission) and what the
// gateway has to tell (Event, DefinitionRecord) as JSON, with topic and user
// properties; AppendReplay renders the lines of `tidemark replay`. The JSON
// Schemas of all records are in schema/.
//
// An Uplink reads a Source, publishes each record with QoS 1 and passes back the
// marks up to which everything is delivered. The source is the session: nothing of
// a connection outlives it, and after a loss everything behind the marks is sent
// again, in order. What is new goes before what waited, and readings behind both; the
// revisions of a window keep their order. A record arrives at least once, and a
// consumer that keeps the highest (generation, revision) of a key needs to know no
// more. See DESIGN.md.
package uplink
