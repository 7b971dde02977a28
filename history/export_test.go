package history

// SliceReadings is how many readings a slice holds at most.
var SliceReadings = &sliceReadings
