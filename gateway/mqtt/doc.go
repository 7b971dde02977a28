// Package mqtt reads an input from an MQTT 5 broker.
//
// A Reader keeps one session with one broker: a stable client id, so that the
// broker keeps what arrives while the gateway is down, and an acknowledgement for
// each message only after what it held is on disk, in the order of receipt. New
// checks the configuration; Run connects, reconnects and reads until its context
// ends. A broker that is away is no error: Status says what the reader waits for.
//
// A Decoder turns one message into readings, by the subscription that its topic
// belongs to; it needs no broker. What is no reading becomes a reading.Reject
// with a reason, a sentence that says where and what to do about it, and the
// beginning of what came.
//
// DESIGN.md has the flow, the rules of acknowledging and of catching up, and what
// happens when.
package mqtt
