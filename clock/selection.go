package clock

import "slices"

// candidate is one server's word: the true time minus the gateway's lies within
// theta ± lambda, if the server is right.
type candidate struct{ thetaNS, lambdaNS int64 }

// intersection is the outcome of a vote among servers.
type intersection struct {
	ok     bool
	lo, hi int64 // of (true − gateway), if ok
	// False has the index of each server whose midpoint lies outside [lo, hi].
	false []int
}

// edge is an end (-1 lower, +1 upper) or the midpoint (0) of an interval.
type edge struct {
	at  int64
	typ int
}

// intersect is the selection of RFC 5905 §11.2.1 (as in its appendix A.5.5.1):
// the smallest interval that at least n − f of n servers share, for the smallest
// f below n/2, with no more than f midpoints outside. Touching intervals share
// nothing: lo < hi.
func intersect(c []candidate) intersection {
	edges := make([]edge, 0, 3*len(c))
	for _, s := range c {
		edges = append(edges, edge{s.thetaNS - s.lambdaNS, -1}, edge{s.thetaNS, 0}, edge{s.thetaNS + s.lambdaNS, 1})
	}
	slices.SortFunc(edges, func(a, b edge) int {
		if a.at != b.at {
			if a.at < b.at {
				return -1
			}
			return 1
		}
		return a.typ - b.typ
	})
	for allow := 0; 2*allow < len(c); allow++ {
		need := len(c) - allow
		lo, below, okLo := scan(edges, need, -1)
		slices.Reverse(edges)
		hi, above, okHi := scan(edges, need, 1)
		slices.Reverse(edges)
		if okLo && okHi && below+above <= allow && lo < hi {
			return intersection{ok: true, lo: lo, hi: hi, false: outside(c, lo, hi)}
		}
	}
	return intersection{}
}

// intersectWider is intersect, and where that fails a second try with distances
// doubled. The midpoint test refuses honest servers whose paths are asymmetric: a
// liar and one such server among four would be no majority for ever. Wider
// intervals still hold the truth wherever the narrow ones do, so the result is as
// safe, only less tight.
func intersectWider(c []candidate) intersection {
	if in := intersect(c); in.ok {
		return in
	}
	wide := make([]candidate, len(c))
	for i, s := range c {
		wide[i] = candidate{s.thetaNS, add(s.lambdaNS, s.lambdaNS)}
	}
	return intersect(wide)
}

// scan walks the edges until need intervals overlap, counting the midpoints that
// it passes. opens is the type of edge that opens an interval in the direction
// of the walk.
func scan(edges []edge, need, opens int) (at int64, midpoints int, ok bool) {
	depth := 0
	for _, e := range edges {
		switch e.typ {
		case 0:
			midpoints++
		case opens:
			if depth++; depth >= need {
				return e.at, midpoints, true
			}
		default:
			depth--
		}
	}
	return 0, midpoints, false
}

func outside(c []candidate, lo, hi int64) []int {
	var out []int
	for i, s := range c {
		if s.thetaNS < lo || s.thetaNS > hi {
			out = append(out, i)
		}
	}
	return out
}
