package pki

import (
	"path/filepath"
	"testing"
)

// A crash between any two files of a renewal leaves a certificate that has its key: the
// one before, or the new one; and the renewal can be done again.
func TestRenewalIsWholeWhereverItEnds(t *testing.T) {
	who := Subject{Name: "Tidemark", URI: "urn:tidemark:line-3"}
	for crash := 0; ; crash++ {
		s := At(t.TempDir())
		before, err := s.Make(who, 0)
		if err != nil {
			t.Fatal(err)
		}
		files, err := s.renewal(who, 0)
		if err != nil {
			t.Fatal(err)
		}
		if crash > len(files) {
			return
		}
		renewed := false
		for _, f := range files[:crash] {
			renewed = renewed || f.name == ownCertificate
			if err := write(filepath.Join(s.Dir(), f.name), f.data, f.mode); err != nil {
				t.Fatal(err)
			}
		}
		own, err := s.Own()
		if err != nil || own.Certificate.Equal(before.Certificate) == renewed {
			t.Fatalf("after %d of %d files: %v, %v", crash, len(files), own, err)
		}
		again, err := s.Make(who, 0)
		if err != nil || again.Certificate.Equal(own.Certificate) {
			t.Fatalf("renewed after %d of %d files: %v", crash, len(files), err)
		}
	}
}

// The first certificate is made anew where it was interrupted, and so is a pair that
// does not belong together.
func TestMakingIsWholeWhereverItEnds(t *testing.T) {
	who := Subject{Name: "Tidemark", URI: "urn:tidemark:line-3"}
	s, other := At(t.TempDir()), At(t.TempDir())
	files, err := s.renewal(who, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := write(filepath.Join(s.Dir(), files[0].name), files[0].data, files[0].mode); err != nil {
		t.Fatal(err)
	}
	if own, err := s.Ensure(who, 0); err != nil || own == nil {
		t.Fatalf("after the first file: %v", err)
	}
	theirs, err := other.renewal(who, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := write(filepath.Join(s.Dir(), ownKey), theirs[0].data, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Own(); err == nil {
		t.Fatal("a key of another certificate is taken")
	}
	if _, err := s.Make(who, 0); err != nil {
		t.Errorf("it cannot be mended: %v", err)
	}
}
