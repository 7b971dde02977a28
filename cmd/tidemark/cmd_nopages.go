//go:build !pages

package main

import "github.com/spf13/cobra"

func packagingCommands() []*cobra.Command { return nil }
