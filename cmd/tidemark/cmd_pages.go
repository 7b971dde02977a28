//go:build pages

package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"tidemark/configs"
)

func packagingCommands() []*cobra.Command { return []*cobra.Command{newPagesCmd()} }

// newPagesCmd writes what a package ships beside the binary. It is only in the
// binary that makes packages: its libraries are no weight for a gateway.
func newPagesCmd() *cobra.Command {
	return &cobra.Command{
		Use:    "pages DIR",
		Short:  "Write man pages and shell completions, laid out as in /usr/share",
		Hidden: true,
		Args:   exactly(1),
		RunE:   func(cmd *cobra.Command, args []string) error { return runtimeError(writePages(cmd.Root(), args[0])) },
	}
}

func writePages(root *cobra.Command, dir string) error {
	man := filepath.Join(dir, "man", "man1")
	if err := os.MkdirAll(man, 0o755); err != nil {
		return err
	}
	if err := writeManual(root, man); err != nil {
		return err
	}
	for name, write := range map[string]func(string) error{
		"bash-completion/completions/tidemark":    func(f string) error { return root.GenBashCompletionFileV2(f, true) },
		"zsh/vendor-completions/_tidemark":        root.GenZshCompletionFile,
		"fish/vendor_completions.d/tidemark.fish": func(f string) error { return root.GenFishCompletionFile(f, true) },
	} {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := write(file); err != nil {
			return err
		}
	}
	return writeConfigPage(filepath.Join(dir, "man", "man5"))
}

// writeManual writes the page of a command and of those below it.
func writeManual(cmd *cobra.Command, dir string) error {
	for _, sub := range cmd.Commands() {
		if !sub.IsAvailableCommand() || sub.IsAdditionalHelpTopicCommand() {
			continue
		}
		if err := writeManual(sub, dir); err != nil {
			return err
		}
	}
	cmd.DisableAutoGenTag = true
	var b bytes.Buffer // of SOURCE_DATE_EPOCH, so the same pages on every day
	err := doc.GenMan(cmd, &doc.GenManHeader{Section: "1", Source: "Tidemark " + version, Manual: "Tidemark"}, &b)
	if err != nil {
		return err
	}
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-") + ".1"
	return os.WriteFile(filepath.Join(dir, name), withOptions(b.Bytes(), cmd), 0o644)
}

// withOptions lists a command's flags in its page as --help does. The library would
// write --help[=false] and --out="".
func withOptions(page []byte, cmd *cobra.Command) []byte {
	before, rest, found := bytes.Cut(page, []byte(".SH OPTIONS\n"))
	if !found {
		return page
	}
	var b bytes.Buffer
	b.Write(before)
	b.WriteString(".SH OPTIONS\n")
	flags := cmd.Flags()
	flags.AddFlagSet(cmd.InheritedFlags())
	writeVerbatim(&b, flags.FlagUsagesWrapped(78))
	if i := bytes.Index(rest, []byte("\n.SH SEE ALSO")); i >= 0 {
		b.Write(rest[i:])
	}
	return b.Bytes()
}

// writeVerbatim writes text as it stands.
func writeVerbatim(b *bytes.Buffer, text string) {
	b.WriteString(".nf\n")
	escape := strings.NewReplacer(`\`, `\e`, "-", `\-`)
	for line := range strings.Lines(text) {
		line = escape.Replace(line)
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			line = `\&` + line
		}
		b.WriteString(line)
	}
	b.WriteString(".fi\n")
}

// writeConfigPage makes a manual page of the annotated configuration, as it is.
func writeConfigPage(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	file, err := configs.Files.ReadFile("tidemark.yaml")
	if err != nil {
		return err
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, ".TH TIDEMARK.YAML 5 \"\" \"Tidemark %s\" \"Tidemark\"\n", version)
	b.WriteString(".SH NAME\ntidemark.yaml \\- configuration of the Tidemark gateway\n")
	b.WriteString(".SH DESCRIPTION\nThe file as it is installed: every key with its default and its meaning.\n.PP\n")
	writeVerbatim(&b, string(file))
	b.WriteString(".SH SEE ALSO\n.BR tidemark (1),\n.BR tidemark-check (1)\n")
	return os.WriteFile(filepath.Join(dir, "tidemark.yaml.5"), b.Bytes(), 0o644)
}
