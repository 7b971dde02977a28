// Package gateway wires the rooms together: readers bring parcels, the clock
// judges them, the pipeline commits each batch and steps the engine, the uplinks
// carry away what came out. It is the only package that knows all of them.
//
// New prepares a gateway from a configuration; Run opens the store, recovers and
// serves until its context ends. See DESIGN.md for the order of things at start,
// at a failed commit and at the end.
package gateway
