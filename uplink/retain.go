package uplink

import (
	"maps"
	"slices"
)

// newest knows the newest window that was published with retain, by topic: a
// correction of an older one must not take its place at the broker.
type newest map[string]span

// span is a window, in milliseconds.
type span struct{ startMS, endMS int64 }

// newestMax bounds the topics that are known, some megabytes of them.
const newestMax = 1 << 16

// retains reports whether a feature's message is the one to be kept.
func (n newest) retains(m *Message) bool {
	at, known := n[m.Topic]
	if known && m.window.startMS < at.startMS {
		return false
	}
	if !known && len(n) >= newestMax {
		n.forget()
	}
	n[m.Topic] = m.window
	return true
}

// forget drops the half whose windows ended first. They are of sensors and features
// that have fallen silent or are no more: what came before those windows is closed, so
// that no correction of it is still to come.
func (n newest) forget() {
	ends := make([]int64, 0, len(n))
	for at := range maps.Values(n) {
		ends = append(ends, at.endMS)
	}
	slices.Sort(ends)
	middle, over := ends[len(ends)/2], len(n)-newestMax/2
	for topic, at := range n {
		if at.endMS < middle || at.endMS == middle && over > 0 {
			delete(n, topic)
			over--
		}
	}
}
