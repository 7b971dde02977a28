package configs

import (
	"crypto/sha256"
	"encoding/hex"
)

// Config is a whole configuration, resolved and checked. Treat it as read-only.
type Config struct {
	Gateway  Gateway  `yaml:"gateway"`
	Clock    Clock    `yaml:"clock"`
	Store    Store    `yaml:"store"`
	PKI      PKI      `yaml:"pki"`
	Web      Web      `yaml:"web"`
	Limits   Limits   `yaml:"limits"`
	Inputs   []Input  `yaml:"inputs"`
	Assets   []Asset  `yaml:"assets"` // a mapping by name in the file; in the file's order here
	Defaults Defaults `yaml:"defaults"`
	// Features is never empty unless the file says `features: []`: without the
	// key there is one feature named default over every number (defaultFeature).
	Features []Feature `yaml:"features"`
	Uplinks  []Uplink  `yaml:"uplinks"`

	// Disabled names the features that were left out for their faults.
	Disabled []DisabledFeature `yaml:"-"`
	// Notices are no faults: defaults that matter, and trust that was declared.
	Notices []Notice `yaml:"-"`

	file   string
	text   string
	places places
	stands []int // where each feature stands in the file; nil: all as they are here
}

// FaultOfVersion is a fault of c.Features[i], where its version stands.
func (c *Config) FaultOfVersion(i int, reason string) Fault {
	if c.stands != nil {
		i = c.stands[i]
	}
	return c.faultAt(at("features", i)+".version", reason)
}

// FaultOfStore is a fault of what stands at store.path.
func (c *Config) FaultOfStore(reason string) Fault { return c.faultAt("store.path", reason) }

func (c *Config) faultAt(path, reason string) Fault {
	at := c.places.of(path)
	return Fault{File: c.file, Line: at.line, Column: at.column, Reason: reason}
}

// File returns the name of the file that the configuration was read from.
func (c *Config) File() string { return c.file }

// Text returns what stands in the file.
func (c *Config) Text() string { return c.text }

// Hash returns the first 8 hex digits of the SHA-256 of the file's text: two
// gateways that show the same run the same file.
func (c *Config) Hash() string {
	sum := sha256.Sum256([]byte(c.text))
	return hex.EncodeToString(sum[:4])
}

// Gateway is who we are.
type Gateway struct {
	// ID is part of every record's key and of every topic. Default: the host's
	// name, with a notice.
	ID string `yaml:"id"`
}

// Trust is on what grounds the gateway's own clock is believed.
type Trust string

// The grounds for trust.
const (
	TrustChecked Trust = "checked" // NTP servers or the host's daemon prove it
	TrustLocal   Trust = "local"   // taken as it is, state unknown on every reading: benches
)

// Clock is how the gateway checks its own clock (SEMANTICS part 2).
type Clock struct {
	// Servers are NTP servers, host or host:port. Never a public default.
	Servers []string `yaml:"servers"`
	Trust   Trust    `yaml:"trust"`
	// LocalBound is the error bound that readings get under TrustLocal.
	LocalBound Duration `yaml:"local_bound"`
	// PollMin and PollMax bound the time between two queries of one server; never
	// below 15 s (RFC 4330 §10).
	PollMin Duration `yaml:"poll_min"`
	PollMax Duration `yaml:"poll_max"`
}

// WhenFull is what happens when the store has reached its quota.
type WhenFull string

// The policies at the quota.
const (
	DropOldestRaw WhenFull = "drop_oldest_raw" // the oldest readings go, with loss evidence
	HoldSources   WhenFull = "hold_sources"    // sources are no longer acknowledged
)

// PKI is the gateway's certificate for OPC UA, and whose certificates it trusts.
type PKI struct {
	Dir Path `yaml:"dir"` // see `tidemark pki`; default: pki, beside the store
}

// Store is where readings are kept and how often they are written.
type Store struct {
	Path     Path     `yaml:"path"`
	Quota    Bytes    `yaml:"quota"`  // upper bound of the file
	Retain   Duration `yaml:"retain"` // how long readings and evidence are kept
	WhenFull WhenFull `yaml:"when_full"`

	// A commit happens after CommitInterval or CommitBytes, or when a source has
	// run out of in-flight window, but never within CommitMinGap of the last.
	CommitInterval Duration `yaml:"commit_interval"`
	CommitBytes    Bytes    `yaml:"commit_bytes"`
	CommitMinGap   Duration `yaml:"commit_min_gap"`
	// DailyBudget is how much may be written to the device in a day, as a token
	// bucket that holds an hour's worth; 0 is no budget.
	DailyBudget Bytes `yaml:"daily_budget"`
}

// Web is the local page.
type Web struct {
	// Listen is a loopback host:port; empty switches the page off.
	Listen string `yaml:"listen"`
	// Token is what whoever looks from another machine must know. Without one
	// Listen is on the loopback interface.
	Token Secret `yaml:"token"`
}

// Limits bound the engine's state.
type Limits struct {
	MaxOpenWindows int `yaml:"max_open_windows"` // beyond it the oldest fire and close, cause state_limit
	// ForgetAfter is how long a partition may be silent before it is forgotten.
	ForgetAfter Duration `yaml:"forget_after"`
	// DuplicateHorizon is how long identities outlive their last window, in
	// watermark time (SEMANTICS D3).
	DuplicateHorizon Duration `yaml:"duplicate_horizon"`
	// CatchupMax is how long a source may take to bring what it kept while its
	// watermark stands still for it; 0: it does not.
	CatchupMax Duration `yaml:"catchup_max"`
}

// Asset is what is known of a machine besides its name.
type Asset struct {
	Name string `yaml:",key"`
	// Lifecycles are the specimens that stood in the asset's place, in order of
	// From; by source time. A lifecycle in the payload takes precedence.
	Lifecycles []Lifecycle `yaml:"lifecycles"`
	// Aliases maps a sensor's former name to the one in use.
	Aliases map[string]string `yaml:"aliases"`
}

// Lifecycle is one physical specimen and since when it is in place.
type Lifecycle struct {
	ID   string `yaml:"id,required"`
	From Time   `yaml:"from"` // reading.NoTime: since ever
}

// Defaults are the values of features that do not say otherwise.
type Defaults struct {
	Window          Duration `yaml:"window"`
	OutOfOrderness  Duration `yaml:"out_of_orderness"`
	AllowedLateness Duration `yaml:"allowed_lateness"`
	IdleAfter       Duration `yaml:"idle_after"` // 0: a silent partition holds the watermark for ever
	CorrectEvery    Duration `yaml:"correct_every"`
	FlushAfter      Duration `yaml:"flush_after"`       // 0: never
	MaxWatermarkLag Duration `yaml:"max_watermark_lag"` // 0: none is ever stalled
	Functions       []string `yaml:"functions"`
}

// Scope is which partitions share a watermark (SEMANTICS C0).
type Scope string

// The scopes.
const (
	ScopeInput  Scope = "input"
	ScopeDevice Scope = "device"
	ScopeSensor Scope = "sensor"
)

// QualityPolicy is which readings enter the statistics.
type QualityPolicy string

// The quality policies. Bad readings never enter.
const (
	QualityAll      QualityPolicy = "all"       // good and uncertain
	QualityGoodOnly QualityPolicy = "good_only" // uncertain ones are counted and left out
)

// Feature is one window definition. All durations are resolved; Every is never 0.
type Feature struct {
	Name    string `yaml:"name,required"`
	Version int    `yaml:"version"` // to be raised with any change of the definition
	Select  Select `yaml:"select"`
	Scope   Scope  `yaml:"scope"`
	// Group, if not empty, makes one feature over all selected sensors; it stands
	// where the sensor's name does.
	Group string `yaml:"group"`
	// GroupPerAsset makes one such feature of each asset and lifecycle.
	GroupPerAsset bool          `yaml:"group_per_asset"`
	Functions     []string      `yaml:"functions"`
	Hold          Hold          `yaml:"hold"`
	Quality       QualityPolicy `yaml:"quality"`
	EmitEmpty     bool          `yaml:"emit_empty"` // results for windows of known keys without readings

	Window          Duration `yaml:"window"`
	Every           Duration `yaml:"every"`  // below Window: hopping windows
	Offset          Duration `yaml:"offset"` // of the window's start from the epoch; |offset| < window
	OutOfOrderness  Duration `yaml:"out_of_orderness"`
	AllowedLateness Duration `yaml:"allowed_lateness"`
	IdleAfter       Duration `yaml:"idle_after"`
	CorrectEvery    Duration `yaml:"correct_every"`
	FlushAfter      Duration `yaml:"flush_after"`
	MaxWatermarkLag Duration `yaml:"max_watermark_lag"`

	definition, tuning uint32
	spec               string
}

// Select is which readings a feature takes: all of the given conditions hold. An
// empty one holds for every reading.
type Select struct {
	Input  Pattern   `yaml:"input"`
	Asset  Pattern   `yaml:"asset"`
	Sensor Patterns  `yaml:"sensor"`
	Type   ValueType `yaml:"type"`
}

// Hold lets a sensor's last value stand until the next one (SEMANTICS H1).
type Hold struct {
	Max Duration `yaml:"max"` // how long at most; 0: no hold
}

// ValueType is what kind of value a sensor has. The zero value is any.
type ValueType string

// The value types.
const (
	TypeNumber ValueType = "number"
	TypeBool   ValueType = "bool"
	TypeText   ValueType = "text"
)

// Uplink is a broker that gets the records.
type Uplink struct {
	Name    string     `yaml:"name,required"`
	MQTT    UplinkMQTT `yaml:"mqtt,required"`
	Prefix  string     `yaml:"prefix"` // first levels of every topic, may contain slashes
	Publish Publish    `yaml:"publish"`
	// Records are the types that are sent; none is all of them.
	Records []RecordType `yaml:"records"`
	// Raw is which readings are sent too: those that any of these takes.
	Raw     []Select `yaml:"raw"`
	Retain  bool     `yaml:"retain"` // the broker keeps each topic's newest feature
	Batch   int      `yaml:"batch"`  // records to a message at most; 0: one, on its own topic
	Backlog Backlog  `yaml:"backlog"`
}

// UplinkMQTT is how to reach an uplink's broker.
type UplinkMQTT struct {
	URL      URL    `yaml:"url,required"`
	ClientID string `yaml:"client_id"` // default tidemark-{gateway}-up-{uplink}
	TLS      TLS    `yaml:"tls"`
	Login    Login  `yaml:"login"`
}

// Publish is which results of a window are sent.
type Publish string

// What is published of a window.
const (
	PublishAll   Publish = "all"
	PublishFinal Publish = "final" // one record per window, at its closing
)

// RecordType is a type of records that an uplink sends.
type RecordType string

// The types of records.
const (
	RecordFeature    RecordType = "feature"
	RecordClosed     RecordType = "closed"
	RecordLate       RecordType = "late"
	RecordQuarantine RecordType = "quarantine"
	RecordEvent      RecordType = "event"
	RecordDefinition RecordType = "definition"
)

// Order is in which order a backlog is sent.
type Order string

// The orders of a backlog.
const (
	LiveFirst Order = "live_first" // new windows first, the backlog beside them
	InOrder   Order = "in_order"
)

// Backlog is how records that waited are sent.
type Backlog struct {
	Order Order `yaml:"order"`
	Rate  int   `yaml:"rate"` // records a second; 0 is no limit
}

// DisabledFeature is a feature that was left out, and why.
type DisabledFeature struct {
	Name   string // empty if the fault is in the name
	Faults Faults
}
