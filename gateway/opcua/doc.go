// Package opcua reads an input from an OPC UA server.
//
// A Reader keeps a secure channel, a session and as many subscriptions as its
// nodes need. What the server notifies is acknowledged when its readings are on
// disk, and not before, so that whatever the server still holds after a broken
// connection, a crash or a restart of the gateway is fetched again. New checks
// the configuration; Run connects, reconnects and reads until its context ends.
// A server that is away is no error: Status says what the reader waits for.
//
// DESIGN.md has the way of a notification, the states of a subscription, what
// happens when, and which parts of the client library are used and why no more.
package opcua
