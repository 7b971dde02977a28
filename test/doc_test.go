// Package test holds what no room can test alone: the rules of the architecture,
// and end-to-end runs of the real binary against real peers (interop).
package test
