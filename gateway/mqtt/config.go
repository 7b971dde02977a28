package mqtt

import (
	"cmp"
	"crypto/tls"
	"errors"
	"fmt"
	"net/url"
	"time"

	"tidemark/reading"
)

// Config is one input: a broker and what to read there. The zero value of a
// field with a default means the default.
type Config struct {
	Input string // name of the input; stands in every reading
	// URL of the broker: mqtt, mqtts, ws or wss. Without a port 1883, 8883, 80 or
	// 443.
	URL *url.URL
	// ClientID names the session that the broker keeps for us; it must be stable,
	// and no other client may use it.
	ClientID string
	// TLS is asked at every connection with mqtts or wss, so that renewed files need
	// no restart; nil trusts the host's authorities and shows no certificate.
	// Certificates are judged by the Clock's wall time.
	TLS func() (*tls.Config, error)
	// Login gives user and password anew for each connection, so that a changed
	// secret needs no restart; nil: none.
	Login func() (user string, password []byte, err error)

	// KeepAlive is how long a silent connection goes unproven; default 30 s.
	KeepAlive time.Duration
	// SessionExpiry is how long the broker keeps the session, and with it what
	// arrives while we are away; default 24 h. Longer survives longer outages and
	// costs the broker the storage; its queue limits usually bind first.
	SessionExpiry time.Duration
	// ReceiveMaximum is how many messages may wait for our acknowledgement;
	// default 2048.
	ReceiveMaximum uint16
	// MaxPayload is the size in bytes above which a payload is rejected unread;
	// default 1 MiB.
	MaxPayload int
	// MaxSeries is how many different sensors the input may have; readings of any
	// further one are rejected. Default 20,000.
	MaxSeries int
	// CatchUpMax bounds how long a resumed session counts as catching up; 0: it does
	// not.
	CatchUpMax time.Duration

	// Zone is that of source times that name none; nil is UTC.
	Zone *time.Location

	// Subscriptions in order: a topic belongs to the first one that matches it.
	Subscriptions []Subscription
	// Presence are topics that say whether a device is there.
	Presence []Presence
	// SparkplugHost, if not empty, is the id of the Sparkplug host application as which
	// the gateway announces itself while it reads.
	SparkplugHost string
	// Memory is the last Parcel.Memory of this input that was committed; nil: none.
	Memory []byte
	// StaleFilters are topic filters that an earlier configuration subscribed to
	// under this client id (Reader.Filters of then). Those that are no longer
	// configured are unsubscribed.
	StaleFilters []string
	// Assets has what is known of machines by name.
	Assets map[string]reading.Asset

	// OnReconciled is called with the filters that the session has, once none of
	// StaleFilters is left in it. It must not block; nil: nobody asks.
	OnReconciled func(filters []string)
	// OnStall is called when the broker has stopped sending because it waits for
	// acknowledgements: an immediate commit is worth its cost. It must not block;
	// nil: nobody asks.
	OnStall func()
}

// Origin is a name written out (Text) or read from the payload (Path). The zero
// Origin is none.
type Origin struct{ Path, Text string }

// Given reports whether there is an origin.
func (o Origin) Given() bool { return o != Origin{} }

// Subscription is a topic filter and what its payloads mean. Paths are gjson paths
// in JSON, which except for values are looked up in the element first, then in the
// whole message; elsewhere they are the names of columns, tags and fields.
type Subscription struct {
	// Topic is an MQTT filter in which a level may also be {asset}, {device},
	// {sensor} or {lifecycle}: it matches like + and names that part.
	Topic string
	Share string // group of a shared subscription; empty: not shared
	QoS   byte

	Format    Format
	Gzip      bool     // payloads that begin as gzip are unpacked; MaxPayload bounds what comes out
	Columns   []string // of CSV, in order; nil: the first line of each payload names them
	Separator rune     // of CSV; 0 is a comma
	Waveform  *Waveform

	// Each is the path of an array of readings, or of an object with a member per
	// reading; "@this" is the payload itself. Empty: the payload is one element.
	Each string

	TimePath    string
	TimeUnit    reading.TimeUnit // of a number; UnitNone declares text
	IDPath      string           // event id; with Each the element's index is added
	SeqPath     string           // sequence number of the source
	QualityPath string
	// QualityMap gives the level of each value of the quality. Without it the
	// values are good, uncertain and bad, or true and false. A value that is not
	// known is uncertain.
	QualityMap map[string]reading.Level

	// Who it is of, where the topic does not say so.
	Asset, Device, Lifecycle Origin

	// Sensor says where the element names its sensor, and Value where the value
	// is; with {sensor} in the topic, or an object at Each, whose keys are the
	// names then, Value stands alone. If Sensors are given too, only those are
	// taken.
	Sensor Origin
	Value  Value
	// Sensors: without any of the above a field each, at its Path.
	Sensors []Sensor
}

// Value is the value of an element that holds one.
type Value struct {
	Path string // empty: the element itself
	Type Type
	Unit Origin            // UCUM
	Map  map[string]string // as of a Sensor
}

// Sensor is what is known of one sensor. value = raw·Scale + Offset.
type Sensor struct {
	Name string
	Path string // default: the name
	Unit string // UCUM; empty: as Value says
	Type Type
	// Map gives what values mean, as Type says; one that is not in it stands for
	// itself. It goes before Scale.
	Map map[string]string
	// Range, if not nil, is the span of possible values after scaling, ends
	// included; a value outside has bad quality.
	Range         *[2]float64
	Scale, Offset float64 // a Scale of 0 is 1
}

// Type is what kind of value a sensor has. The zero Type takes numbers, booleans
// and text as they come.
type Type uint8

const (
	AnyType Type = iota
	Number
	Bool
	Text
)

// String returns any, number, bool or text.
func (t Type) String() string { return [...]string{"any", "number", "bool", "text"}[min(t, Text)] }

func (c Config) withDefaults() Config {
	c.KeepAlive = cmp.Or(c.KeepAlive, 30*time.Second)
	c.SessionExpiry = cmp.Or(c.SessionExpiry, 24*time.Hour)
	c.ReceiveMaximum = cmp.Or(c.ReceiveMaximum, 2048)
	c.MaxPayload = cmp.Or(c.MaxPayload, 1<<20)
	c.MaxSeries = cmp.Or(c.MaxSeries, 20_000)
	return c
}

// validate returns what is wrong with a configuration with defaults.
func (c Config) validate() error {
	switch {
	case c.ClientID == "":
		return errors.New("client_id: the session needs a name")
	case len(c.Subscriptions) == 0:
		return errors.New("subscribe: nothing to subscribe to")
	case c.KeepAlive < time.Second || c.KeepAlive > 65535*time.Second:
		return fmt.Errorf("keep_alive: %v is outside 1s to 65535s", c.KeepAlive)
	case c.SessionExpiry < time.Second || c.SessionExpiry > 0xFFFFFFFE*time.Second:
		return fmt.Errorf("session_expiry: %v is outside 1s to 136 years; without a session nothing is kept while the gateway is away", c.SessionExpiry)
	case c.MaxPayload < 1 || c.MaxPayload > 256<<20:
		return fmt.Errorf("max_payload: %d is outside 1 to 268435456 bytes", c.MaxPayload)
	}
	return nil
}
