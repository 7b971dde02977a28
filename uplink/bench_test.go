package uplink_test

import (
	"context"
	"net/url"
	"os"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"tidemark/uplink"
	"tidemark/windowing"
)

func BenchmarkRender(b *testing.B) {
	for _, name := range []string{"feature", "closed", "late", "event_gap"} {
		b.Run(name, func(b *testing.B) {
			r := records()[name]
			var m uplink.Message
			b.ReportAllocs()
			for b.Loop() {
				if err := enc.Encode(&m, r); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(len(m.Payload)), "B/record")
		})
	}
}

func BenchmarkReplayLine(b *testing.B) {
	e := feature()
	var line []byte
	b.ReportAllocs()
	for b.Loop() {
		line = uplink.AppendReplay(line[:0], 1, &e)
	}
}

// BenchmarkThroughput publishes features to the broker at $UPLINK_BENCH_URL, else
// to an embedded one.
func BenchmarkThroughput(b *testing.B) {
	cfg := quick()
	cfg.URL = benchURL(b)
	e := feature()
	r := uplink.Record{Kind: uplink.KindEmission, Data: windowing.AppendEmission(nil, &e)}
	src := newOutbox()
	u, err := uplink.New(cfg, src, enc, zerolog.Nop())
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error)
	go func() { done <- u.Run(ctx) }()
	for u.Status().LastAckNS == 0 {
		time.Sleep(time.Millisecond)
	}
	const n = 10000
	b.ReportAllocs()
	for b.Loop() {
		recs := make([]uplink.Record, n)
		for i := range recs {
			recs[i] = r
		}
		src.add(recs...)
		for src.Waiting() > 0 {
			time.Sleep(100 * time.Microsecond)
		}
	}
	b.ReportMetric(float64(b.N)*n/b.Elapsed().Seconds(), "records/s")
	b.ReportMetric(float64(u.Status().ReceiveMax), "receive_max")
	cancel()
	if err := <-done; err != nil {
		b.Fatal(err)
	}
}

func benchURL(b *testing.B) *url.URL {
	text := os.Getenv("UPLINK_BENCH_URL")
	if text == "" {
		return startBroker(b, nil).url()
	}
	u, err := url.Parse(text)
	if err != nil {
		b.Fatal(err)
	}
	return u
}
