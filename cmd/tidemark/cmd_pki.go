package main

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"tidemark/clock"
	"tidemark/configs"
	"tidemark/gateway"
	"tidemark/internal/pki"
)

// pkiFlags say whose certificates a command is about.
type pkiFlags struct{ file, dir string }

func (f *pkiFlags) add(cmd *cobra.Command) {
	cmd.PersistentFlags().StringVarP(&f.file, "config", "c", configs.ServiceFile, "configuration `FILE` of the gateway")
	cmd.PersistentFlags().StringVar(&f.dir, "dir", "", "directory of the certificates, instead of the one that the configuration says")
}

// open returns the store, and what the gateway would have itself called in a
// certificate that is made.
func (f *pkiFlags) open() (*pki.Store, *configs.Config, error) {
	cfg, err := configs.Load(f.file)
	switch {
	case f.dir != "":
		return pki.At(f.dir), cfg, nil
	case err != nil:
		return nil, nil, &exitError{exitUsage, err}
	}
	return pki.At(cfg.PKI.Dir.String()), cfg, nil
}

func newPKICmd() *cobra.Command {
	var of pkiFlags
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "pki",
		Short: "Show and decide which OPC UA servers are trusted",
		Long: `Show the gateway's own certificate for OPC UA, the servers' certificates that it
trusts, and those that it has refused. A certificate counts from the moment that it
is trusted: the gateway need not be restarted.

Compare the thumbprint with the one that the server shows, on another way than the
network, before you trust a certificate.`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				return chooseCommand(cmd, args)
			}
			store, _, err := of.open()
			if err != nil {
				return err
			}
			list, err := certificates(store)
			if err != nil && list == nil {
				return runtimeError(err)
			}
			if asJSON {
				return runtimeError(errors.Join(printJSON(cmd.OutOrStdout(), list), err))
			}
			return runtimeError(errors.Join(printCertificates(cmd.OutOrStdout(), store.Dir(), list, clock.HostTime()), err))
		},
		SuggestionsMinimumDistance: 2,
	}
	of.add(cmd)
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	cmd.AddCommand(
		newPKIMoveCmd(&of, "trust THUMBPRINT|FILE", "Trust a certificate that was refused, or one in a file",
			`Trust a certificate that was refused, named by at least six digits of its
thumbprint, or one in a file, PEM or DER. An authority's certificate stands for all
that it has issued and not revoked (lists go into trusted/crl).`,
			(*pki.Store).Trust, "trusted: %s\n"),
		newPKIMoveCmd(&of, "reject THUMBPRINT", "Trust a certificate no longer",
			`Trust a certificate no longer. A connection that stands goes on until it breaks.`,
			(*pki.Store).Reject, "no longer trusted: %s\n"),
		newPKIExportCmd(&of), newPKIRenewCmd(&of))
	return cmd
}

// certificate is one as it is shown.
type certificate struct {
	Place       string   `json:"place"` // own, trusted, issuers, rejected
	Subject     string   `json:"subject"`
	Thumbprint  string   `json:"thumbprint"`  // SHA-1, as OPC UA tools show it
	Fingerprint string   `json:"fingerprint"` // SHA-256
	URI         string   `json:"uri"`
	Hosts       []string `json:"hosts"`
	Authority   bool     `json:"authority"`
	NotBefore   string   `json:"not_before"`
	NotAfter    string   `json:"not_after"`
	File        string   `json:"file,omitempty"`

	ends time.Time
}

// certificates lists all of a store. The error is about files that cannot be read.
func certificates(store *pki.Store) ([]certificate, error) {
	list := []certificate{}
	own, ownErr := store.Own()
	if own != nil {
		list = append(list, describe("own", "", own.Certificate))
	}
	entries, err := store.Entries(pki.Trusted, pki.Issuer, pki.Rejected)
	for _, e := range entries {
		list = append(list, describe(string(e.Place), e.File, e.Certificate))
	}
	return list, errors.Join(ownErr, err)
}

func describe(place, file string, c *x509.Certificate) certificate {
	d := certificate{
		Place: place, Subject: c.Subject.String(), Thumbprint: pki.Thumbprint(c), Fingerprint: pki.Fingerprint(c),
		Hosts: append([]string{}, c.DNSNames...), Authority: c.IsCA, File: file, ends: c.NotAfter,
		NotBefore: c.NotBefore.UTC().Format(time.RFC3339), NotAfter: c.NotAfter.UTC().Format(time.RFC3339),
	}
	for _, ip := range c.IPAddresses {
		d.Hosts = append(d.Hosts, ip.String())
	}
	if len(c.URIs) > 0 {
		d.URI = c.URIs[0].String()
	}
	return d
}

func newPKIMoveCmd(of *pkiFlags, use, short, long string, move func(*pki.Store, string) (*x509.Certificate, error), done string) *cobra.Command {
	return &cobra.Command{
		Use: use, Short: short, Long: long, Args: exactly(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, _, err := of.open()
			if err != nil {
				return err
			}
			c, err := move(store, args[0])
			if err != nil {
				return runtimeError(err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), done, c.Subject)
			return runtimeError(err)
		},
	}
}

func newPKIExportCmd(of *pkiFlags) *cobra.Command {
	var der bool
	cmd := &cobra.Command{
		Use:   "export",
		Short: "Print the gateway's own certificate, for a server to trust",
		Long: `Print the gateway's own certificate as PEM, or with --der as most OPC UA servers want
it, and make it if there is none yet.`,
		Example: `  tidemark pki export --der > gateway.der`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, cfg, err := of.open()
			if err != nil {
				return err
			}
			own, err := store.Own()
			if own == nil && err == nil {
				own, err = makeOwn(store, cfg, of.file)
			}
			if err != nil {
				return runtimeError(err)
			}
			if der {
				_, err := cmd.OutOrStdout().Write(own.Certificate.Raw)
				return runtimeError(err)
			}
			return runtimeError(pem.Encode(cmd.OutOrStdout(), &pem.Block{Type: "CERTIFICATE", Bytes: own.Certificate.Raw}))
		},
	}
	cmd.Flags().BoolVar(&der, "der", false, "print it as DER, which is binary")
	return cmd
}

func newPKIRenewCmd(of *pkiFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "renew",
		Short: "Make the gateway a new certificate",
		Long: `Make the gateway a new certificate in place of the one that it has. It is shown to
servers from the next connection on, and they have to be told to trust it.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, cfg, err := of.open()
			if err != nil {
				return err
			}
			own, err := makeOwn(store, cfg, of.file)
			if err != nil {
				return runtimeError(err)
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "made: %s, thumbprint %s, valid until %s\n",
				own.Certificate.Subject, pki.Thumbprint(own.Certificate), own.Certificate.NotAfter.Format(time.DateOnly))
			return runtimeError(err)
		},
	}
}

// makeOwn makes the certificate as the gateway itself would.
func makeOwn(store *pki.Store, cfg *configs.Config, file string) (*pki.Identity, error) {
	if cfg == nil {
		return nil, fmt.Errorf("a certificate names the gateway: its configuration is needed, and %s cannot be read", file)
	}
	own, err := store.Make(gateway.Application(cfg), clock.HostTime().UnixNano())
	if errors.Is(err, os.ErrPermission) {
		err = fmt.Errorf("%w: run it as the user that the gateway runs as, and it can read the key", err)
	}
	return own, err
}
