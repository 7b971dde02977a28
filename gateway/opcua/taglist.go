package opcua

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// tagList is the nodes that browse rules have chosen so far, by rule: what tells
// a node that appears from one that was always there. It outlives the process.
type tagList struct {
	Rules map[string][]string `json:"rules"` // places by the rule's text, sorted
}

// decode reads what encode wrote. Anything else is no list: the nodes that are
// there are then the first ones.
func (l *tagList) decode(data []byte) {
	if json.Unmarshal(data, l) != nil || l.Rules == nil {
		l.Rules = map[string][]string{}
	}
}

func (l *tagList) encode() []byte {
	data, err := json.Marshal(l)
	if err != nil {
		panic(err) // strings always marshal
	}
	return data
}

// text is the part of a rule that decides which nodes it chooses.
func (r *Nodes) text() string {
	return strings.Join(append([]string{r.Under, r.Match, r.Asset}, r.Exclude...), "\x00")
}

// compare tells known nodes from new ones, by rule: new ones are left out and
// reported, or added and reported, as the rule says; known ones that are gone are
// reported and stay on the list.
func (r *resolving) compare() {
	changed := false
	next := map[string][]string{}
	for n := range r.rules {
		rule := &r.rules[n]
		if rule.Under == "" {
			continue
		}
		list, had := r.tags.Rules[rule.text()]
		if r.blind[n] {
			if had {
				next[rule.text()] = list
			}
			continue
		}
		var there, fresh []string
		for _, t := range r.targets {
			if t.rule != n || t.path == nil {
				continue
			}
			there = append(there, t.place)
			if _, t.before = slices.BinarySearch(list, t.place); t.before || !had {
				continue
			}
			fresh = append(fresh, t.place)
			if !rule.AddNew {
				t.unread = fmt.Sprintf("it is new below %s and not read (new_tags: report); name it in a tag file, or set new_tags: add", rule.label())
			}
		}
		if !had && len(there) == 0 {
			continue // nothing was there yet, so that nothing is known
		}
		r.gone(rule, list, there)
		if rule.AddNew || !had {
			for _, p := range fresh {
				r.remark(p, "it is new below "+rule.label()+" and read from now on (new_tags: add)")
			}
			changed = changed || !had || len(fresh) > 0
			list = union(list, there)
		}
		next[rule.text()] = list
	}
	if changed || len(next) != len(r.tags.Rules) {
		r.tags.Rules = next
		if r.keep != nil {
			r.keep(r.tags.encode())
		}
	}
}

// gone reports known nodes that are not there.
func (r *resolving) gone(rule *Nodes, list, there []string) {
	now := slices.Sorted(slices.Values(there))
	for _, p := range list {
		if _, ok := slices.BinarySearch(now, p); !ok {
			r.report(p, "the server no longer has it below "+rule.label()+lookedForAgain)
		}
	}
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}
