package reading

// Level is the coarse quality of a reading. The zero Level is good, since a
// source without quality has said nothing against its values.
type Level uint8

const (
	Good Level = iota
	Uncertain
	Bad
)

// String returns good, uncertain or bad.
func (l Level) String() string { return [...]string{"good", "uncertain", "bad"}[min(l, Bad)] }

// ParseLevel is the inverse of String.
func ParseLevel(s string) (Level, bool) {
	for l := Good; l <= Bad; l++ {
		if l.String() == s {
			return l, true
		}
	}
	return Good, false
}

// Quality is a level with the source's own status code, kept as sent (OPC UA
// Part 4 §7.39 for OPC UA sources, 0 where there is none).
type Quality struct {
	Level  Level
	Status uint32
}
