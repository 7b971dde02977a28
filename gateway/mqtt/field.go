package mqtt

// field is what a payload says in one place, in no format in particular. The zero
// field is not there at all.
type field struct {
	kind fieldKind
	// text is a number's digits, or a text without quotes and escapes, or the source
	// of what is nested. It may point into the payload.
	text string
}

type fieldKind uint8

const (
	absent  fieldKind = iota
	null              // there, and without a value
	no                // false
	yes               // true
	numeric           // a number as JSON writes it
	wording           // text
	nested            // an object or an array
)

func (f field) exists() bool { return f.kind != absent }

// word is the text of a string, number or boolean.
func (f field) word() (string, bool) {
	switch f.kind {
	case wording, numeric:
		return f.text, true
	case yes:
		return "true", true
	case no:
		return "false", true
	}
	return "", false
}

// raw is the field as a person would recognise it.
func (f field) raw() string {
	switch f.kind {
	case null:
		return "null"
	case wording:
		return `"` + f.text + `"`
	case nested:
		return f.text
	}
	w, _ := f.word()
	return w
}

// scalar is the field that a bare word of a text format stands for.
func scalar(text string) field {
	switch text {
	case "":
		return field{kind: null}
	case "true", "TRUE", "True":
		return field{kind: yes, text: text}
	case "false", "FALSE", "False":
		return field{kind: no, text: text}
	}
	if _, ok := parseDecimal(text); ok {
		return field{numeric, text}
	}
	return field{wording, text}
}

// The slots of a plan: first those of the element as a whole, then its value, then
// one for each sensor.
const (
	slotTime = iota
	slotID
	slotSeq
	slotQuality
	slotAsset
	slotDevice
	slotLifecycle
	slotSensor
	slotUnit
	slotRate
	slotStep
	metaSlots  // those before it may stand in the message around the element
	slotValue  = metaSlots
	fixedSlots = metaSlots + 1
)
