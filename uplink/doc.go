// Package uplink carries the outbox to MQTT 5 brokers and gives every record its
// form.
//
// An Encoder renders what the engine says (windowing.Emission) and what the
// gateway has to tell (Event, DefinitionRecord) as JSON, with topic and user
// properties; AppendReplay renders the lines of `tidemark replay`. The JSON
// Schemas of all records are in schema/.
//
// An Uplink reads a Source, publishes each record with QoS 1 and passes back the
// mark up to which everything is delivered. The source is the session: nothing of
// a connection outlives it, and after a loss everything behind the mark is sent
// again, in order. A record arrives at least once; records arrive in the order of
// the outbox except for such repeats, and a consumer that keeps the highest
// (generation, revision) of a key needs to know no more. See DESIGN.md.
package uplink
