package opcua

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"github.com/gopcua/opcua/ua"

	"tidemark/internal/pki"
)

// expiryNotice is how long before its end our own certificate is an alarm: servers
// must be told to trust the next one, which takes plants weeks.
const expiryNotice = 45 * 24 * time.Hour

// approach finds the endpoint, decides whether to believe the server, and gets
// ready what we show it. Certificates and secrets are looked at anew each time, so
// that trust and renewal need no restart.
func (r *Reader) approach(ctx context.Context) (*access, error) {
	policyURI, mode, err := parseSecurity(r.cfg.Security)
	if err != nil {
		return nil, err
	}
	all, err := discover(ctx, r.cfg.Endpoint, r.clk.Now)
	if err != nil {
		return nil, err
	}
	a := &access{url: r.cfg.Endpoint.String(), secured: secured{policyURI: policyURI, mode: mode, now: r.clk.Now}, application: r.cfg.Application.URI}
	if a.endpoint, err = selectEndpoint(all, policyURI, mode); err != nil {
		return nil, err
	}
	if err := r.authenticate(a); err != nil {
		return nil, err
	}
	return a, r.logIn(a)
}

// authenticate decides whether to believe the server, and takes our own
// certificate. Without security there is nobody to believe.
func (r *Reader) authenticate(a *access) (err error) {
	if a.secured.mode == ua.MessageSecurityModeNone {
		return nil
	}
	if r.cfg.Certificates == nil {
		return errNoCertificates
	}
	now := r.clk.Now()
	check := pki.Check{Host: cmp.Or(r.cfg.CertificateHost, r.cfg.Endpoint.Hostname()), AllowExpired: r.cfg.AllowExpired}
	if now.BoundNS >= 0 { // a clock that nobody vouches for accuses no certificate
		check.NowNS = now.WallNS
	}
	alarm, err := r.cfg.Certificates.Verify(a.endpoint.ServerCertificate, check)
	if err != nil {
		return &mistrust{err}
	}
	if alarm != "" {
		a.alarms = append(a.alarms, alarm)
	}
	a.secured.server = a.endpoint.ServerCertificate
	if a.secured.own, err = r.cfg.Certificates.Ensure(r.cfg.Application, now.WallNS); err != nil {
		return err
	}
	r.noteCertificates(a.secured)
	if left := a.secured.own.Certificate.NotAfter.Sub(time.Unix(0, now.WallNS)); check.NowNS != 0 && left < expiryNotice {
		a.alarms = append(a.alarms, fmt.Sprintf("the gateway's own certificate ends on %s: make the next one with tidemark pki renew, and have the servers trust it",
			a.secured.own.Certificate.NotAfter.Format(time.DateOnly)))
	}
	return nil
}

// noteCertificates puts into the status when the first of them ends.
func (r *Reader) noteCertificates(s secured) {
	end := s.own.Certificate.NotAfter
	if server, err := x509.ParseCertificate(leaf(s.server)); err == nil && server.NotAfter.Before(end) {
		end = server.NotAfter
	}
	r.mu.Lock()
	r.status.CertificateEndNS = end.UnixNano()
	r.mu.Unlock()
}

var errNoCertificates = errors.New("security: there is no directory of certificates")

// mistrust is our refusal of a server.
type mistrust struct{ error }

func (m *mistrust) Unwrap() error { return m.error }

var errExposed = errors.New("the password would cross the network readable: the connection is only signed, and the server wants it unencrypted; set security to one with SignAndEncrypt, or have the server want it encrypted")

// logIn chooses how to log in, and gets what for.
func (r *Reader) logIn(a *access) (err error) {
	if r.cfg.UserCertificate != nil {
		if a.login.cert, err = r.cfg.UserCertificate(); err != nil {
			return err
		}
	} else if r.cfg.Login != nil {
		if a.login.user, a.login.password, err = r.cfg.Login(); err != nil {
			return err
		}
	}
	if a.policy, err = tokenPolicy(a.endpoint, a.login.kind()); err != nil {
		return err
	}
	if exposed(a.endpoint, a.policy) {
		// Discovery is not secured: that the server asks for it so may be somebody
		// else's word. Who asked for signatures does not expect it.
		if a.endpoint.SecurityMode != ua.MessageSecurityModeNone {
			return &mistrust{errExposed}
		}
		a.alarms = append(a.alarms, "the password crosses the network readable: set security to what the server offers, or have it offer something")
	}
	return nil
}
