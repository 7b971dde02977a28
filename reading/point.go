package reading

// AnyName stands in a Point's Series for a name that its source decides, such as
// an {asset} in an MQTT topic.
const AnyName = "*"

// Point is where a reader expects readings to come from, whether or not any has
// come: a node, or a topic and a field of its payloads. Readers list theirs, so
// that a person sees what is silent beside what speaks.
type Point struct {
	// Series is what its readings are of. Lifecycle is not looked at. A Point of
	// which some names are AnyName stands for every series that has the others.
	Series
	Address string // the node, or the topic as configured, captures included
	Path    string // the field in the payload; empty where there is none
	Unit    string // as configured or as the source says; UCUM, empty when unknown
	Problem string // why nothing can come, and the remedy; empty when all is well
}

// Open reports whether the point stands for more than one series.
func (p *Point) Open() bool {
	return p.Asset == AnyName || p.Device == AnyName || p.Sensor == AnyName
}

// Covers reports whether readings of s come from the point.
func (p *Point) Covers(s Series) bool {
	return p.Input == s.Input && covers(p.Asset, s.Asset) && covers(p.Device, s.Device) && covers(p.Sensor, s.Sensor)
}

func covers(name, s string) bool { return name == AnyName || name == s }
