package buffer

import "golang.org/x/sys/unix"

// forgetEvery is after how many transactions the file's pages are let go.
const forgetEvery = 16

// forgetPages gives back the memory in which the mapped file shows: the kernel
// counts it as ours, brings in sixteen pages for each that is looked at, and takes
// them away only when memory is short. What is still in its cache comes back at the
// cost of a fault, and without a word to the disk.
func (s *Store) forgetPages(transaction uint64) {
	if transaction%forgetEvery != 0 {
		return
	}
	info, err := s.file.Stat()
	if err != nil {
		return
	}
	// A refusal costs nothing but the memory.
	_, _, _ = unix.Syscall(unix.SYS_MADVISE, s.db.Info().Data, uintptr(info.Size()), unix.MADV_DONTNEED)
}
