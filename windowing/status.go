package windowing

// Status is a view of the engine for people. It changes nothing.
type Status struct {
	Features    []FeatureStatus // in the order of the configuration
	OpenWindows int
	Identities  int // remembered
	Keys        int
}

// FeatureStatus is one feature's part of Status.
type FeatureStatus struct {
	Feature  FeatureID
	Disabled string // the fault, if any
	// WatermarkMS is the combined watermark; of scope device and sensor the lowest
	// of the keys with open windows. NoTime before the first.
	WatermarkMS int64
	// HeldBy names the partitions that hold the minimum back, at most a few.
	HeldBy      []string
	Inputs      InputSummary
	Keys        int
	OpenWindows int
	// Windowed, Late and Excluded count (reading, window) pairs since the feature
	// was first configured in this generation (law 5).
	Windowed, Late, Excluded uint64
}
