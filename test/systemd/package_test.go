package systemd

import (
	"crypto/sha256"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// The same tree gives the same bytes, and Debian's own checker has nothing to say
// that is not answered in systemd/deb/lintian-overrides.
func TestPackage(t *testing.T) {
	if os.Getenv("TIDEMARK_INTEROP") == "" {
		t.Skip("set TIDEMARK_INTEROP=1 to make and check the package")
	}
	deb, archive := packaged(t, "0.1.0")
	first := [][32]byte{sum(t, deb), sum(t, archive)}
	clear(made)
	packaged(t, "0.1.0")
	for i, file := range []string{deb, archive} {
		if sum(t, file) != first[i] {
			t.Errorf("made twice, %s differs", filepath.Base(file))
		}
	}
	// As --help has it, not as the library spells flags: --help[=false], --out="".
	host(t, "sh", "-c", `! zgrep -E '\[=|=""' "$0"/dist/share/man/man1/*.gz`, repository)
	sum(t, filepath.Join(repository, "dist", runtime.GOARCH, "tidemark"))
	host(t, "lintian", "--allow-root", "--fail-on=error,warning", deb)
}

// most is what the binary, stripped, and each package may weigh.
const most = 20_000_000

// sum is a file's checksum; the file must not be too large.
func sum(t *testing.T, file string) [32]byte {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s: %.1f MB", filepath.Base(file), float64(len(data))/1e6)
	if len(data) > most {
		t.Errorf("%s has %d bytes", file, len(data))
	}
	return sha256.Sum256(data)
}

// At most 1.5 of 10; systemd/README.md says why not less.
func TestSandbox(t *testing.T) {
	if os.Getenv("TIDEMARK_INTEROP") == "" {
		t.Skip("set TIDEMARK_INTEROP=1 to judge the unit by systemd-analyze")
	}
	host(t, "systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=15", repository+"/systemd/tidemark.service")
}
