package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"
)

// certificateNotice is how long before its end a certificate is pointed out.
const certificateNotice = 45 * 24 * time.Hour

// printCertificates shows what is in a store of certificates.
func printCertificates(w io.Writer, dir string, list []certificate, now time.Time) error {
	b := &strings.Builder{}
	fmt.Fprintf(b, "certificates in %s\n", dir)
	for _, place := range []struct{ name, title, none string }{
		{"own", "own", "none yet: it is made at the first secured connection, or by tidemark pki export"},
		{"trusted", "trusted", "none: no server is believed yet"},
		{"issuers", "issuers", ""},
		{"rejected", "rejected", "none"},
	} {
		n := 0
		for i := range list {
			if list[i].Place != place.name {
				continue
			}
			if n++; n == 1 {
				fmt.Fprintf(b, "\n%s\n", place.title)
			}
			printCertificate(b, &list[i], now)
		}
		if n == 0 && place.none != "" {
			fmt.Fprintf(b, "\n%s\n  %s\n", place.title, place.none)
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func printCertificate(b *strings.Builder, c *certificate, now time.Time) {
	what := ""
	if c.Authority {
		what = " (an authority: stands for all that it issued)"
	}
	fmt.Fprintf(b, "  %s%s\n", c.Subject, what)
	fmt.Fprintf(b, "    thumbprint %s\n", c.Thumbprint)
	fmt.Fprintf(b, "    host %s, uri %s\n", cmp.Or(strings.Join(c.Hosts, ", "), "none"), cmp.Or(c.URI, "none"))
	note := ""
	switch left := c.ends.Sub(now); {
	case left < 0:
		note = ": expired"
	case left < certificateNotice:
		note = fmt.Sprintf(": %d days left", int(left.Hours()/24))
	}
	fmt.Fprintf(b, "    valid until %s%s\n", c.ends.UTC().Format(time.DateOnly), note)
	if c.Place == "rejected" {
		fmt.Fprintf(b, "    to trust it: tidemark pki trust %s\n", c.Thumbprint[:12])
	}
}
