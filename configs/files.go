package configs

import "embed"

// Files holds tidemark.yaml, the annotated reference, and demo.yaml, what
// `tidemark demo` runs.
//
//go:embed tidemark.yaml demo.yaml
var Files embed.FS
