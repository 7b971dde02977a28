package uplink

import (
	"errors"

	"tidemark/internal/broker"
)

// suspects looks for the record that makes a broker end the connection or refuse
// without a clear reason. Without it one such record would be sent for ever, and
// nothing behind it. A record is given up only on evidence that a bad network
// does not give: alone in flight, on a connection that had proved good, time and
// again.
type suspects struct {
	cautious bool // the next connection begins with one record at a time

	lossAt place // first unanswered record at the last loss of a connection
	losses int   // in a row with that record

	doubtAt place // record that was alone in flight, or refused
	doubts  int
}

// place names a record, whichever lane of the outbox it goes by.
type place struct {
	raw bool
	seq uint64
}

func (r *Record) place() place { return place{r.lane == Raw, r.Seq} }

const (
	maxLosses = 3 // with one record first in line, then the culprit is looked for
	maxDoubts = 5 // with one record alone, then it is given up
)

// lost judges the loss of a connection. It returns the record that is to be
// blamed, if one is found.
func (s *suspects) lost(err error, w *window) (culprit Record, found bool) {
	s.cautious = false
	waiting, first := w.unanswered()
	code, said := blame(err)
	if first.count == 0 || !said && !broker.HungUp(err) {
		return Record{}, false
	}
	if s.lossAt != first.first {
		s.lossAt, s.losses = first.first, 0
	}
	s.losses++
	s.cautious = said || s.losses >= maxLosses
	if waiting > 1 || first.count > 1 || !s.cautious {
		return Record{}, false
	}
	return first.last, said && judge(code) == setAside || s.doubted(&first.last)
}

// doubted counts failures of one record alone and reports whether they are
// enough.
func (s *suspects) doubted(r *Record) bool {
	if at := r.place(); s.doubtAt != at {
		s.doubtAt, s.doubts = at, 0
	}
	s.doubts++
	return s.doubts >= maxDoubts
}

// probation reports whether the connection must prove good before that record is
// sent.
func (s *suspects) probation(r *Record) bool {
	return s.cautious && s.doubts > 0 && s.doubtAt == r.place()
}

// blame returns the code with which a broker ended the connection because of a
// packet.
func blame(err error) (code broker.Code, ok bool) {
	var a *broker.Answer
	if errors.As(err, &a) && blamesPacket(a.Code) {
		return a.Code, true
	}
	return 0, false
}
