package sim

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net"
	"time"
)

// TimeServer is a simulated NTP server (RFC 5905, server mode only). What it
// serves is the now it was given, plus Offset and the drift since it began.
type TimeServer struct {
	Stratum  uint8         // 1 to 15; 16 says unsynchronized
	Offset   time.Duration // of its clock, positive is ahead
	DriftPPB int64         // growth of the offset, parts per billion
	Loss     float64       // share of queries that get no answer, 0 to 1
	Seed     uint64        // decides which queries are lost
	// Dispersion is how far off it says that its clock may be; less than 1 ms is 1 ms.
	Dispersion time.Duration

	conn net.PacketConn
	now  func() time.Time
}

// Listen binds a loopback port. The server answers once Run is called.
func (s *TimeServer) Listen(now func() time.Time) error {
	conn, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		return fmt.Errorf("cannot bind a port for a time server: %w", err)
	}
	s.conn, s.now = conn, now
	return nil
}

// Addr is host:port, valid after Listen.
func (s *TimeServer) Addr() string { return s.conn.LocalAddr().String() }

// Run answers queries until ctx ends, and closes the port.
func (s *TimeServer) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { s.conn.Close() })
	defer func() {
		stop()
		s.conn.Close()
	}()
	born := s.now()
	dice := rand.New(rand.NewPCG(s.Seed, uint64(s.Stratum)))
	query := make([]byte, 512)
	for {
		n, from, err := s.conn.ReadFrom(query)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return fmt.Errorf("time server on %s: %w", s.Addr(), err)
		}
		if n < ntpHeader || dice.Float64() < s.Loss {
			continue
		}
		now := s.now()
		drift := time.Duration(float64(now.Sub(born)) * float64(s.DriftPPB) / 1e9)
		// A client that went away is no fault of the server.
		_, _ = s.conn.WriteTo(answer(query[:n], s.Stratum, max(s.Dispersion, time.Millisecond), now.Add(s.Offset+drift)), from)
	}
}

// ntpHeader is the length of a packet without extensions (RFC 5905 §7.3).
const ntpHeader = 48

// answer replies to a query with the server's clock at now, which may be off by
// dispersion.
func answer(query []byte, stratum uint8, dispersion time.Duration, now time.Time) []byte {
	const (
		serverMode    = 4
		precision     = 0xec // 2^-20 s, about a microsecond, as a signed byte
		rootDelay     = 66   // 1 ms in 16.16 fixed point
		sinceLastSync = 30 * time.Second
	)
	p := make([]byte, ntpHeader)
	p[0] = query[0]&0x38 | serverMode // no leap, the client's version
	p[1] = stratum
	p[2] = query[2]
	p[3] = precision
	binary.BigEndian.PutUint32(p[4:], rootDelay)
	binary.BigEndian.PutUint32(p[8:], uint32(dispersion<<16/time.Second))
	copy(p[12:], reference(stratum))
	binary.BigEndian.PutUint64(p[16:], ntpTime(now.Add(-sinceLastSync)))
	copy(p[24:32], query[40:48])
	binary.BigEndian.PutUint64(p[32:], ntpTime(now))
	binary.BigEndian.PutUint64(p[40:], ntpTime(now))
	return p
}

// reference is the id of what the server itself follows: a receiver for stratum
// 1, the address of another server (TEST-NET-1) below.
func reference(stratum uint8) []byte {
	if stratum == 1 {
		return []byte("GPS\x00")
	}
	return []byte{192, 0, 2, stratum}
}

// ntpTime is t as seconds since 1900 modulo 2^32 in 32.32 fixed point.
func ntpTime(t time.Time) uint64 {
	const from1900To1970 = 2208988800
	return uint64(t.Unix()+from1900To1970)<<32 | uint64(t.Nanosecond())<<32/1e9
}
