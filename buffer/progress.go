package buffer

// Progress is told now and then how far a step of long work is, in bytes. An error
// that it returns ends the work, which leaves nothing behind and returns it. nil
// stands for nobody who wants to know.
type Progress func(step string, done, total int64) error

// The steps of Check, Compact and Salvage, as they are shown.
const (
	StepReading    = "reading"    // the pages that the root leads to
	StepSearching  = "searching"  // every page of the file
	StepAssembling = "assembling" // what was found into a store
	StepCopying    = "copying"
)

func (p Progress) at(step string, done, total int64) error {
	if p == nil {
		return nil
	}
	return p(step, done, total)
}
