package uplink

import (
	"fmt"
	"slices"

	"tidemark/windowing"
)

// typeNames are the types of records that an uplink chooses from. Readings are not
// among them: they come only where the source has them.
var typeNames = []string{"feature", "closed", "late", "quarantine", typeEvent, "definition"}

// types is a set of record types, by their place in typeNames.
type types struct {
	set    uint16
	finals bool
}

func parseTypes(names []string, finals bool) (types, error) {
	t := types{finals: finals}
	for _, n := range names {
		i := slices.Index(typeNames, n)
		if i < 0 {
			return t, fmt.Errorf("there are no records of type %q, but of %q", n, typeNames)
		}
		t.set |= 1 << i
	}
	if len(names) == 0 {
		t.set = 1<<len(typeNames) - 1
	}
	return t, nil
}

// has reports whether the type is chosen; one that cannot be chosen always is.
func (t types) has(name string) bool {
	i := slices.Index(typeNames, name)
	return i < 0 || t.set&(1<<i) != 0
}

// takes reports whether a record is to be sent. One that cannot be understood is:
// whoever renders it says what is wrong.
func (t types) takes(r *Record) bool {
	switch r.Kind {
	case KindEvent:
		return t.has(typeEvent)
	case KindDefinition:
		return t.has("definition")
	case KindEmission:
		return t.takesEmission(windowing.StoredKind(r.Data))
	}
	return true
}

func (t types) takesEmission(k windowing.EmissionKind) bool {
	switch {
	case k == 0 || k > windowing.EmitResumed:
		return true
	case t.finals && k == windowing.EmitFeature:
		return false
	case t.finals && k == windowing.EmitClosed:
		return t.has("feature")
	}
	return t.has(typeName(k))
}
