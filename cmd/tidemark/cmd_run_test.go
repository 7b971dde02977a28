package main

import (
	"strings"
	"testing"
)

func TestRunSaysThatTheStoresDirectoryIsMissing(t *testing.T) {
	text := strings.Replace(validConfig, "path: t.db", "path: none/t.db", 1)
	code, _, errOut := runConfig(t, text, "run")
	want := "tidemark: the store's directory DIR/none does not exist; create it, or name another store.path\n"
	if code != exitStorage || !strings.HasSuffix(errOut, want) {
		t.Errorf("exit %d, %s", code, errOut)
	}
	code, out, _ := runConfig(t, text, "check")
	if want := "FILE:4:15: the store's directory DIR/none does not exist"; code != exitUsage || !strings.HasPrefix(out, want) {
		t.Errorf("check: exit %d, %s", code, out)
	}
}
