package mqtt

import "tidemark/reading"

// Tags lists where the input expects readings, as configured: of each
// subscription a point for every sensor that it names.
func (r *Reader) Tags() []reading.Point { return r.decoder.Tags() }

// Tags lists the points of the decoder's subscriptions.
func (d *Decoder) Tags() []reading.Point {
	var points []reading.Point
	for _, s := range d.router.subs {
		p := reading.Point{Address: s.Topic, Series: reading.Series{
			Input: d.router.input, Asset: s.name(assetPart, s.Asset), Device: s.name(devicePart, s.Device),
		}}
		if len(s.Sensors) == 0 {
			p.Sensor, p.Path, p.Unit = s.name(sensorPart, s.Sensor), s.Value.Path, s.Value.Unit.Text
			if s.naming == byKey {
				p.Sensor, p.Path = reading.AnyName, s.Each
			}
			points = append(points, p)
			continue
		}
		for _, x := range s.Sensors {
			p.Sensor, p.Path, p.Unit = x.Name, x.Path, x.Unit
			switch {
			case s.naming != byField:
				p.Path = s.Value.Path
			case p.Path == "":
				p.Path = x.Name
			}
			points = append(points, p)
		}
	}
	return points
}

// name is what is known of a part before a message comes.
func (s *subscription) name(p part, o Origin) string {
	if s.pattern.names(p) || o.Path != "" {
		return reading.AnyName
	}
	return o.Text
}

// Matches reports whether a subscription is for the topic.
func (d *Decoder) Matches(topic string) bool { return d.router.route(topic) != nil }
