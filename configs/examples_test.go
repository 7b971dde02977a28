package configs_test

import (
	"os"
	"strings"
	"testing"

	"tidemark/configs"
)

// The configurations that the documents show are valid.
func TestDocumentedConfigurations(t *testing.T) {
	for _, name := range []string{"../README.md", "../docs/CONTRACT.md"} {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		_, text, found := strings.Cut(string(data), "\n```yaml\ngateway:")
		text, _, closed := strings.Cut(text, "\n```")
		if !found || !closed {
			t.Errorf("%s shows no configuration", name)
			continue
		}
		if _, err := configs.Parse(name, []byte("gateway:"+text), "host"); err != nil {
			t.Error(err)
		}
	}
}
