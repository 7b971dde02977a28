package clock

import (
	"cmp"
	"slices"
)

// candidate is one server's word: the true time minus the gateway's lies within
// theta ± lambda, if the server is right.
type candidate struct{ thetaNS, lambdaNS int64 }

// intersection is the outcome of a vote among servers.
type intersection struct {
	ok     bool
	lo, hi int64 // of (true − gateway), if ok
	false  []int // the index of each server that is outvoted
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
	edges := edgesOf(c)
	for allow := 0; 2*allow < len(c); allow++ {
		lo, hi, midpoints, ok := span(edges, len(c)-allow)
		if ok && midpoints <= allow {
			return intersection{ok: true, lo: lo, hi: hi, false: outside(c, lo, hi)}
		}
	}
	return intersection{}
}

// agree is intersect, with two changes to the careful side.
//
// The result is all that half of the servers cover: with half of them false or fewer,
// the others cover the truth (Marzullo and Owicki 1983), so it is in there. What RFC
// 5905 selects, a server that is a little off can cut short.
//
// Where the midpoint test fails, more than half that share a point are a majority,
// with distances doubled, and only who reaches none of these points is false. A server
// vouches for its interval, not for its middle, and a busy CPU that holds up answers
// on one way moves the middles of honest servers.
func agree(c []candidate) intersection {
	in := intersect(c)
	edges := edgesOf(c)
	if !in.ok {
		wide := make([]candidate, len(c))
		for i, s := range c {
			wide[i] = candidate{s.thetaNS, add(s.lambdaNS, s.lambdaNS)}
		}
		edges = edgesOf(wide)
		first, last, _, ok := span(edges, len(c)/2+1)
		if !ok {
			return in
		}
		in.ok = true
		for i, s := range wide {
			if s.thetaNS+s.lambdaNS < first || s.thetaNS-s.lambdaNS > last {
				in.false = append(in.false, i)
			}
		}
	}
	in.lo, in.hi, _, _ = span(edges, (len(c)+1)/2)
	return in
}

// edgesOf returns the ends and midpoints of all intervals in ascending order.
func edgesOf(c []candidate) []edge {
	edges := make([]edge, 0, 3*len(c))
	for _, s := range c {
		edges = append(edges, edge{s.thetaNS - s.lambdaNS, -1}, edge{s.thetaNS, 0}, edge{s.thetaNS + s.lambdaNS, 1})
	}
	slices.SortFunc(edges, func(a, b edge) int { return cmp.Or(cmp.Compare(a.at, b.at), a.typ-b.typ) })
	return edges
}

// span returns the first and last point that need intervals share, and how many
// midpoints lie outside. It is false if there are none, or only one.
func span(edges []edge, need int) (lo, hi int64, midpoints int, ok bool) {
	lo, below, okLo := scan(edges, need, -1)
	slices.Reverse(edges)
	hi, above, okHi := scan(edges, need, 1)
	slices.Reverse(edges)
	return lo, hi, below + above, okLo && okHi && lo < hi
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
