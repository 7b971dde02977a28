package owner_test

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"tidemark/internal/owner"
)

const account = 12345 // nobody's, and nobody has to know it

func uid(t *testing.T, path string) uint32 {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return info.Sys().(*syscall.Stat_t).Uid
}

func TestRootLeavesWhatItMakesToTheDirectorysOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give files away")
	}
	dir := t.TempDir()
	if err := os.Chown(dir, account, account); err != nil {
		t.Fatal(err)
	}
	made := filepath.Join(dir, "a", "b")
	if err := owner.MkdirAll(made, 0o750); err != nil {
		t.Fatal(err)
	}
	f, err := owner.CreateTemp(made, ".new-*")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, path := range []string{filepath.Dir(made), made, f.Name()} {
		if got := uid(t, path); got != account {
			t.Errorf("%s belongs to %d, not to %d", path, got, account)
		}
	}
}

func TestOneselfKeepsWhatOneMakes(t *testing.T) {
	made := filepath.Join(t.TempDir(), "a", "b")
	for range 2 { // there already, it stays
		if err := owner.MkdirAll(made, 0o750); err != nil {
			t.Fatal(err)
		}
	}
	f, err := owner.CreateTemp(made, ".new-*")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got := uid(t, f.Name()); got != uint32(os.Geteuid()) {
		t.Errorf("the file belongs to %d", got)
	}
}

func TestAFileInTheWayIsAnError(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{file, filepath.Join(file, "below")} {
		if err := owner.MkdirAll(dir, 0o750); err == nil {
			t.Errorf("%s was made", dir)
		}
	}
}
