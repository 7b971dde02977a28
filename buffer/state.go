package buffer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	bolt "go.etcd.io/bbolt"
)

// schema is the version of the layout of the file. A file with a higher one is
// left alone.
const schema = 1

var (
	bucketJournal    = []byte("journal")
	bucketOutbox     = []byte("outbox")
	bucketEvidence   = []byte("evidence")
	bucketCheckpoint = []byte("checkpoint")
	bucketState      = []byte("state")

	// buckets names all of them with the tag of their values.
	buckets = map[string]tag{
		"journal": tagJournal, "outbox": tagOutbox, "evidence": tagEvidence,
		"checkpoint": tagCheckpoint, "state": tagState,
	}
)

// Keys in the state bucket: stateKey for the state, metaPrefix and a name for
// each named value.
var (
	stateKey   = []byte("s")
	metaPrefix = []byte("m")
)

// Range is a run of sequence numbers that is held, [First, Next), with what it
// takes in the file.
type Range struct {
	First uint64 `json:"first"`
	Next  uint64 `json:"next"`
	Bytes int64  `json:"bytes"`
}

// Len is how many there are.
func (r Range) Len() uint64 { return r.Next - r.First }

// Gap is a run of blocks that are not there, [First, Next): what salvage could
// not bring back.
type Gap struct {
	First uint64 `json:"first"`
	Next  uint64 `json:"next"`
}

// state is what the store knows about its file, written with every transaction.
// What is found in the buckets must agree with it: a tree that lost a branch
// reads like an emptier one.
type state struct {
	Schema    int    `json:"schema"`
	CreatedMS int64  `json:"created_ms"`
	Commits   uint64 `json:"commits"` // transactions since creation

	Journal  Range  `json:"journal"`
	Readings int64  `json:"readings"` // in the journal's blocks
	Outbox   Range  `json:"outbox"`
	Evidence Range  `json:"evidence"`
	KeepFrom uint64 `json:"keep_from"` // of the last commit

	FirstMS int64 `json:"first_ms,omitempty"` // the first wall time known, for blocks written before it
	LastMS  int64 `json:"last_ms,omitempty"`  // the highest wall time known

	Checkpoints [2]checkpointRef    `json:"checkpoints"`
	Cursors     map[string]uint64   `json:"cursors"`         // uplink → last delivered record
	Ahead       map[string][]Ahead  `json:"ahead,omitempty"` // uplink → delivered behind that
	Raw         map[string]Position `json:"raw,omitempty"`   // uplink → the first reading that is not delivered
	Losses      []Loss              `json:"losses,omitempty"`
	LossID      uint64              `json:"loss_id,omitempty"`
	Gaps        []Gap               `json:"gaps,omitempty"`
}

func newState(nowMS int64) *state {
	one := Range{First: 1, Next: 1}
	return &state{Schema: schema, CreatedMS: nowMS, Journal: one, Outbox: one, Evidence: one, Cursors: map[string]uint64{}}
}

func (s *state) clone() *state {
	c := *s
	c.Cursors, c.Ahead, c.Raw = maps.Clone(s.Cursors), maps.Clone(s.Ahead), maps.Clone(s.Raw)
	c.Losses = slices.Clone(s.Losses)
	c.Gaps = slices.Clone(s.Gaps)
	return &c
}

var errState = errors.New("the store's state is not one")

// decodeState reads what json.Marshal made of a state. It does not look at the
// rest if the schema is a newer one.
func decodeState(data []byte) (*state, error) {
	var s state
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, fmt.Errorf("%w: %w", errState, err)
	}
	if s.Schema > schema {
		return &s, nil
	}
	for _, r := range []Range{s.Journal, s.Outbox, s.Evidence} {
		if r.First < 1 || r.Next < r.First || r.Bytes < 0 {
			return nil, fmt.Errorf("%w: range [%d, %d)", errState, r.First, r.Next)
		}
	}
	if s.Schema < 1 || s.Readings < 0 {
		return nil, errState
	}
	if s.Cursors == nil {
		s.Cursors = map[string]uint64{}
	}
	return &s, nil
}

// readState reads the state that belongs to the transaction.
func readState(tx *bolt.Tx) (*state, error) {
	b := tx.Bucket(bucketState)
	if b == nil {
		return nil, errors.New("there is no bucket for the state")
	}
	data, err := getBlob(b, tagState, stateKey)
	if err == nil && data == nil {
		err = errors.New("there is no state")
	}
	if err != nil {
		return nil, err
	}
	return decodeState(data)
}

// writeState makes st the state of the transaction.
func writeState(tx *bolt.Tx, a *arena, st *state) error {
	data, err := json.Marshal(st)
	if err != nil {
		return err
	}
	b := tx.Bucket(bucketState)
	if _, err := deleteBlob(b, stateKey); err != nil {
		return err
	}
	_, err = a.put(b, tagState, stateKey, data)
	return err
}

// readMeta reads every named value.
func readMeta(tx *bolt.Tx) (map[string][]byte, error) {
	meta := map[string][]byte{}
	c := tx.Bucket(bucketState).Cursor()
	for k, v := c.Seek(metaPrefix); bytes.HasPrefix(k, metaPrefix); k, v = c.Next() {
		if len(k) < len(metaPrefix)+2 {
			return nil, fmt.Errorf("key %q of the state is none", k)
		}
		name := string(k[len(metaPrefix) : len(k)-2])
		data, err := readBlob(c, tagState, k, v)
		if err != nil {
			return nil, fmt.Errorf("value %q: %w", name, err)
		}
		meta[name] = data
	}
	return meta, nil
}

// writeMeta puts and deletes named values.
func writeMeta(tx *bolt.Tx, a *arena, changed map[string][]byte) error {
	b := tx.Bucket(bucketState)
	for _, name := range slices.Sorted(maps.Keys(changed)) {
		prefix := append(bytes.Clone(metaPrefix), name...)
		if _, err := deleteBlob(b, prefix); err != nil {
			return err
		}
		if value := changed[name]; value != nil {
			if _, err := a.put(b, tagState, prefix, value); err != nil {
				return err
			}
		}
	}
	return nil
}
