package buffer

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"syscall"

	bolt "go.etcd.io/bbolt"
)

// Open opens the store in the file path, and creates it if it is not there.
//
// A file that cannot be opened, or fails the checks of its structure, is set
// aside under another name, and a new one created: see Opened. A file that is in
// use is a *LockedError, after two seconds; one of a newer program a
// *SchemaError; one that was never a store a *ForeignError; a fault of the file
// system, such as missing permission, is returned as it is. None of these changes
// the file.
func Open(path string, o Options) (*Store, *Opened, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, nil, fmt.Errorf("cannot open store %q: %w%s", path, err, remedy(err))
	}
	did := &Opened{}
	for range openTries {
		was, _ := os.Stat(path)
		s, err := openFile(path, o, did)
		err = orForeign(path, err)
		var damage *DamageError
		switch {
		case err == nil:
			return s, did, nil
		case errors.Is(err, fs.ErrNotExist):
			did.Created = true
			err = create(path, o.NowMS)
		case errors.As(err, &damage) && did.SetAside == "":
			did.Reason = damage.Error()
			if did.SetAside, err = setAside(path, was, damage.Error(), o.NowMS); did.SetAside != "" {
				if kept, berr := bringOver(did.SetAside, path); berr == nil {
					did.Kept, did.Created = kept, true
				}
			}
		}
		if err != nil {
			return nil, nil, err
		}
	}
	return nil, nil, fmt.Errorf("cannot open store %q: it changes under our hands; is something else creating or moving it?", path)
}

// openTries is enough for: damaged, not there, created; and once more for each
// where another process does the same.
const openTries = 6

// openFile opens what is there. It returns an error that is fs.ErrNotExist if
// nothing is.
func openFile(path string, o Options, did *Opened) (*Store, error) {
	f, err := lockFile(path)
	if err != nil {
		return nil, err
	}
	if err = prepare(path, f, o, did); did.Compacted && err == nil {
		f.Close()
		f, err = lockFile(path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	s := &Store{path: path, o: o, file: f, more: make(chan struct{}), outboxes: map[string]*Outbox{}}
	if err := s.openDB(); err != nil {
		f.Close()
		return nil, err
	}
	if err := s.load(); err != nil {
		s.end(ErrClosed)
		return nil, errors.Join(err, s.closeFile())
	}
	sweep(path)
	return s, nil
}

// prepare checks the structure of the locked file, and rewrites it if that is
// wanted and worth it.
func prepare(path string, f *os.File, o Options, did *Opened) error {
	pages, err := verify(path, f)
	if err != nil {
		return err
	}
	did.Torn = pages.torn
	const worthIt = 64 << 20
	if !o.Compact || pages.size < worthIt {
		return nil
	}
	free, err := pages.freelist()
	if err != nil || int64(len(free)) < int64(pages.meta.high)/4*3 {
		return nil
	}
	// If that fails, for want of room for the copy perhaps, the file is as good as
	// before.
	did.Compacted = rewrite(path, f, nil) == nil
	return nil
}

// verify returns a *DamageError if the structure of the file is not whole. It
// reads branch pages only: what is in the leaves has checksums. Where bbolt is
// going to walk the trees for want of a list of free pages, it does so in a
// goroutine whose faults nobody can catch: then leaves are read too.
func verify(path string, f *os.File) (*pageFile, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	pages, err := openPages(f, info.Size())
	if err != nil {
		return nil, &DamageError{Path: path, What: "its beginning", Err: err}
	}
	var first *PageError
	faults := 0
	var entry func([]byte, element)
	if pages.meta.freelist == noFreelist {
		entry = func([]byte, element) {}
	}
	_ = checkPages(pages, entry, func(e *PageError) {
		if first == nil {
			first = e
		}
		faults++
	}, nil)
	if first != nil {
		return nil, &DamageError{Path: path, What: fmt.Sprintf("%d faults in its pages, the first of them", faults), Err: first}
	}
	return pages, nil
}

// openDB gives the locked file to bbolt.
func (s *Store) openDB() error {
	err := s.guard("opening", func() (err error) {
		o := s.o.bolt(func(string, int, os.FileMode) (*os.File, error) { return s.file, nil })
		if s.readOnly {
			o = s.boltToRead()
		}
		s.db, err = bolt.Open(s.path, 0o600, o)
		return err
	})
	switch {
	case err == nil:
		s.db.AllocSize = int(s.o.step())
		return nil
	case environmental(err):
		return fmt.Errorf("cannot open store %q: %w", s.path, err)
	}
	return s.damage("it cannot be opened", err)
}

func (o *Options) bolt(open func(string, int, os.FileMode) (*os.File, error)) *bolt.Options {
	return &bolt.Options{
		Timeout:      lockTimeout,
		FreelistType: bolt.FreelistMapType,
		PageSize:     pageSize,
		MaxSize:      int(o.Quota),
		// Mapped whole from the start, a growing file never waits for readers,
		// and on 32 bits never fails to find room for a larger map.
		InitialMmapSize: int(o.Quota),
		// Opening writes nothing; see weighFreelist.
		NoFreelistSync: true,
		OpenFile:       open,
	}
}

// environmental reports whether err says something about the system rather than
// about the file.
func environmental(err error) bool {
	return noSpace(err) || slices.ContainsFunc([]error{
		syscall.EACCES, syscall.EPERM, syscall.EROFS, syscall.EMFILE, syscall.ENFILE, syscall.ENOMEM,
	}, func(no error) bool { return errors.Is(err, no) })
}

// load reads what is kept in memory.
func (s *Store) load() error {
	err := s.guard("reading its state", func() error {
		return s.db.View(func(tx *bolt.Tx) (err error) {
			if s.st, err = readState(tx); err != nil {
				return s.damage("state", err)
			}
			if s.st.Schema > schema {
				return &SchemaError{Path: s.path, Have: s.st.Schema, Known: schema}
			}
			for name := range buckets {
				if tx.Bucket([]byte(name)) == nil {
					return s.damage(fmt.Sprintf("bucket %q is missing", name), nil)
				}
			}
			if s.meta, err = readMeta(tx); err != nil {
				return s.damage("state", err)
			}
			return nil
		})
	})
	if err == nil {
		s.readers()
	}
	return err
}

// readers makes the outboxes, and forgets the uplinks that are no more.
func (s *Store) readers() {
	s.st = s.st.clone()
	maps.DeleteFunc(s.st.Cursors, func(name string, _ uint64) bool { return !slices.Contains(s.o.Uplinks, name) })
	maps.DeleteFunc(s.st.Ahead, func(name string, _ []Ahead) bool { return !slices.Contains(s.o.Uplinks, name) })
	maps.DeleteFunc(s.st.Raw, func(name string, _ Position) bool { return !slices.Contains(s.o.Raw, name) })
	for _, name := range s.o.Uplinks {
		if _, known := s.st.Cursors[name]; !known {
			s.st.Cursors[name] = s.st.Outbox.First - 1
		}
		o := &Outbox{s: s, name: name, mark: s.st.Cursors[name], ahead: s.st.Ahead[name], raw: s.rawCursor(name)}
		o.Rewind()
		s.outboxes[name] = o
	}
}

// rawCursor returns the uplink's cursor over the journal, nil if it takes no
// readings.
func (s *Store) rawCursor(name string) *rawCursor {
	if !slices.Contains(s.o.Raw, name) {
		return nil
	}
	at, known := s.st.Raw[name]
	if !known {
		at = Position{Block: s.st.Journal.Next}
		s.st.setRaw(name, at)
	}
	return &rawCursor{mark: at}
}
