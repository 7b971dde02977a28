package configs

import (
	"slices"
	"strings"

	"tidemark/reading"
)

// Input is one source of readings: exactly one of MQTT and OPCUA is set.
type Input struct {
	Name       string     `yaml:"name,required"`
	MQTT       *MQTTInput `yaml:"mqtt"`
	OPCUA      *OPCUA     `yaml:"opcua"`
	Timestamps Timestamps `yaml:"timestamps"`
	// Identity is how repeated readings are recognised (SEMANTICS D1).
	Identity Identity `yaml:"identity"`
}

// shared reports whether other gateways take some of the input's messages.
func (in *Input) shared() bool {
	return in.MQTT != nil && slices.ContainsFunc(in.MQTT.Subscribe, func(s Subscribe) bool { return s.Share != "" })
}

// Identity is whether an input's repeated readings are recognised.
type Identity string

// The identities.
const (
	IdentityAuto Identity = "auto" // by id, else sequence, else time and value
	IdentityNone Identity = "none"
)

// TimeUse is which time decides a reading's window.
type TimeUse string

// The times to use.
const (
	UseSource TimeUse = "source"
	UseServer TimeUse = "server" // OPC UA only
	UseIngest TimeUse = "ingest" // arrival at the gateway: for sources without a clock
)

// Timestamps is how an input's times are judged.
type Timestamps struct {
	Use TimeUse `yaml:"use"`
	// WhenWrong is what happens to a time that a rule speaks against.
	WhenWrong reading.Policy `yaml:"when_wrong"`
	// Ordered declares that times of one sensor never run backward, so that a
	// regression of more than 1 s is a fault.
	Ordered bool `yaml:"ordered"`
	// Zone is that of times which name none.
	Zone      Zone     `yaml:"zone"`
	MaxAhead  Duration `yaml:"max_ahead"`  // further in the future is FUTURE
	MaxBehind Duration `yaml:"max_behind"` // further in the past, unless historical, is TOO_OLD
	MaxDelay  Duration `yaml:"max_delay"`  // from the source to the gateway, when live (SEMANTICS D_cap)
}

// MQTTInput is a subscription to devices on a broker, MQTT 5.
type MQTTInput struct {
	URL      URL    `yaml:"url,required"` // mqtt, mqtts, ws or wss
	ClientID string `yaml:"client_id"`    // names the session; default tidemark-{gateway}-in-{input}
	TLS      TLS    `yaml:"tls"`
	Login    Login  `yaml:"login"`
	// ReceiveMaximum is how many messages may wait for our acknowledgement.
	ReceiveMaximum int `yaml:"receive_maximum"`
	// KeepAlive is how long a silent connection goes unproven.
	KeepAlive Duration `yaml:"keep_alive"`
	// SessionExpiry is how long the broker keeps the session, and in it what comes
	// while we are away.
	SessionExpiry Duration `yaml:"session_expiry"`
	// MaxPayload is the size above which a payload is refused unread.
	MaxPayload Bytes `yaml:"max_payload"`
	// MaxSeries is how many different sensors there may be; readings of any further
	// one are refused, counted and reported.
	MaxSeries int `yaml:"max_series"`

	Subscribe []Subscribe `yaml:"subscribe,required"`
	Presence  []Presence  `yaml:"presence"`
	// SparkplugHost is the id of the Sparkplug host application that this input is;
	// empty: none.
	SparkplugHost string `yaml:"sparkplug_host"`
}

// Presence is a topic that says whether a device is there: where its last will
// goes, or its heartbeat. A message that says that the device is gone idles it at
// once; any other proves it alive (SEMANTICS I4, I7).
type Presence struct {
	// Topic is as Subscribe's. It names {device}, unless Device does, or {asset} and
	// {sensor}.
	Topic  string   `yaml:"topic,required"`
	QoS    int      `yaml:"qos"`
	Device string   `yaml:"device"`
	Path   string   `yaml:"path"` // of the state in a JSON payload; empty: the payload is it
	Gone   []string `yaml:"gone"` // the states that mean gone
}

// TLS is how to prove both ends of a connection. The zero TLS trusts the host's
// authorities and shows no certificate.
type TLS struct {
	CA   Path   `yaml:"ca"`   // PEM; empty: the host's authorities
	Cert Path   `yaml:"cert"` // PEM, our own
	Key  Secret `yaml:"key"`  // PEM, of Cert
}

// Login is a user and how to come by the password.
type Login struct {
	User     string `yaml:"user"`
	Password Secret `yaml:"password"`
}

// Format is how a payload is written.
type Format string

// The payload formats.
const (
	FormatJSON      Format = "json"
	FormatPlain     Format = "plain"     // the payload is the value
	FormatCSV       Format = "csv"       // lines with columns
	FormatInflux    Format = "influx"    // InfluxDB line protocol
	FormatSenML     Format = "senml"     // RFC 8428
	FormatSparkplug Format = "sparkplug" // Eclipse Sparkplug B
)

// CSV is how lines are written.
type CSV struct {
	Columns   []string `yaml:"columns"` // in order; none: the first line of each payload names them
	Separator string   `yaml:"separator"`
}

// Waveform says that values are arrays of samples, evenly spaced from the
// element's time on: by Rate, samples a second, or by Step, the time between two.
type Waveform struct {
	Rate Origin    `yaml:"rate"` // a number, or the path of one
	Step TimeField `yaml:"step"`
}

// Subscribe is one topic filter and what its payloads mean. In JSON, paths are
// gjson paths; with Each they are looked up in the array's element first, then in
// the whole message. Elsewhere they are the names of columns, tags and fields.
type Subscribe struct {
	// Topic is an MQTT filter in which a level may also be {asset}, {device},
	// {sensor} or {lifecycle}: it matches like + and names that part.
	Topic  string `yaml:"topic,required"`
	QoS    int    `yaml:"qos"`   // 0 to 2; only 1 and 2 are kept by the broker until we have them
	Share  string `yaml:"share"` // group of a shared subscription; empty: not shared
	Format Format `yaml:"format"`
	// Gzip: payloads that begin as gzip are unpacked.
	Gzip bool `yaml:"gzip"`
	CSV  CSV  `yaml:"csv"`
	// Waveform, if not nil: values are arrays of samples.
	Waveform *Waveform `yaml:"waveform"`
	// Each is the path of an array of readings; "@this" where the payload is the
	// array. Empty: the payload is one object.
	// An object there has a member per reading.
	Each string `yaml:"each"`

	Time    TimeField    `yaml:"time"`
	ID      Field        `yaml:"id"`  // event id; with Each the element's index is added (SEMANTICS D1)
	Seq     Field        `yaml:"seq"` // sequence number of the source
	Quality QualityField `yaml:"quality"`

	// Who it is of, where the topic does not say so.
	Asset     Origin `yaml:"asset"`
	Device    Origin `yaml:"device"`
	Lifecycle Origin `yaml:"lifecycle"`

	// Payloads that name the sensor: Sensor says where, Value where its value is.
	// With {sensor} in the topic, or an object at Each, whose keys are the names
	// then, Value stands alone. If Sensors are given too, only those are taken, and
	// their Path is empty.
	Sensor Origin     `yaml:"sensor"`
	Value  ValueField `yaml:"value"`
	// Payloads with a field per sensor: a mapping by name in the file.
	Sensors []Sensor `yaml:"sensors"`
}

// namesSensors reports whether topic or payload name the sensor, so that Value
// holds; else every sensor has a field of its own.
func (s *Subscribe) namesSensors() bool {
	if s.Sensor.Given() || slices.Contains(strings.Split(s.Topic, "/"), "{sensor}") {
		return true
	}
	switch s.Format {
	case FormatSenML, FormatSparkplug:
		return true
	case FormatCSV, FormatInflux:
		return len(s.Sensors) == 0
	}
	return s.Each != "" && (len(s.Sensors) == 0 || s.Value.Path != "")
}

// Field is a place in the payload.
type Field struct {
	Path string `yaml:"path,required"`
}

// TimeField is the place of the source time; the zero TimeField is none.
type TimeField struct {
	Path string `yaml:"path"` // Influx has none
	// Unit is that of a number since 1970; reading.UnitNone (rfc3339 in the file)
	// declares text.
	Unit reading.TimeUnit `yaml:"unit"`
}

// QualityField is the place of the quality and what its values mean. Without Map
// the values are good, uncertain and bad; a value that is not known is uncertain.
type QualityField struct {
	Path string                   `yaml:"path,required"`
	Map  map[string]reading.Level `yaml:"map"`
}

// ValueField is the place of the value where the sensor is named elsewhere, and
// what holds for every sensor unless Sensors say otherwise.
type ValueField struct {
	Path string    `yaml:"path"` // empty: the payload or element is the value
	Type ValueType `yaml:"type"` // empty: any
	// Unit is UCUM, or the path of a field with it.
	Unit Origin `yaml:"unit"`
	// Map is as a Sensor's.
	Map map[string]string `yaml:"map"`
}

// Origin is a name that is read from the payload ({path: …}) or written out (a
// plain word). The zero Origin is none.
type Origin struct {
	Path string
	Text string
}

// Given reports whether there is an origin.
func (o Origin) Given() bool { return o != Origin{} }

// Sensor is what is known of one sensor. value = raw·Scale + Offset.
type Sensor struct {
	Name string    `yaml:",key"`
	Path string    `yaml:"path"` // default: the sensor's name
	Unit string    `yaml:"unit"` // UCUM; empty: as Value says
	Type ValueType `yaml:"type"`
	// Map gives what values as sent mean, as Type says; one that is not in it stands
	// for itself. It goes before Scale.
	Map map[string]string `yaml:"map"`
	// Range, if not nil, is the span of possible values after scaling, ends
	// included; a value outside is bad.
	Range  *Range  `yaml:"range"`
	Scale  float64 `yaml:"scale"`
	Offset float64 `yaml:"offset"`
	// ExpectEvery is how often a reading is expected; 0: not known, and coverage
	// has no ratio.
	ExpectEvery Duration `yaml:"expect_every"`
	// AlarmAfter is how long the sensor may say nothing while its input is alive
	// before a silent record says so; 0: for ever.
	AlarmAfter Duration `yaml:"alarm_after"`
}

// Range is a closed interval, [low, high] in the file.
type Range struct{ Low, High float64 }

// OPCUA is a connection to an OPC UA server.
type OPCUA struct {
	Endpoint URL      `yaml:"endpoint,required"` // opc.tcp
	Security Security `yaml:"security"`
	// CertificateHost is what the server's certificate calls its host, where it is
	// reached by another name. AllowExpired goes on with one whose time is over.
	CertificateHost string `yaml:"certificate_host"`
	AllowExpired    bool   `yaml:"allow_expired"`

	Login      OPCUALogin `yaml:"login"` // neither user nor certificate: anonymous
	Sampling   Duration   `yaml:"sampling"`
	Publishing Duration   `yaml:"publishing"`
	Backfill   Backfill   `yaml:"backfill"`
	Nodes      []Nodes    `yaml:"nodes,required"`
}

// OPCUALogin is a user with a password, or a user's certificate.
type OPCUALogin struct {
	User     string `yaml:"user"`
	Password Secret `yaml:"password"`
	Cert     Path   `yaml:"cert"` // PEM or DER
	Key      Secret `yaml:"key"`  // of Cert
}

// Security is a policy and a mode, such as Basic256Sha256/SignAndEncrypt, or
// none.
type Security string

// Backfill is how far an outage is filled from the server's history.
type Backfill struct {
	Max Duration `yaml:"max"` // 0: not at all
}

// Nodes is a rule that chooses nodes: Under with Match, or a file of Tags.
type Nodes struct {
	Under    string   `yaml:"under"`   // node id with namespace URI, such as nsu=URI;s=Line3, or browse path from the root, such as /Objects/Line3
	Match    string   `yaml:"match"`   // browse path below it, such as {asset}/{sensor}
	Asset    string   `yaml:"asset"`   // of all of them, where match names none
	Exclude  []string `yaml:"exclude"` // browse paths, * within a level, ** over levels
	Deadband Deadband `yaml:"deadband"`
	Trigger  Trigger  `yaml:"trigger"`
	NewTags  NewTags  `yaml:"new_tags"`
	Tags     Path     `yaml:"tags"` // CSV, see readTags

	list    []Tag
	listErr error
}

// TagList returns what the file of Tags had when the configuration was loaded. The
// error says what is wrong with the file, and is Faults where it is lines of it:
// those are left out of the list.
func (n *Nodes) TagList() ([]Tag, error) { return n.list, n.listErr }

// NewTags is what happens to nodes that appear later.
type NewTags string

// What happens to new tags.
const (
	NewTagsReport NewTags = "report"
	NewTagsAdd    NewTags = "add"
)

// Trigger is what must change for a server to send something.
type Trigger string

// The triggers, as OPC UA has them.
const (
	TriggerStatusValue          Trigger = "status_value"
	TriggerStatus               Trigger = "status"
	TriggerStatusValueTimestamp Trigger = "status_value_timestamp"
)

// Deadband is the change below which a server sends nothing; at most one is set.
type Deadband struct {
	Percent  float64 `yaml:"percent"` // of the node's EURange
	Absolute float64 `yaml:"absolute"`
}
