package opcua

import (
	"sync/atomic"

	"tidemark/reading"
)

// points is the list of nodes for those who ask; Run's goroutine renews it when
// somebody has asked, the server watches more or fewer of them, or a value turned out
// to have parts.
type points struct {
	list   []reading.Point // under the reader's lock
	wanted atomic.Bool
}

// Tags lists the nodes as the configuration chose them at the last look: what they
// are called, and why those that are not read are not. It may be a moment old.
func (r *Reader) Tags() []reading.Point {
	r.points.wanted.Store(true)
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.points.list
}

// listPoints makes the list anew.
func (r *Reader) listPoints() []reading.Point {
	list := make([]reading.Point, 0, len(r.plan)+len(r.unresolved))
	for _, m := range r.plan {
		p := reading.Point{Series: m.series, Address: m.place, Unit: m.unit, Problem: m.failed}
		if len(m.parts) == 0 {
			list = append(list, p)
		}
		for i := range m.parts {
			p.Series, p.Path = m.parts[i].tags.First().Value(), m.parts[i].path
			list = append(list, p)
		}
	}
	for _, u := range r.unresolved {
		if !u.served {
			list = append(list, reading.Point{Series: reading.Series{Input: r.cfg.Input}, Address: u.place, Problem: u.detail})
		}
	}
	return list
}
