package windowing

import "tidemark/reading"

// lookAhead looks up the routes of the next readings of a batch while this one is
// stepped: with many sensors each look-up waits for memory, and these wait side by
// side. At 100,000 sensors it saves about a tenth; to touch what hangs on the routes too
// saved nothing more.
type lookAhead struct {
	routes [ahead]*route // of the readings ahead, by their number
	found  int           // readings whose route has been looked up
}

const ahead = 8

// route returns the route of reading i, nil if it has none. It makes nothing: what
// comes into being does so in the order of the readings.
func (l *lookAhead) route(e *Engine, readings []reading.Reading, i int) *route {
	for ; l.found < len(readings) && l.found < i+ahead; l.found++ {
		l.routes[l.found%ahead] = e.routes[readings[l.found].Tag]
	}
	return l.routes[i%ahead]
}
