package main

import (
	"fmt"
	"io"
)

// Everything that a user sees of a command is printed in this file.

// printError prints the one error that ends a command.
func printError(w io.Writer, err error) { fmt.Fprintf(w, "tidemark: %v\n", err) }
