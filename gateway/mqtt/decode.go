package mqtt

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"tidemark/reading"
)

// Message is a publish as it came.
type Message struct {
	Topic   []byte
	Payload []byte
	Retain  bool            // the state of things at the subscription
	Dup     bool            // sent before and not acknowledged
	At      reading.Instant // of arrival
}

// Limits of a message, so that a hostile one costs bounded time and memory.
const (
	maxTopic    = 1 << 10 // bytes of a topic: every one that was met is remembered
	maxName     = 1 << 10 // bytes of a name or an id
	maxExcerpt  = 256     // bytes of a payload that are kept as evidence
	maxDetailed = 16      // rejects of one message that are described
	spillAt     = 1 << 10 // readings and rejects of a parcel before spill
	maxUnits    = 1 << 10 // different units that are remembered
)

// format reads the payloads of one kind. It goes over the elements of the message
// at hand: for each it fills the slots, begins the element, and hands its values
// on by name or as fields.
type format interface{ read(*Decoder) }

// Decoder turns messages into readings. It is not safe for concurrent use.
type Decoder struct {
	router *router
	zone   *time.Location // of times that name none; nil: UTC
	units  recent[string, string]
	unpack unpacker

	boundNS int64 // of the clock at the last message
	bound   reading.Bound

	// Of the message at hand.
	msg      *Message
	out      *reading.Parcel
	spill    func()
	route    *route
	around   []field // what stands around the elements, if enclosed
	enclosed bool
	rejected int
	delivery reading.Delivery
	body     []byte // the payload, unpacked
	raw      string // of the element at hand

	// Of the element at hand.
	slots []field
	base  reading.Reading
	names *names
	own   names // what names points to, where the element names something itself
}

// noTime is the time of what the source gave none.
var noTime = reading.SourceTime{NS: reading.NoTime, Fault: reading.TimeNull}

// NewDecoder prepares a decoder for the subscriptions of cfg. Its error names the
// topic and the remedy.
func NewDecoder(cfg Config) (*Decoder, error) {
	cfg = cfg.withDefaults()
	r, err := newRouter(cfg)
	if err != nil {
		return nil, err
	}
	if err := r.edges.remember(cfg.Memory); err != nil {
		return nil, fmt.Errorf("what was remembered of births cannot be read: %w", err)
	}
	n := fixedSlots
	for _, s := range r.subs {
		n = max(n, fixedSlots+len(s.Sensors))
	}
	return &Decoder{zone: cfg.Zone, unpack: unpacker{limit: cfg.MaxPayload}, router: r, boundNS: -1, units: recent[string, string]{max: maxUnits},
		slots: make([]field, n), around: make([]field, metaSlots+1)}, nil
}

// Decode appends what m holds to out: a reading for each value, a mark for what it
// says of a device's presence, and a reject for whatever is none of these. One bad
// element does not stop the others. Nothing of m is kept. spill, if not nil, is
// called between elements when out has grown large; it may take and empty out.
func (d *Decoder) Decode(m *Message, out *reading.Parcel, spill func()) {
	d.msg, d.out, d.spill, d.rejected, d.enclosed = m, out, spill, 0, false
	if m.At.BoundNS != d.boundNS {
		d.boundNS, d.bound = m.At.BoundNS, reading.MakeBound(m.At.BoundNS)
	}
	d.body, d.raw = m.Payload, view(m.Payload)
	d.base = reading.Reading{
		Source: noTime, ServerNS: reading.NoTime, IngestNS: m.At.WallNS,
		Stamp: reading.Stamp{IngestBound: d.bound, Clock: m.At.Segment},
	}
	d.delivery = 0
	if m.Retain {
		d.delivery |= reading.Initial
	}
	if m.Dup {
		d.delivery |= reading.Redelivered
	}
	d.router.at(m.At.BootNS)
	d.route = nil
	if len(m.Topic) <= maxTopic {
		d.route = d.router.route(view(m.Topic))
	}
	switch {
	case len(m.Topic) > maxTopic:
		d.malformed("name_too_long", "the topic has "+strconv.Itoa(len(m.Topic))+" bytes, more than "+strconv.Itoa(maxTopic))
	case d.route == nil:
		d.reject(reading.Unmatched, "topic_unmatched", "no subscription is for this topic; if it is an earlier one's, the broker's session still has it", "")
	case d.route.sub == nil:
		d.present()
	case len(d.raw) == 0:
		d.malformed("empty_payload", "the payload is empty, as when a retained message is deleted")
	default:
		d.read()
	}
	d.msg, d.out, d.spill, d.body, d.raw = nil, nil, nil, nil, ""
	clear(d.slots)
	clear(d.around)
}

// read reads the payload of a subscription's message.
func (d *Decoder) read() {
	sub := d.route.sub
	if isGzip(d.body) && sub.Format != Sparkplug { // which begins otherwise, and packs in its own way
		if !sub.Gzip {
			d.malformed("compressed", "the payload is gzip; set gzip: true for this topic")
			return
		}
		body, ok := d.unpacked(d.unpack.unGzip(d.body))
		if !ok {
			return
		}
		d.body, d.raw = body, view(body)
	}
	sub.format.read(d)
}

// Memory is what must be written with the readings so far, for the Config of the
// next start; nil: nothing has changed.
func (d *Decoder) Memory() []byte { return d.router.edges.memory() }

// Rebirths returns the topics on which a Sparkplug edge node is to be asked to be
// born again, each once.
func (d *Decoder) Rebirths() []string {
	topics := d.router.edges.asking
	d.router.edges.asking = nil
	return topics
}

// TooLarge appends the reject of a message of size bytes that was not read;
// m.Payload is its beginning.
func (d *Decoder) TooLarge(m *Message, size, limit int, out *reading.Parcel) {
	out.Rejects = append(out.Rejects, reading.Reject{Kind: reading.Malformed, Reason: "too_large",
		Detail: "a message of " + strconv.Itoa(size) + " bytes is above max_payload, " + strconv.Itoa(limit) + "; send smaller messages or raise it",
		Place:  string(excerpt(view(m.Topic))), Excerpt: excerpt(view(m.Payload)), IngestNS: m.At.WallNS})
}

// view is b as a string that lives no longer than b stays unchanged.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// breathe lets a parcel go that has grown large.
func (d *Decoder) breathe() {
	if d.spill != nil && len(d.out.Readings)+len(d.out.Rejects) >= spillAt {
		d.spill()
	}
}

// extent is how much was made of a message.
type extent struct{ readings, rejects, rejected int }

func (d *Decoder) mark() extent {
	return extent{len(d.out.Readings), len(d.out.Rejects), d.rejected}
}

// rollback takes back what was made since.
func (d *Decoder) rollback(e extent) {
	clear(d.out.Readings[e.readings:])
	clear(d.out.Rejects[e.rejects:])
	d.out.Readings, d.out.Rejects, d.rejected = d.out.Readings[:e.readings], d.out.Rejects[:e.rejects], e.rejected
}

// clear returns empty slots for the next element.
func (d *Decoder) clear() []field {
	slots := d.slots[:fixedSlots+len(d.route.sub.Sensors)]
	clear(slots)
	return slots
}

// malformed rejects what cannot be read of the message at hand.
func (d *Decoder) malformed(code, detail string) { d.reject(reading.Malformed, code, detail, "") }

// reject appends a reject of the element at hand.
func (d *Decoder) reject(kind reading.RejectKind, code, detail, id string) {
	r := reading.Reject{Kind: kind, Reason: code, ID: id, IngestNS: d.msg.At.WallNS}
	if d.route != nil {
		r.Place = d.route.topic
	} else {
		r.Place = string(excerpt(view(d.msg.Topic)))
	}
	if d.rejected++; d.rejected <= maxDetailed {
		r.Detail = "topic " + r.Place + ": " + detail
		r.Excerpt = excerpt(d.raw)
	}
	d.out.Rejects = append(d.out.Rejects, r)
}

func excerpt(s string) []byte { return []byte(s[:min(len(s), maxExcerpt)]) }

// short is the beginning of what a sentence repeats, as text of its own.
func short(s string) string { return strings.Clone(s[:min(len(s), 40)]) }
