package configs_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

const pageHead = `# Configuration, key by key

Made from ` + "`configs/tidemark.yaml`" + `, which the tests hold to have every key of the code
with its default. ` + "`tidemark init --reference`" + ` prints that file, ` + "`tidemark check`" + ` checks
yours: every fault with line, column, reason and the nearest valid key.

Durations are ` + "`500ms`, `20s`, `5m`, `1h30m` or `7d`" + `; sizes ` + "`64KB`" + ` (64,000 bytes) or ` + "`64KiB`" + `;
times RFC 3339 with a zone. ` + "`[]`" + ` in a key stands for each entry of a list. A secret
never stands in the file: it is ` + "`{credential: NAME}`" + `, the file NAME in
/etc/tidemark/credentials, or ` + "`{file: PATH}`" + `.

| key | default or example | meaning |
|---|---|---|
`

// The page of all keys says what the annotated file says.
func TestConfigurationPage(t *testing.T) {
	var doc yaml.Node
	if err := yaml.Load([]byte(uncommented(reference(t))), &doc); err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	b.WriteString(pageHead)
	seen := map[string]bool{}
	pageRows(&b, doc.Content[0], "", seen)
	const path = "../docs/configuration.md"
	if *update {
		if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	have, err := os.ReadFile(path)
	if err != nil || string(have) != b.String() {
		t.Errorf("docs/configuration.md is not what configs/tidemark.yaml says (%v): go test ./configs -run Page -update", err)
	}
	if len(seen) < 100 {
		t.Errorf("only %d keys", len(seen))
	}
}

// pageRows writes a row for each key below n that was not seen yet.
func pageRows(b *strings.Builder, n *yaml.Node, path string, seen map[string]bool) {
	if n.Kind == yaml.SequenceNode {
		for _, item := range n.Content {
			pageRows(b, item, path+"[]", seen)
		}
		return
	}
	for i := 0; n.Kind == yaml.MappingNode && i < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		name := strings.TrimPrefix(path+"."+key.Value, ".")
		text := pageText(key, value)
		if i == 0 && text == "" && path != "" && strings.HasSuffix(path, "[]") {
			text = pageText(n, n)
		}
		if !seen[name] {
			seen[name] = true
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, pageValue(value), text)
		}
		if value.Style&yaml.FlowStyle == 0 {
			pageRows(b, value, name, seen)
		}
	}
}

func pageText(key, value *yaml.Node) string {
	text := key.HeadComment
	var words []string
	for line := range strings.Lines(text) {
		words = append(words, strings.Fields(strings.TrimLeft(line, "# "))...)
	}
	return strings.ReplaceAll(strings.Join(words, " "), "|", "\\|")
}

func pageValue(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.ScalarNode && n.Value == "":
		return "`\"\"`"
	case n.Kind == yaml.ScalarNode:
		return "`" + strings.ReplaceAll(n.Value, "|", "\\|") + "`"
	case n.Style&yaml.FlowStyle != 0:
		out, err := yaml.Dump(n)
		if err != nil {
			return ""
		}
		return "`" + strings.TrimSpace(strings.ReplaceAll(string(out), "\n", " ")) + "`"
	}
	return ""
}
