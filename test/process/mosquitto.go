package process

import (
	"fmt"
	"net"
	"path/filepath"
	"testing"
	"time"
)

// Mosquitto is a broker on a loopback port. It keeps sessions and what waits in them
// over a stop.
type Mosquitto struct {
	*Process
	Addr string
}

// NewMosquitto starts a broker that lets everybody in and has no limits to speak of.
func NewMosquitto(t *testing.T) *Mosquitto {
	t.Helper()
	dir, port := Scratch(t), FreePort(t, "tcp")
	conf := filepath.Join(dir, "mosquitto.conf")
	Write(t, conf, fmt.Sprintf(`listener %d 127.0.0.1
allow_anonymous true
user root
max_inflight_messages 1000
max_queued_messages 0
persistence true
persistence_location %s/
log_type error
log_type warning
log_type notice
`, port, dir))
	b := &Mosquitto{Prepare(t, dir, "mosquitto", "-c", conf), Loopback(port)}
	b.Start()
	return b
}

// Start returns when clients can connect.
func (b *Mosquitto) Start() {
	b.T.Helper()
	b.Process.Start()
	Eventually(b.T, 10*time.Second, func() error {
		c, err := net.DialTimeout("tcp", b.Addr, time.Second)
		if err == nil {
			c.Close()
		}
		return err
	})
}

// URL is where clients find it.
func (b *Mosquitto) URL() string { return "mqtt://" + b.Addr }
