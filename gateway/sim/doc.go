// Package sim is a small world around a gateway, for the demo and for tests: time
// servers of which one lies, an MQTT broker, machines with the habits of real ones,
// and a controller with an OPC UA server. Everything listens on loopback, speaks the
// real protocols and ends with the context of Run.
//
// New binds the ports, so that a configuration can name them before anything
// runs; Run serves. What the machines say, and when, follows from the seed and
// the time at which Run began: the same seed tells the same story.
//
// The story is timed for windows of 10 s with an out-of-orderness of 2 s and an
// allowed lateness of 10 s (configs/demo.yaml): a first result within 20 s, and a
// correction, late evidence, a closing and a quarantined reading within 40 s,
// wherever in a window the story begins.
package sim
