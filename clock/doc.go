// Package clock says how far a timestamp can be trusted: the gateway's own, and
// each source's.
//
// A Clock asks NTP servers and the host's own time daemon, keeps an error bound
// that grows until there is new evidence, and notices steps of the wall clock.
// Now gives both times of the gateway with that bound: the wall clock, for
// records, and gateway time, a duration line that a wall step never moves, for
// everything that waits. Only this package calls time.Now.
//
// JudgeReading rules on a reading's source time and fills its Stamp. The rule
// itself is Judge, a pure function of what is known (Given); the running gateway
// and `tidemark judge` use the same one. A gateway that cannot vouch for itself
// accuses nobody: relative verdicts need a bound of its own.
//
// The zero value of every trust here is unknown, and unknown is untrusted.
package clock
