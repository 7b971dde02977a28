package mqtt

import (
	"strings"

	"github.com/tidwall/gjson"
)

// The slots of a plan that are the same for every subscription; those of the
// sensors follow.
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
	metaSlots  // those before it may stand in the message around the element
	slotValue  = metaSlots
	fixedSlots = metaSlots + 1
)

// plan is where the fields of an element are. Fields that are members of the
// element itself are found in one pass over it; only longer paths are searched
// one by one.
type plan struct {
	paths   []string // by slot; empty: not wanted
	members []member
	deep    []int // slots whose path is more than a member's name
	many    map[string][]int
}

// member is a field found by its name.
type member struct {
	name string
	slot int
}

// manyMembers is from where a map beats comparing names in a row.
const manyMembers = 12

func newPlan(paths []string) plan {
	p := plan{paths: paths}
	for slot, path := range paths {
		switch {
		case path == "":
		case plain(path):
			p.members = append(p.members, member{path, slot})
		default:
			p.deep = append(p.deep, slot)
		}
	}
	if len(p.members) > manyMembers {
		p.many = map[string][]int{}
		for _, m := range p.members {
			p.many[m.name] = append(p.many[m.name], m.slot)
		}
	}
	return p
}

// plain reports whether a gjson path is just a member's name.
func plain(path string) bool { return !strings.ContainsAny(path, ".|#@*?\\!{}[]()<>=%:\"'") }

// find fills the slots of one element. A member that is there twice counts the
// first time, as gjson has it.
func (p *plan) find(element gjson.Result, slots []gjson.Result) {
	clear(slots)
	if element.IsArray() { // a name may be an index
		for _, m := range p.members {
			slots[m.slot] = element.Get(m.name)
		}
	} else if len(p.members) > 0 && element.IsObject() {
		element.ForEach(func(key, value gjson.Result) bool {
			if p.many != nil {
				for _, slot := range p.many[key.Str] {
					set(&slots[slot], value)
				}
				return true
			}
			for i := range p.members {
				if m := &p.members[i]; m.name == key.Str {
					set(&slots[m.slot], value)
				}
			}
			return true
		})
	}
	for _, slot := range p.deep {
		slots[slot] = element.Get(p.paths[slot])
	}
}

func set(slot *gjson.Result, value gjson.Result) {
	if !slot.Exists() {
		*slot = value
	}
}

// around fills the slots of what may stand around the element.
func (p *plan) around(root gjson.Result, slots []gjson.Result) {
	for slot, path := range p.paths[:metaSlots] {
		if path != "" {
			slots[slot] = root.Get(path)
		}
	}
}
