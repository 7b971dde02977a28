package buffer

import (
	"errors"
	"fmt"
)

// ErrFull says that a commit found no room. Nothing of it was written, the store
// is as before, and the same Commit may be tried again. The error is a
// *FullError, which knows why.
var ErrFull = errors.New("store is full")

// ErrClosed is returned by every call after Close or SetAside.
var ErrClosed = errors.New("store is closed")

// FullReason is what kind of room was missing.
type FullReason string

const (
	// FullDisk: the file system has no space left.
	FullDisk FullReason = "disk"
	// FullQuota: the quota is reached and nothing may be dropped, since recovery
	// or undecided readings need it. WantsCheckpoint tells whether a checkpoint
	// would help.
	FullQuota FullReason = "quota"
	// FullHold: the raw readings' share of the quota is used up and the policy is
	// to hold the sources.
	FullHold FullReason = "hold_sources"
)

// FullError is the ErrFull of one commit.
type FullError struct {
	Path   string
	Reason FullReason
	Used   int64 // bytes of the file in use
	Limit  int64 // bytes that may be in use for this kind of commit; 0 for FullDisk
	Err    error // what the file system said; nil for the store's own decision
}

func (e *FullError) Error() string {
	switch e.Reason {
	case FullDisk:
		return fmt.Sprintf("no space left for store %q: free space on its file system: %v", e.Path, e.Err)
	case FullHold:
		return fmt.Sprintf("store %q holds its sources: %d of %d bytes for raw readings are used; raise store.quota, shorten store.retain, or allow drop_oldest_raw", e.Path, e.Used, e.Limit)
	}
	return fmt.Sprintf("store %q is at its quota (%d of %d bytes) and nothing in it may be dropped; raise store.quota", e.Path, e.Used, e.Limit)
}

// Is makes errors.Is(err, ErrFull) hold.
func (e *FullError) Is(target error) bool { return target == ErrFull }

func (e *FullError) Unwrap() error { return e.Err }

// LockedError says that another process has the file open.
type LockedError struct {
	Path string
	PID  int // of the holder; 0 if the system did not tell
}

func (e *LockedError) Error() string {
	if e.PID != 0 {
		return fmt.Sprintf("store %q is in use by process %d; stop it first, or name another store.path", e.Path, e.PID)
	}
	return fmt.Sprintf("store %q is in use by another process; stop it first, or name another store.path", e.Path)
}

// DamageError says that the file does not hold what was written to it. The
// remedy is SetAside, or a restart where the damage prevents opening.
type DamageError struct {
	Path string
	What string // the place and what is wrong there
	// Block is the journal's block that cannot be read, 0 if it is something else:
	// with LoseBlock the store goes on without it.
	Block uint64
	Err   error // nil, or what lies beneath
}

func (e *DamageError) Error() string {
	s := fmt.Sprintf("store %q is damaged: %s", e.Path, e.What)
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *DamageError) Unwrap() error { return e.Err }

// BrokenError is returned by every call once a commit failed for another reason
// than ErrFull: what is on disk is not known until the store is opened again.
type BrokenError struct {
	Path string
	Err  error // the first failure
}

func (e *BrokenError) Error() string {
	return fmt.Sprintf("store %q must be closed and opened again: %v", e.Path, e.Err)
}

func (e *BrokenError) Unwrap() error { return e.Err }

// SchemaError says that the file was written by a program newer than this one.
type SchemaError struct {
	Path        string
	Have, Known int
}

func (e *SchemaError) Error() string {
	return fmt.Sprintf("store %q has schema %d, this program knows %d: run the newer program, or name another store.path", e.Path, e.Have, e.Known)
}
