package opcua

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/gopcua/opcua/ua"

	"tidemark/internal/pki"
	"tidemark/reading"
)

// Config is one input: a server and what to read there. The zero value of a
// field with a default means the default.
type Config struct {
	Input    string   // name of the input; stands in every reading
	Endpoint *url.URL // opc.tcp://host:port/path; port 4840 if none is given

	// Security is a policy and a mode, such as Basic256Sha256/SignAndEncrypt, or
	// none, written out. Nothing weaker is ever used instead.
	Security string
	// Login gives user and password anew for each session, so that a changed secret
	// needs no restart; nil: anonymous, unless UserCertificate is given.
	Login func() (user string, password []byte, err error)
	// UserCertificate gives the certificate to log in with, anew for each session;
	// nil: none.
	UserCertificate func() (*pki.Identity, error)
	// Certificates decides which servers to believe, and has our own certificate;
	// made for Application when it is first needed.
	Certificates *pki.Store
	Application  pki.Subject
	// CertificateHost is the host that the server's certificate names; empty: that of
	// Endpoint.
	CertificateHost string
	// AllowExpired believes a server's certificate whose time is over; an alarm
	// remains.
	AllowExpired bool

	// Sampling is how often the server looks at a node (0: as fast as it can), and
	// Publishing how often it tells; default 1 s. The server may revise both.
	Sampling, Publishing time.Duration
	// Backfill is how far an outage is filled from the server's history; 0: not at
	// all.
	Backfill time.Duration
	// CatchUpMax bounds how long filling a gap holds the watermark; 0: it does not.
	CatchUpMax time.Duration

	Nodes []Nodes
	// Assets has what is known of machines by name.
	Assets map[string]reading.Asset

	// KnownTags is what an earlier Reader of this input gave to KeepTags; nil: none.
	KnownTags []byte
	// KeepTags is called with the list of resolved nodes when it has changed. It must
	// not block; nil: nobody keeps it, and new nodes cannot be told from known ones.
	KeepTags func(list []byte)

	// Memory is what an earlier Reader of this input last delivered as
	// reading.Parcel.Memory; nil: none.
	Memory []byte
	// OnStall is called when much of what the server sent waits for its commit: an
	// immediate one is worth its cost. It must not block; nil: nobody asks.
	OnStall func()
}

// Nodes is a rule that chooses nodes: Under with Match, or Tags. A node that
// several rules choose belongs to the first of them.
type Nodes struct {
	Under   string   // node id such as nsu=URI;s=Line3, or browse path such as /Objects/Line3
	Match   string   // browse path below it, such as {asset}/{sensor}
	Exclude []string // browse paths, * within a level, ** over levels
	Asset   string   // of every node below, where Match names none
	Tags    []Tag
	// Faults are nodes that the configuration names in a way that cannot be used.
	Faults []Unread
	// Deadband holds for every node of the rule that has none of its own.
	Deadband Deadband
	Trigger  Trigger // likewise
	// AddNew subscribes to nodes that appear later; else they are only reported.
	AddNew bool
}

// Tag is a node that is named by itself.
type Tag struct {
	Node     string // as Nodes.Under
	Asset    string
	Device   string
	Sensor   string    // empty: as the server calls the node
	Unit     string    // UCUM; empty: the server's
	Deadband *Deadband // nil: the rule's
	Trigger  Trigger
	Line     string // where it stands, as tags.csv:12
}

// Deadband is the change below which the server sends nothing; at most one field
// is set. The zero Deadband sends every change.
type Deadband struct {
	Percent  float64 // of the node's EURange
	Absolute float64
}

// Trigger is what must change for the server to send something (OPC UA Part 4
// §7.22.2). The zero Trigger is that of the rule, and in the end StatusValue.
type Trigger uint8

// The triggers.
const (
	StatusValue          Trigger = iota + 1 // the status or the value
	StatusOnly                              // the status
	StatusValueTimestamp                    // the status, the value or the source timestamp
)

func (c Config) withDefaults() Config {
	c.Publishing = cmp.Or(c.Publishing, time.Second)
	return c
}

// validate returns what is wrong with a configuration with defaults.
func (c Config) validate() error {
	switch {
	case c.Endpoint == nil || c.Endpoint.Scheme != "opc.tcp" || c.Endpoint.Hostname() == "":
		return errors.New("endpoint: it is written opc.tcp://host:port/path")
	case len(c.Nodes) == 0:
		return errors.New("nodes: nothing to read")
	case c.Publishing < 10*time.Millisecond:
		return fmt.Errorf("publishing: %v is below 10ms", c.Publishing)
	case c.Sampling < 0:
		return fmt.Errorf("sampling: %v is below 0s", c.Sampling)
	}
	for i := range c.Nodes {
		if c.Nodes[i].Under == "" {
			continue
		}
		if err := checkMatch(c.Nodes[i].Match); err != nil {
			return fmt.Errorf("nodes: %w", err)
		}
	}
	_, mode, err := parseSecurity(c.Security)
	if err == nil && mode > ua.MessageSecurityModeNone && c.Certificates == nil {
		err = errNoCertificates
	}
	return err
}
