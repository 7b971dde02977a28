// Package broker is how an MQTT 5 broker is reached, and what its reason codes
// mean.
//
// A Peer dials one broker over TCP, TLS or WebSocket and judges its certificate by
// the gateway's clock. What goes wrong with a connection is an error that is a
// whole sentence with the broker's address in it, fit to be shown as it is. The
// inputs and the uplinks share it, so that one fault has one name and one remedy.
package broker
