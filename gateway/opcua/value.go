package opcua

import (
	"github.com/gopcua/opcua/ua"

	"tidemark/reading"
)

// take appends to p what a DataValue of an item says: a reading, several where
// the value is an array or a structure, or a reject. at is its arrival.
//
// The server's absent fields look like zero; only dv.EncodingMask tells.
func (it *item) take(dv *ua.DataValue, at Instant, delivery reading.Delivery, p *reading.Parcel) {
	r := reading.Reading{
		Tag: reading.MakeTag(it.series), Unit: it.unit, ServerNS: reading.NoTime, IngestNS: at.WallNS, Delivery: delivery,
		Source: reading.SourceTime{NS: reading.NoTime, Fault: reading.TimeNull},
	}
	if dv.Has(ua.DataValueSourceTimestamp) {
		r.Source = reading.SourceTime{NS: dv.SourceTimestamp.UnixNano(), Zoned: true}
	}
	if dv.Has(ua.DataValueValue) && dv.Value != nil {
		switch v := dv.Value.Value().(type) {
		case float64:
			r.Value = reading.FloatValue(v)
		case int32:
			r.Value = reading.IntValue(int64(v))
		case uint32:
			r.Value = reading.IntValue(int64(v))
		}
	}
	p.Readings = append(p.Readings, r)
}
