package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func judgeFile(t *testing.T, content string) (code int, out, errOut string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "case.jsonl")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	var o, e bytes.Buffer
	code = run(t.Context(), []string{"judge", path}, strings.NewReader(""), &o, &e)
	return code, o.String(), e.String()
}

func TestJudgePrintsAResultAStep(t *testing.T) {
	code, out, errOut := judgeFile(t, `{"id":"K","op":"poll","steps":[{"given":{"poll_s":64,"event":"RATE"}},{"given":{"poll_s":64,"event":"DENY"}}]}`)
	want := `{"id":"K","step":0,"result":{"next_poll_s":128,"server_usable":true}}
{"id":"K","step":1,"result":{"next_poll_s":null,"server_usable":false}}
`
	if code != exitOK || out != want || errOut != "" {
		t.Errorf("exit %d, stdout %s, stderr %s", code, out, errOut)
	}
}

func TestJudgeNamesTheMalformedLine(t *testing.T) {
	code, _, errOut := judgeFile(t, "\n{\"id\":\"K\",\"op\":\"guess\",\"steps\":[{\"given\":{}}]}\n")
	if code != exitUsage || !strings.Contains(errOut, "line 2") || !strings.Contains(errOut, `"guess"`) {
		t.Errorf("exit %d, stderr %s", code, errOut)
	}
	var o, e bytes.Buffer
	if code := run(t.Context(), []string{"judge", "/nowhere"}, nil, &o, &e); code != exitUsage {
		t.Errorf("exit %d for a file that is not there", code)
	}
}
