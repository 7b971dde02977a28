package windowing

// Identities is how many identities the engine remembers.
func (e *Engine) Identities() int {
	n := 0
	for _, x := range e.sensorList {
		for i := range x.ids.groups {
			n += x.ids.groups[i].table.len()
		}
		for i := range x.ids.late {
			n += x.ids.late[i].table.len()
		}
	}
	return n
}
