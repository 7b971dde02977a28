package opcua

import (
	"errors"
	"fmt"
	"strings"

	"github.com/gopcua/opcua/ua"

	"tidemark/internal/pki"
)

// State is how the connection stands.
type State uint8

const (
	// Connecting: no attempt has ended yet.
	Connecting State = iota
	// Connected: every subscription speaks.
	Connected
	// Waiting: the server cannot be reached; attempts go on, further and further
	// apart.
	Waiting
	// Refused: the server answers and will not have us, or we will not have it;
	// attempts go on.
	Refused
	// Stopped: Run has ended.
	Stopped
)

// String returns connecting, connected, waiting, refused or stopped.
func (s State) String() string {
	return [...]string{"connecting", "connected", "waiting", "refused", "stopped"}[min(s, Stopped)]
}

// Status is how a reader stands. Counts are since its start.
type Status struct {
	Input  string
	Server string // the endpoint
	State  State
	// Problem is what is wrong and the remedy, empty when all is well. A reader
	// that is connected can have one too.
	Problem string

	Reconnects    uint64 // connections after the first
	Messages      uint64 // notifications
	Redelivered   uint64 // of these, those asked for again
	Readings      uint64 // that became of what came
	Historical    uint64 // of these, read from the server's history
	Gaps          uint64 // stretches that the server no longer had
	Rebuilt       uint64 // subscriptions made anew
	LastNS        int64  // wall time of the last sign of life; reading.NoTime: none
	CatchingUp    bool
	Outstanding   int // messages that wait for our acknowledgement
	Subscriptions int
	Monitored     int      // nodes that the server watches
	Unread        []Unread // nodes that it does not, and why
	// CertificateEndNS is when the server's certificate or our own ends, whichever is
	// first, Unix; reading.NoTime without security.
	CertificateEndNS int64
}

// Unread is a node that is configured and not read, or not as configured.
type Unread struct {
	Place  string `json:"place"`
	Reason string `json:"reason"`
}

// statusName returns the name that the specification gives a status code.
func statusName(s ua.StatusCode) string {
	if d, ok := ua.StatusCodes[s]; ok {
		return strings.TrimPrefix(d.Name, "Status")
	}
	return s.Error()
}

func (r *Reader) setState(s State, problem string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stand(s, problem)
}

// stand notes how the connection stands, and says once that the input is
// connected; what is wrong stands in the status, for whoever watches over the
// gateway to log. The lock is held.
func (r *Reader) stand(s State, problem string) {
	if s == Connected && r.status.State != Connected {
		if r.connected {
			r.status.Reconnects++
		}
		r.connected = true
		r.log.Info().Int("nodes", len(r.plan)).Int("subscriptions", len(r.byID)).Msg("the input is connected")
	}
	r.status.State, r.status.Problem = s, problem
}

// show brings the status of a connection up to date.
func (r *Reader) show() {
	var unread, remarks []Unread
	watched := 0
	for _, p := range r.unresolved {
		if p.served {
			remarks = append(remarks, Unread{p.place, p.detail})
		} else {
			unread = append(unread, Unread{p.place, p.detail})
		}
	}
	for _, m := range r.plan {
		if m.watched {
			watched++
		}
		if m.failed != "" {
			unread = append(unread, Unread{m.place, m.failed})
		} else if m.remark != "" {
			remarks = append(remarks, Unread{m.place, m.remark})
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.points.wanted.Swap(false) || r.points.list == nil || r.status.Monitored != watched {
		r.points.list = r.listPoints()
	}
	r.status.Subscriptions, r.status.Monitored, r.status.Unread = len(r.byID), watched, append(unread[:len(unread):len(unread)], remarks...)
	r.stand(Connected, r.problem(unread))
}

// problem is the worst that is wrong with a connection that stands.
func (r *Reader) problem(unread []Unread) string {
	for _, sub := range r.subs {
		if sub.id == 0 {
			return fmt.Sprintf("%d nodes are not watched: %s", len(r.part(sub)), sub.reason)
		}
	}
	if r.access != nil && len(r.access.alarms) > 0 {
		return r.access.alarms[0]
	}
	switch len(unread) {
	case 0:
		return ""
	case 1:
		return unread[0].Place + ": " + unread[0].Reason
	}
	return fmt.Sprintf("%d nodes are not read; the first, %s: %s", len(unread), unread[0].Place, unread[0].Reason)
}

// judgement says why there is no connection, and what to do.
func (r *Reader) judgement(err error) (State, string) {
	var distrust *mistrust
	switch {
	case errors.As(err, &distrust):
		return Refused, err.Error()
	case refusesOurs(err):
		return Refused, fmt.Sprintf("the server does not accept the gateway's certificate (%v): have it trust the one that tidemark pki export prints%s", err, r.ownThumbprint())
	case errors.Is(err, ua.StatusBadIdentityTokenRejected), errors.Is(err, ua.StatusBadUserAccessDenied), errors.Is(err, ua.StatusBadIdentityTokenInvalid):
		return Refused, fmt.Sprintf("the server refuses the login (%v): look at login, and at the user at the server", err)
	case errors.Is(err, ua.StatusBadTooManySessions):
		return Refused, fmt.Sprintf("the server has no session left (%v): end others, or raise its limit; sessions of a gateway that crashed end by themselves within %v", err, sessionTimeout)
	case isStatus(err):
		return Refused, "the server answers: " + err.Error()
	}
	return Waiting, err.Error()
}

// refusesOurs reports whether err is a server's refusal of our certificate. Most
// say no more than that security failed.
func refusesOurs(err error) bool {
	for _, s := range []ua.StatusCode{
		ua.StatusBadSecurityChecksFailed, ua.StatusBadCertificateUntrusted, ua.StatusBadCertificateInvalid,
		ua.StatusBadCertificateURIInvalid, ua.StatusBadCertificateTimeInvalid, ua.StatusBadCertificateUseNotAllowed,
	} {
		if errors.Is(err, s) {
			return true
		}
	}
	return false
}

func (r *Reader) ownThumbprint() string {
	if r.cfg.Certificates != nil {
		if own, err := r.cfg.Certificates.Own(); err == nil && own != nil {
			return ", thumbprint " + pki.Thumbprint(own.Certificate)
		}
	}
	return ""
}
