package buffer

import (
	"fmt"
	"path/filepath"
	"syscall"
	"time"
)

// Stats is how full the store is.
type Stats struct {
	FileBytes  int64 `json:"file_bytes"`
	UsedBytes  int64 `json:"used_bytes"` // of the file, by pages
	QuotaBytes int64 `json:"quota_bytes"`
	RawBytes   int64 `json:"raw_limit_bytes"` // of UsedBytes, beyond which raw readings are dropped or refused
	FreeBytes  int64 `json:"free_bytes"`      // on the file system, for this user; -1 if not known

	Commits  uint64 `json:"commits"` // since creation
	Journal  Range  `json:"journal"`
	Readings int64  `json:"readings"` // in the journal
	Outbox   Range  `json:"outbox"`
	Evidence Range  `json:"evidence"`
	OldestMS int64  `json:"oldest_ms"` // wall time of the oldest block's commit; 0 if there is none or it is not known
	LatestMS int64  `json:"latest_ms"` // the highest wall time that a commit brought
	// RoomMS is how long raw readings fit at the rate of those that are held, until the
	// policy for a full store applies; -1 if less than a minute of them is held.
	RoomMS  int64  `json:"room_ms"`
	SafeSeq uint64 `json:"safe_seq"` // the last block that recovery does without

	Backlog map[string]int64 `json:"backlog"` // uplink → records not delivered
	Losses  int              `json:"losses"`  // dropped and not reported yet
}

// RoomFor is how long raw readings find room, at the mean rate of those that are
// held; false while a minute of them is not. What is dropped for its age meanwhile
// makes more.
func (v *Stats) RoomFor() (time.Duration, bool) {
	ms := v.LatestMS - v.OldestMS
	if v.OldestMS == 0 || ms < time.Minute.Milliseconds() || v.Journal.Bytes <= 0 {
		return 0, false
	}
	left := float64(max(0, v.RawBytes-v.UsedBytes)) / float64(v.Journal.Bytes) * float64(ms)
	return time.Duration(min(left, 1e12) * 1e6), true // at most 30 years
}

// Stats tells how full the store is. It reads a few pages at most.
func (s *Store) Stats() (Stats, error) {
	if err := s.usable(); err != nil {
		return Stats{}, err
	}
	st := s.snapshot()
	v := Stats{
		UsedBytes: s.used(), QuotaBytes: s.o.Quota, RawBytes: s.o.rawLimit(), FreeBytes: freeSpace(filepath.Dir(s.path)),
		Commits: st.Commits, Journal: st.Journal, Readings: st.Readings, Outbox: st.Outbox, Evidence: st.Evidence,
		LatestMS: st.LastMS, SafeSeq: st.safeSeq(), Backlog: map[string]int64{}, Losses: len(st.Losses),
	}
	for name, o := range s.outboxes {
		v.Backlog[name] = o.waiting(st)
	}
	info, err := s.file.Stat()
	if err != nil {
		return v, fmt.Errorf("cannot look at store %q: %w", s.path, err)
	}
	v.FileBytes = info.Size()
	v.OldestMS, err = s.readJournalHead()
	v.RoomMS = -1
	if left, ok := v.RoomFor(); ok {
		v.RoomMS = left.Milliseconds()
	}
	return v, err
}

// readJournalHead returns the wall time of the oldest block.
func (s *Store) readJournalHead() (int64, error) {
	st := s.snapshot()
	if st.heldFrom(0) == st.Journal.Next {
		return 0, nil
	}
	part, err := s.readJournal(0, true, 1)
	if err != nil || len(part) == 0 {
		return 0, err
	}
	return part[0].AtMS, nil
}

// freeSpace is what the file system has left for us, -1 if it does not say.
func freeSpace(dir string) int64 {
	var fs syscall.Statfs_t
	if err := syscall.Statfs(dir, &fs); err != nil {
		return -1
	}
	return int64(fs.Bavail) * int64(fs.Bsize)
}
