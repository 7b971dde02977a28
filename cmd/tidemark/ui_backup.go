package main

import (
	"fmt"
	"io"

	"tidemark/internal/archive"
)

func printBackup(w io.Writer, out string, m *archive.Manifest) error {
	_, err := fmt.Fprintf(w, "saved the store and %s of gateway %s in %s; it holds secrets, keep it like one\n",
		count(len(m.Files), "file"), m.Gateway, out)
	return err
}

func printRestored(w io.Writer, m archive.Manifest, config, kept string) error {
	if kept != "" {
		fmt.Fprintf(w, "the store that was there is kept as %s\n", kept)
	}
	_, err := fmt.Fprintf(w, "gateway %s is as it was on %s, under a generation of its own; next: tidemark check -c %s, and start it\n",
		m.Gateway, m.Created, config)
	return err
}
