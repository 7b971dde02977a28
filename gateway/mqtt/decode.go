package mqtt

import (
	"strconv"
	"strings"
	"time"
	"unsafe"

	"github.com/tidwall/gjson"

	"tidemark/reading"
)

// Instant is the gateway's clock at one moment.
type Instant struct {
	WallNS  int64                 // Unix
	BootNS  int64                 // on a line that no step of the wall clock moves
	BoundNS int64                 // error of WallNS; -1: none known
	Segment *reading.ClockSegment // never changed once shared; nil: none
}

// Message is a publish as it came.
type Message struct {
	Topic   []byte
	Payload []byte
	Retain  bool    // the state of things at the subscription
	Dup     bool    // sent before and not acknowledged
	At      Instant // of arrival
}

// Limits of a message, so that a hostile one costs bounded time and memory.
const (
	maxDepth      = 512     // levels of nesting
	depthUnproven = 2 << 10 // bytes below which nesting cannot hurt
	maxName       = 1 << 10 // bytes of a name or an id
	maxExcerpt    = 256     // bytes of a payload that are kept as evidence
	maxDetailed   = 16      // rejects of one message that are described
	spillAt       = 1 << 10 // readings and rejects of a parcel before spill
	maxUnits      = 1 << 10 // different units that are remembered
)

// Decoder turns messages into readings. It is not safe for concurrent use.
type Decoder struct {
	router *router
	zone   *time.Location // of times that name none; nil: UTC
	units  recent[string, string]

	boundNS int64 // of the clock at the last message
	bound   reading.Bound

	// Of the message at hand.
	msg      *Message
	out      *reading.Parcel
	spill    func()
	route    *route
	root     gjson.Result
	around   [metaSlots]gjson.Result // the message's own fields, once looked up
	looked   bool
	rejected int
	slots    []gjson.Result // of the element at hand
	raw      string         // of the element at hand
}

// NewDecoder prepares a decoder for the subscriptions of cfg. Its error names the
// topic and the remedy.
func NewDecoder(cfg Config) (*Decoder, error) {
	r, err := newRouter(cfg)
	if err != nil {
		return nil, err
	}
	n := fixedSlots
	for _, s := range r.subs {
		n = max(n, fixedSlots+len(s.Sensors))
	}
	return &Decoder{zone: cfg.Zone, router: r, boundNS: -1, units: recent[string, string]{max: maxUnits}, slots: make([]gjson.Result, n)}, nil
}

// Decode appends what m holds to out: a reading for each value, and a reject for
// whatever is none. One bad element does not stop the others. Nothing of m is
// kept. spill, if not nil, is called between elements when out has grown large;
// it may take and empty out.
func (d *Decoder) Decode(m *Message, out *reading.Parcel, spill func()) {
	d.msg, d.out, d.spill, d.rejected, d.looked = m, out, spill, 0, false
	if m.At.BoundNS != d.boundNS {
		d.boundNS, d.bound = m.At.BoundNS, reading.MakeBound(m.At.BoundNS)
	}
	d.raw = view(m.Payload)
	d.route = d.router.route(view(m.Topic))
	if d.route == nil {
		d.reject(reading.Unmatched, "topic_unmatched", "no subscription is for this topic; if it is an earlier one's, the broker's session still has it", "")
		return
	}
	if d.parse() {
		d.message()
	}
	d.msg, d.out, d.spill, d.root, d.raw = nil, nil, nil, gjson.Result{}, ""
	clear(d.slots)
	clear(d.around[:])
}

// TooLarge appends the reject of a message of size bytes that was not read;
// m.Payload is its beginning.
func (d *Decoder) TooLarge(m *Message, size, limit int, out *reading.Parcel) {
	out.Rejects = append(out.Rejects, reading.Reject{Kind: reading.Malformed, Reason: "too_large",
		Detail: "payload of " + strconv.Itoa(size) + " bytes is above max_payload, " + strconv.Itoa(limit) + "; send smaller messages or raise it",
		Place:  string(m.Topic), Excerpt: excerpt(view(m.Payload)), IngestNS: m.At.WallNS})
}

// view is b as a string that lives no longer than b stays unchanged.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// parse checks that the payload is JSON, of bounded depth.
func (d *Decoder) parse() bool {
	switch {
	case len(d.raw) == 0:
		d.reject(reading.Malformed, "empty_payload", "the payload is empty, as when a retained message is deleted", "")
		return false
	case len(d.raw) > depthUnproven && depth(d.raw) > maxDepth:
		d.reject(reading.Malformed, "too_deep", "nested deeper than "+strconv.Itoa(maxDepth)+" levels", "")
		return false
	}
	if !gjson.Valid(d.raw) {
		mended, ok := mendNumbers(d.raw)
		if !ok || !gjson.Valid(mended) {
			d.reject(reading.Malformed, "not_json", "the payload is no JSON; send JSON, or declare another format", "")
			return false
		}
		d.raw = mended
	}
	d.root = gjson.Parse(d.raw)
	return true
}

// depth returns how deep brackets are nested, those in strings not counted.
func depth(s string) int {
	now, most := 0, 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '{', '[':
			now++
			most = max(most, now)
		case '}', ']':
			now--
		case '"':
			for i++; i < len(s) && s[i] != '"'; i++ {
				if s[i] == '\\' {
					i++
				}
			}
		}
	}
	return most
}

// mendNumbers quotes the NaN and Infinity that some encoders write where JSON has
// no number, so that the rest of the message is not lost for it.
func mendNumbers(s string) (string, bool) {
	var b strings.Builder
	from := 0
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			for i++; i < len(s) && s[i] != '"'; i++ {
				if s[i] == '\\' {
					i++
				}
			}
		case 'N', 'I', '-':
			if n := nonFiniteToken(s[i:]); n > 0 {
				b.WriteString(s[from:i])
				b.WriteString(`"` + s[i:i+n] + `"`)
				from = i + n
				i += n - 1
			}
		}
	}
	if from == 0 {
		return "", false
	}
	b.WriteString(s[from:])
	return b.String(), true
}

func nonFiniteToken(s string) int {
	for _, t := range [...]string{"NaN", "Infinity", "-Infinity", "-NaN"} {
		if strings.HasPrefix(s, t) {
			return len(t)
		}
	}
	return 0
}

// message goes over the elements of the message at hand.
func (d *Decoder) message() {
	sub := d.route.sub
	if sub.Each == "" {
		d.element(d.root, -1, "")
		return
	}
	each := d.root
	if sub.Each != "@this" {
		each = d.root.Get(sub.Each)
	}
	switch {
	case each.IsArray():
	case each.IsObject() && sub.naming == byKey:
	case each.IsObject():
		d.element(each, -1, "")
		return
	case !each.Exists():
		d.reject(reading.Malformed, "field_missing", "there is nothing at each, "+sub.Each, "")
		return
	default:
		d.reject(reading.Malformed, "not_an_array", "what is at each, "+sub.Each+", is neither array nor object", "")
		return
	}
	i := 0
	each.ForEach(func(key, value gjson.Result) bool {
		if d.spill != nil && len(d.out.Readings)+len(d.out.Rejects) >= spillAt {
			d.spill()
		}
		d.element(value, i, key.Str)
		i++
		return true
	})
}

// reject appends a reject of the element at hand.
func (d *Decoder) reject(kind reading.RejectKind, code, detail, id string) {
	r := reading.Reject{Kind: kind, Reason: code, ID: id, IngestNS: d.msg.At.WallNS}
	if d.route != nil {
		r.Place = d.route.topic
	} else {
		r.Place = string(d.msg.Topic)
	}
	if d.rejected++; d.rejected <= maxDetailed {
		r.Detail = "topic " + r.Place + ": " + detail
		r.Excerpt = excerpt(d.raw)
	}
	d.out.Rejects = append(d.out.Rejects, r)
}

func excerpt(s string) []byte { return []byte(s[:min(len(s), maxExcerpt)]) }
