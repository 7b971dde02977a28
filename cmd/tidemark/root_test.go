package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestUsage(t *testing.T) {
	for _, x := range []struct {
		args   string
		code   int
		errOut string // whole; out is empty where it is
	}{
		{"stauts", exitUsage, `tidemark: unknown command "stauts" (did you mean "status"?)`},
		{"frobnicate", exitUsage, `tidemark: unknown command "frobnicate"; tidemark --help shows those that there are`},
		{"store chekc x.db", exitUsage, `tidemark: unknown command "chekc" (did you mean "check"?)`},
		{"store", exitUsage, `tidemark: store needs to be told what to do: check, stats, compact or salvage`},
		{"check t.yaml", exitUsage, `tidemark: check takes its configuration with -c: tidemark check -c t.yaml`},
		{"run t.yaml", exitUsage, `tidemark: run takes its configuration with -c: tidemark run -c t.yaml`},
		{"status t.yaml", exitUsage, `tidemark: status takes its configuration with -c: tidemark status -c t.yaml`},
		{"backup t.tar.gz", exitUsage, `tidemark: backup takes the file that it writes with -o: tidemark backup -o t.tar.gz`},
		{"backup t.yaml", exitUsage, `tidemark: backup takes its configuration with -c: tidemark backup -c t.yaml`},
		{"record t.jsonl", exitUsage, `tidemark: record takes the file that it writes with -o: tidemark record -o t.jsonl`},
		{"--frobnicate", exitUsage, `tidemark: unknown flag: --frobnicate`},
		{"", exitOK, ""},
		{"help", exitOK, ""},
		{"--help", exitOK, ""},
	} {
		var out, errOut bytes.Buffer
		code := run(t.Context(), strings.Fields(x.args), strings.NewReader(""), &out, &errOut)
		if code != x.code || strings.TrimSpace(errOut.String()) != x.errOut || (out.Len() == 0) != (x.errOut != "") {
			t.Errorf("%q: exit %d, %q, %q", x.args, code, out.String(), errOut.String())
		}
		if x.errOut == "" && !strings.Contains(out.String(), "Look into it:") {
			t.Errorf("%q: %s", x.args, out.String())
		}
	}
}
