// Command tidemark is the gateway and everything that goes with it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/rs/zerolog"
)

func main() {
	zerolog.TimeFieldFormat = logTime // the library has one for the process
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends what does not heed the first
	leave := func() {}
	if !signal.Ignored(syscall.SIGHUP) { // nohup
		// A terminal that is closed ends a command as Ctrl-C does. Kernel and shell may
		// both say so: the second time changes nothing.
		ctx, leave = signal.NotifyContext(ctx, syscall.SIGHUP)
	}
	code := run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	leave()
	stop()
	os.Exit(code)
}
