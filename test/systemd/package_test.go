package systemd

import (
	"crypto/sha256"
	"os"
	"testing"
)

// The same tree gives the same bytes, and Debian's own checker has nothing to say
// that is not answered in systemd/deb/lintian-overrides.
func TestPackage(t *testing.T) {
	if os.Getenv("TIDEMARK_INTEROP") == "" {
		t.Skip("set TIDEMARK_INTEROP=1 to make and check the package")
	}
	deb := ""
	sum := func() [32]byte {
		t.Helper()
		deb = packaged(t, "0.1.0")
		data, err := os.ReadFile(deb)
		if err != nil {
			t.Fatal(err)
		}
		if len(data) > 20<<20 {
			t.Errorf("the package has %d bytes", len(data))
		}
		return sha256.Sum256(data)
	}
	if first, again := sum(), sum(); first != again {
		t.Error("made twice, the package differs")
	}
	// As --help has it, not as the library spells flags: --help[=false], --out="".
	host(t, "sh", "-c", `! zgrep -E '\[=|=""' "$0"/dist/share/man/man1/*.gz`, repository)
	host(t, "lintian", "--allow-root", "--fail-on=error,warning", deb)
}

// At most 1.5 of 10; systemd/README.md says why not less.
func TestSandbox(t *testing.T) {
	if os.Getenv("TIDEMARK_INTEROP") == "" {
		t.Skip("set TIDEMARK_INTEROP=1 to judge the unit by systemd-analyze")
	}
	host(t, "systemd-analyze", "security", "--offline=true", "--no-pager", "--threshold=15", repository+"/systemd/tidemark.service")
}
