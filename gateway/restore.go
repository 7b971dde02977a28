package gateway

import (
	"errors"
	"fmt"

	"tidemark/buffer"
	"tidemark/configs"
	"tidemark/uplink"
)

// metaRestored is in a store that was brought back from a backup and has not been
// served since.
const metaRestored = "restored"

// MarkRestored prepares the store at path, which was copied back from a backup of
// the configuration's gateway: it will have a new generation, since whoever it was
// taken from may have gone on counting revisions after the backup (DESIGN, Generations).
func MarkRestored(cfg *configs.Config, path string, nowMS int64) error {
	o := storeOptions(cfg, nowMS*1e6)
	o.Compact = false // which would make the file that of whoever restores
	store, opened, err := buffer.Open(path, o)
	if err != nil {
		return &storageError{err: err}
	}
	if opened.SetAside != "" {
		err = fmt.Errorf("the restored store cannot be used and was set aside as %s: %s", opened.SetAside, opened.Reason)
	} else {
		err = store.Commit(&buffer.Commit{Meta: map[string][]byte{metaRestored: []byte("yes")}})
	}
	if err = errors.Join(err, store.Close()); err != nil {
		return &storageError{err: err}
	}
	return nil
}

// bornAgain begins a new generation, which the clock will give once it is trusted,
// for a restored store. What is emitted until then goes out under it too.
func (p *pipeline) bornAgain() {
	if p.store.Meta(metaRestored) == nil {
		return
	}
	now := p.clk.Now()
	p.restored = true
	p.ledger.Above = max(p.ledger.Above, p.ledger.Generation)
	p.ledger.Generation = 0
	p.ledger.Born = &birth{now.Segment.Boot, now.BootNS}
	p.log.Warn().Uint64("generation_before", p.ledger.Above).Msg("the store was restored from a backup: it continues under a new generation")
	p.note(p.event(uplink.EventStoreRestored).Uint("generation_before", p.ledger.Above))
}
