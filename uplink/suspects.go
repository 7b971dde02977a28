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

	lossSeq uint64 // first unanswered record at the last loss of a connection
	losses  int    // in a row with that record

	doubtSeq uint64 // record that was alone in flight, or refused
	doubts   int
}

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
	if first.Seq == 0 || !said && !broker.HungUp(err) {
		return Record{}, false
	}
	if s.lossSeq != first.Seq {
		s.lossSeq, s.losses = first.Seq, 0
	}
	s.losses++
	s.cautious = said || s.losses >= maxLosses
	if waiting > 1 || !s.cautious {
		return Record{}, false
	}
	return first, said && judge(code) == setAside || s.doubted(first.Seq)
}

// doubted counts failures of one record alone and reports whether they are
// enough.
func (s *suspects) doubted(seq uint64) bool {
	if s.doubtSeq != seq {
		s.doubtSeq, s.doubts = seq, 0
	}
	s.doubts++
	return s.doubts >= maxDoubts
}

// probation reports whether the connection must prove good before that record is
// sent.
func (s *suspects) probation(seq uint64) bool { return s.cautious && s.doubts > 0 && s.doubtSeq == seq }

// blame returns the code with which a broker ended the connection because of a
// packet.
func blame(err error) (code broker.Code, ok bool) {
	var a *broker.Answer
	if errors.As(err, &a) && blamesPacket(a.Code) {
		return a.Code, true
	}
	return 0, false
}
