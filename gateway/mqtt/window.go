package mqtt

import "time"

// window learns how many messages the broker sends before it waits for
// acknowledgements, which no packet says: mosquitto's default is 20. Knowing it,
// an immediate commit can be asked for the moment the broker stands still, instead
// of a commit interval later.
//
// It guesses from the same number of unacknowledged messages, after a time of
// quiet that an acknowledgement ends, several times in a row; and it doubts. A
// broker that waited sends at once when it may; a slow source does not. A source that happens to send
// bursts of that size looks alike, so now and then the request is held back for a
// moment, and if a further message comes the guess was wrong.
//
// window is pure. The zero window with a ceiling is ready.
type window struct {
	ceiling int // the Receive Maximum that we asked for: known
	limit   int // learnt; 0 is unknown

	held       int  // the count at an acknowledgement after quiet, until it is seen what follows
	last, same int  // the count at the last one that ended a quiet, and how often in a row
	wrong      int  // guesses that turned out so
	stalls     int  // since the guess
	probe      int  // the next stall at which to doubt
	waited     bool // at the limit for longer than a commit takes, until it is seen what follows
	proven     bool // the broker waited that long, and then sent at once
}

const (
	// stallQuiet is a silence that the broker's own pace does not explain.
	stallQuiet = 50 * time.Millisecond
	// stallEvidence is how often in a row the same count makes a guess; twice as
	// often after each wrong one.
	stallEvidence = 3
	// A guess is doubted at the stall firstProbe, and then four times as rarely
	// each time, for probeFor.
	firstProbe = 16
	probeFor   = 200 * time.Millisecond
	// smallWindow is below what a broker on the same machine should have.
	smallWindow = 100
)

// grown notes that n messages are unacknowledged now. It reports whether the
// broker waits for us, and how long to hold the request for a commit back.
func (w *window) grown(n int) (stalled bool, hold time.Duration) {
	if w.limit > 0 && n > w.limit {
		w.limit, w.last, w.same, w.proven = 0, 0, 0, false
		w.wrong++
	}
	switch {
	case n >= w.ceiling:
		return true, 0
	case n != w.limit:
		return false, 0
	}
	if w.stalls++; w.stalls == w.probe {
		w.probe *= 4
		return true, probeFor
	}
	return true, 0
}

// acknowledging notes that acknowledgements are about to go out while n messages
// are unacknowledged and the last one came quiet ago.
func (w *window) acknowledging(n int, quiet time.Duration) {
	w.held, w.waited = 0, n == w.limit && quiet >= probeFor
	if w.limit == 0 && n > 0 && n < w.ceiling && quiet >= stallQuiet {
		w.held = n
	}
}

// resumed notes that a message came, so long after acknowledgements last went
// out. If that is at once, the broker had waited for them.
func (w *window) resumed(after time.Duration) {
	n := w.held
	w.proven = w.proven || w.waited && after < stallQuiet
	w.held, w.waited = 0, false
	switch {
	case n == 0:
		return
	case after >= stallQuiet:
		w.last, w.same = 0, 0 // the source is slow, not the broker
		return
	case n != w.last:
		w.last, w.same = n, 0
	}
	if w.same++; w.same >= stallEvidence<<min(w.wrong, 10) {
		w.limit, w.stalls, w.probe = n, 0, firstProbe
	}
}

// small reports whether the window is known, beyond the first doubt, to be so
// small that it sets the pace. A source that sends again at every commit looks the
// same until a commit is late; one that is merely slow does not send at once after it.
func (w *window) small() bool {
	return w.limit > 0 && w.limit < smallWindow && w.stalls > firstProbe && w.proven
}
