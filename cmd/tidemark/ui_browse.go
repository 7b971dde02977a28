package main

import (
	"encoding/csv"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// Everything that a user sees of `tidemark browse` is printed in this file.

// printBrowse prints the tree, and an input that reads it with what is left to do.
func printBrowse(w io.Writer, v *browseView) error {
	tree := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for i := range v.Nodes {
		n := &v.Nodes[i]
		fmt.Fprintf(tree, "%s%s\t%s\t%s\t%s\t%s\n", strings.Repeat("  ", len(n.Path)-1), printable(n.Path[len(n.Path)-1]), n.Type, clipText(nodeValue(n), 36), nodeNotes(n), printable(n.Place))
	}
	if err := tree.Flush(); err != nil {
		return err
	}
	if len(v.Nodes) == 0 {
		fmt.Fprintf(w, "nothing below %s\n", v.Under)
	}
	if v.LeftOut != "" {
		fmt.Fprintf(w, "\n%s\n", v.LeftOut)
	}
	snippet, err := v.Rule.YAML()
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "\n# This input reads %s:\ninputs:\n%s", count(len(v.Chosen), "node"), snippet)
	printUnread(w, v)
	_, err = fmt.Fprintln(w)
	return err
}

// unreadShown is how many nodes are named one by one.
const unreadShown = 20

func printUnread(w io.Writer, v *browseView) {
	for i, u := range v.Unread {
		if i == unreadShown {
			fmt.Fprintf(w, "# and %d more; --json has them all\n", len(v.Unread)-i)
			break
		}
		fmt.Fprintf(w, "# %s: %s\n", printable(u.Place), u.Reason)
	}
}

func nodeValue(n *browseNode) string {
	if n.Value == "" {
		return ""
	}
	s := printable(n.Value)
	if n.Unit != "" {
		s += " " + n.Unit
	}
	if n.Quality != "" && n.Quality != "good" {
		s += " (" + n.Quality + ")"
	}
	return s
}

func nodeNotes(n *browseNode) string {
	var notes []string
	if len(n.Range) == 2 {
		notes = append(notes, "["+n.Range[0]+", "+n.Range[1]+"]")
	}
	if n.History {
		notes = append(notes, "history")
	}
	if n.Unread != "" {
		notes = append(notes, "unreadable")
	}
	return strings.Join(notes, " ")
}

func clipText(s string, most int) string {
	if r := []rune(s); len(r) > most {
		return string(r[:most-1]) + "…"
	}
	return s
}

// printTagFile prints the chosen nodes as a tag file, and what is wrong with others
// as comments in it.
func printTagFile(w io.Writer, v *browseView) error {
	c := csv.NewWriter(w)
	rows := [][]string{{"node", "asset", "device", "sensor", "unit", "deadband", "trigger", "expect_every", "alarm_after"}}
	for _, n := range v.Chosen {
		rows = append(rows, []string{n.Place, n.Asset, n.Device, n.Sensor, n.Unit, "", "", "", ""})
	}
	if err := c.WriteAll(rows); err != nil {
		return err
	}
	printUnread(w, v)
	return nil
}
