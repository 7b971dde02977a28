// Package configs holds Tidemark's configuration: the typed tree (Config), its
// defaults, the reader that finds every fault with its place and the nearest
// valid spelling, and the shipped, annotated files.
//
// Load reads a file; Parse reads bytes. Both return a complete tree: what the
// file leaves out has its default, what a feature leaves out has the value of
// `defaults`, and names that refer to something have been checked. Nothing is
// opened or connected to; CheckFiles looks for what the tree names on this host.
//
// A fault inside one feature takes away that feature only: Parse then returns the
// tree without it, together with the faults, so that collection goes on. Any other
// fault leaves no tree.
//
// Secrets never stand in the file. A Secret names a systemd credential or a file
// and is read when it is needed; nothing here prints one.
package configs
