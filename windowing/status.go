package windowing

import "tidemark/reading"

// FeatureStatus is a view of one feature for people.
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
	// Windowed, Late and Excluded count (reading, window) pairs since the version
	// was first configured in this generation (law 5).
	Windowed, Late, Excluded uint64
}

// Status returns the features in the order of the configuration, disabled ones last.
// It changes nothing.
func (e *Engine) Status() []FeatureStatus {
	var list []FeatureStatus
	for _, f := range e.features {
		list = append(list, f.status())
	}
	for _, d := range e.disabled {
		list = append(list, FeatureStatus{Feature: d.Feature, Disabled: d.Reason, WatermarkMS: reading.NoTime})
	}
	return list
}

func (f *feature) status() FeatureStatus {
	s := FeatureStatus{
		Feature: f.def.ID, WatermarkMS: reading.NoTime, Keys: len(f.list),
		Windowed: f.windowed, Late: f.late, Excluded: f.excluded,
	}
	var worst *combiner
	for _, c := range f.combiners() {
		s.OpenWindows += c.open
		if c.open > 0 && (worst == nil || c.wm < worst.wm) {
			worst = c
		}
	}
	if worst == nil {
		worst = f.all
	}
	if worst != nil {
		s.WatermarkMS, s.Inputs, s.HeldBy = worst.wm, worst.summary(), worst.heldBy()
	}
	return s
}

// heldBy names the active partitions at the minimum.
func (c *combiner) heldBy() []string {
	low, floor := c.minimum(), c.stallFloor()
	var names []string
	for _, p := range c.parts {
		if !p.idle && !p.stalled(floor) && p.wm == low {
			names = appendName(names, p)
		}
	}
	return names
}
