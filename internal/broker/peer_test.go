package broker_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"tidemark/internal/broker"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func parse(t *testing.T, text string) *url.URL {
	t.Helper()
	u, err := url.Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func at(t *testing.T, text string, conf func() (*tls.Config, error), wall time.Time) *broker.Peer {
	t.Helper()
	p, err := broker.At(parse(t, text), conf, wall.UnixNano)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestDefaultPorts(t *testing.T) {
	for text, want := range map[string]string{
		"mqtt://h": "h:1883", "mqtts://h": "h:8883", "ws://h/x": "h:80", "wss://h": "h:443",
		"mqtt://h:7": "h:7", "mqtts://[::1]": "[::1]:8883", "ws://[::1]:9/x": "[::1]:9",
	} {
		if p := at(t, text, nil, time.Now()); p.Addr() != want || p.URL().Host != want {
			t.Errorf("%s: %s, %s", text, p.Addr(), p.URL())
		}
	}
}

func TestAtRefuses(t *testing.T) {
	if _, err := broker.At(nil, nil, nil); err == nil || !strings.Contains(err.Error(), "write one such as") {
		t.Errorf("no URL: %v", err)
	}
	for text, want := range map[string]string{
		"http://h": `scheme "http" is none of`, "h:1": "is none of", "mqtt://:1883": "names no host", "mqtt://a:secret@h": "belong under login",
	} {
		if _, err := broker.At(parse(t, text), nil, nil); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// What fails is a sentence that names the broker, and keeps its cause.
func TestUnreachable(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ln.Close()
	p := at(t, "mqtt://"+ln.Addr().String(), nil, time.Now())
	_, err = p.Dial(t.Context())
	want := fmt.Sprintf("the connection to %s cannot be made: connect: connection refused; is the broker there?", p.Addr())
	if got := p.Unreachable(err).Error(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if got := p.Unreachable(fmt.Errorf("paho: %w", context.DeadlineExceeded)).Error(); !strings.HasSuffix(got, "no answer in time; is that a broker that speaks MQTT 5?") {
		t.Error(got)
	}
	missing := errors.New("cannot read credential")
	p = at(t, "mqtts://h", func() (*tls.Config, error) { return nil, missing }, time.Now())
	_, err = p.Dial(t.Context())
	if err = p.Unreachable(err); !errors.Is(err, missing) || err.Error() != "the connection to h:8883 cannot be made: cannot read credential" {
		t.Errorf("got %v", err)
	}
	if err = p.Broke(io.EOF); !broker.HungUp(err) || err.Error() != "the connection to h:8883 broke: EOF" {
		t.Errorf("got %v", err)
	}
}

// Certificates are judged by the time that is given, and one that is not valid yet
// accuses the clock.
func TestCertificateByTheGivenClock(t *testing.T) {
	srv := httptest.NewTLSServer(http.NotFoundHandler())
	defer srv.Close()
	cert := srv.Certificate()
	trusting := func() (*tls.Config, error) {
		pool := x509.NewCertPool()
		pool.AddCert(cert)
		return &tls.Config{RootCAs: pool}, nil
	}
	for _, scheme := range []string{"mqtts", "wss"} {
		dial := func(wall time.Time) error {
			p := at(t, scheme+"://"+srv.Listener.Addr().String(), trusting, wall)
			c, err := p.Dial(t.Context())
			if err != nil {
				return p.Unreachable(err)
			}
			return c.Close()
		}
		var clock *broker.ClockError
		err := dial(cert.NotBefore.Add(-time.Minute))
		if !errors.As(err, &clock) || !clock.ValidFrom.Equal(cert.NotBefore) || !strings.Contains(err.Error(), "1969-12-31T23:59:00Z") {
			t.Errorf("%s, too early: %v", scheme, err)
		}
		if err = dial(cert.NotAfter.Add(time.Minute)); errors.As(err, &clock) || !strings.Contains(err.Error(), "expired") {
			t.Errorf("%s, too late: %v", scheme, err)
		}
		switch err = dial(cert.NotBefore.Add(time.Minute)); scheme {
		case "mqtts":
			if err != nil {
				t.Errorf("%s: %v", scheme, err)
			}
		case "wss": // a web server, but not where the URL says
			if err == nil || !strings.Contains(err.Error(), "404 Not Found") {
				t.Errorf("%s: %v", scheme, err)
			}
		}
	}
}

func TestAnswers(t *testing.T) {
	p := at(t, "mqtt://h", nil, time.Now())
	for _, c := range []struct {
		err  error
		want string
	}{
		{p.Refused(broker.BadLogin, ""), "the broker at h:1883 refuses the connection: bad user name or password (0x86); set login"},
		{p.Refused(0x9D, broker.Words("", "b")), "the broker at h:1883 refuses the connection: server moved (0x9D): it names b; set url to the broker that is meant; no redirection is followed"},
		{p.Ended(broker.PacketTooLarge, broker.Words("too much", "")), "the broker at h:1883 ended the connection: packet too large (0x95): too much; raise its maximum packet size (mosquitto: max_packet_size)"},
		{p.Refused(0x9C, broker.Words("full", "b:1")), "the broker at h:1883 refuses the connection: use another server (0x9C): full, and it names b:1; set url to the broker that is meant; no redirection is followed"},
		{p.Ended(broker.TakenOver, ""), "the broker at h:1883 ended the connection: session taken over (0x8E); another client uses this client id, give each its own"},
		{p.Ended(0xB0, ""), "the broker at h:1883 ended the connection: reason 0xB0"},
	} {
		if got := c.err.Error(); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}
