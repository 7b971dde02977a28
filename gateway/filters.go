package gateway

import (
	"encoding/json"
	"fmt"
	"slices"

	"tidemark/buffer"
)

// metaFilters is the store's key for the topic filters that the brokers' sessions
// may have, by input: what is no longer configured must be unsubscribed. One that
// is gone from the configuration stays until the broker has confirmed it, over
// restarts too.
const metaFilters = "filters"

// storedFilters reads what an earlier run left.
func storedFilters(store *buffer.Store) (map[string][]string, error) {
	filters := map[string][]string{}
	if data := store.Meta(metaFilters); data != nil {
		if err := json.Unmarshal(data, &filters); err != nil {
			return nil, &storageError{err: fmt.Errorf("the stored topic filters cannot be read: %w", err)}
		}
	}
	return filters, nil
}

// sessionHas notes the filters that an input's session may have: before the readers
// run, and in the pipeline's goroutine after.
func (p *pipeline) sessionHas(input string, filters []string) {
	p.sessions[input] = slices.Compact(slices.Sorted(slices.Values(filters)))
	data, err := json.Marshal(p.sessions)
	if err != nil {
		panic("gateway: " + err.Error()) // plain strings
	}
	p.filters = data
}
