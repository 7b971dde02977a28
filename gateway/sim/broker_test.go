package sim_test

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"tidemark/gateway/sim"
)

// Clients that come while it closes are let in or turned away, and nothing else.
func TestClientsComeWhileItCloses(t *testing.T) {
	for i := range 4 {
		b, err := sim.NewBroker()
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- b.Run(ctx) }()
		var clients sync.WaitGroup
		for range 8 {
			clients.Go(func() {
				for {
					c, err := net.Dial("tcp", b.Addr())
					if err != nil {
						return // it is closed
					}
					_ = c.SetDeadline(time.Now().Add(20 * time.Millisecond))
					_, _ = c.Read(make([]byte, 1)) // says nothing for a while
					c.Close()
				}
			})
		}
		time.AfterFunc(time.Duration(i)*7*time.Millisecond, stop)
		if err := <-ended; err != nil {
			t.Error(err)
		}
		clients.Wait()
	}
}
