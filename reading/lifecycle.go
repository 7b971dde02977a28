package reading

// Asset is what is known of a machine besides its name.
type Asset struct {
	// Lifecycles are the specimens that stood in the asset's place, in order of
	// FromNS. They hold for readings that name none.
	Lifecycles []Lifecycle
	Aliases    map[string]string // a sensor's former name to the one in use
}

// Lifecycle is one physical specimen and since when it is in place, by source
// time in Unix nanoseconds; NoTime: since ever.
type Lifecycle struct {
	ID     string
	FromNS int64
}

// Tags are those of one sensor over the lifecycles of its asset.
type Tags struct {
	first Tag // of the time before the first lifecycle
	later []lifecycleTag
}

type lifecycleTag struct {
	fromNS int64
	tag    Tag
}

// TagsOf returns the tags of a sensor whose asset had these lifecycles, which
// don't count if the series names one of its own.
func TagsOf(s Series, lives []Lifecycle) Tags {
	t := Tags{first: MakeTag(s)}
	if s.Lifecycle != "" {
		return t
	}
	for _, l := range lives {
		s.Lifecycle = l.ID
		t.later = append(t.later, lifecycleTag{l.FromNS, MakeTag(s)})
	}
	return t
}

// At returns the tag that holds at a source time in Unix nanoseconds.
func (t *Tags) At(ns int64) Tag {
	for i := len(t.later) - 1; i >= 0; i-- {
		if t.later[i].fromNS <= ns {
			return t.later[i].tag
		}
	}
	return t.first
}

// First returns the tag of the time before every lifecycle.
func (t *Tags) First() Tag { return t.first }
