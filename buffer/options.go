package buffer

import (
	"fmt"
	"math"
	"slices"
)

// Policy is what happens when the raw readings' share of the quota is used up.
type Policy int

const (
	// DropOldestRaw drops the oldest blocks that neither recovery nor undecided
	// readings need, with a Loss.
	DropOldestRaw Policy = iota
	// HoldSources refuses blocks with a *FullError until retention or delivery
	// has made room.
	HoldSources
)

var policyNames = [...]string{"drop_oldest_raw", "hold_sources"}

// String returns the policy as the configuration spells it.
func (p Policy) String() string { return policyNames[min(max(p, 0), HoldSources)] }

// Limits of Options.Quota.
const (
	MinQuota = 4 << 20
	// MaxQuota32 holds where addresses have 32 bits: the whole file is mapped,
	// and growing failed near 1 GB.
	MaxQuota32 = 512 << 20
)

// Options are how a store is opened. Quota and NowMS are required.
type Options struct {
	// Quota bounds the file, in bytes. It may change from one opening to the
	// next; a file that is larger does not grow.
	Quota int64
	// Reserve is the part of Quota that raw readings may not use, so that there
	// is room for features and evidence. 0 is an eighth.
	Reserve int64
	// EvidenceMax bounds the evidence, in bytes; beyond it the oldest goes, with a
	// Loss. 0 is half of the reserve.
	EvidenceMax int64
	// RetainMS is how long blocks and evidence are kept at least if the quota
	// allows, and at most if nothing else needs them. 0 keeps them until the
	// quota is reached.
	RetainMS int64
	WhenFull Policy
	// Uplinks are the names of those who read the outbox. A record is kept until
	// each has delivered it; with none, no record is kept. One that was not there
	// before begins with the oldest record held; one that is no longer named is
	// forgotten with the next commit.
	Uplinks []string
	// Raw names those of Uplinks that take readings too: a block is kept until each
	// has delivered what is in it, unless the quota drops it, with a Loss. One that
	// was not there before begins with the next block.
	Raw []string
	// NowMS is the wall time in milliseconds, 0 if it is not known. It is only
	// written down: when the store was created, when a file was set aside.
	NowMS int64
	// Compact rewrites the file when it is opened if it has shrunk a lot inside:
	// it is larger than 64 MiB and three quarters of it are free.
	Compact bool
}

func (o Options) withDefaults() (Options, error) {
	if o.Quota < MinQuota {
		return o, fmt.Errorf("store.quota is %d bytes: at least %d are needed", o.Quota, MinQuota)
	}
	if math.MaxInt == math.MaxInt32 && o.Quota > MaxQuota32 {
		return o, fmt.Errorf("store.quota is %d bytes: this machine has 32-bit addresses, the limit is %d", o.Quota, MaxQuota32)
	}
	if o.Reserve == 0 {
		o.Reserve = o.Quota / 8
	}
	if o.EvidenceMax == 0 {
		o.EvidenceMax = o.Reserve / 2
	}
	if o.Reserve < 0 || o.Reserve > o.Quota/2 || o.EvidenceMax < 0 || o.EvidenceMax > o.Quota/2 {
		return o, fmt.Errorf("the store's reserve (%d) and evidence limit (%d) must be at most half of its quota of %d bytes", o.Reserve, o.EvidenceMax, o.Quota)
	}
	if slices.Contains(o.Uplinks, "") {
		return o, fmt.Errorf("an uplink of the store has no name")
	}
	for _, name := range o.Raw {
		if !slices.Contains(o.Uplinks, name) {
			return o, fmt.Errorf("%q takes readings and is no uplink of the store", name)
		}
	}
	return o, nil
}

// pageSize is that of every store, whatever the machine's is, so that a file can
// be moved.
const pageSize = 4096

// step is by how much the file grows: each step costs a sync of its own.
func (o *Options) step() int64 { return min(max(o.Quota/128, 64<<10), 1<<20) }

// limit is how much of the file may be in use before a commit: bbolt needs room
// for the pages that it is about to replace, and refuses the last step.
func (o *Options) limit() int64 { return o.Quota - o.step() - o.Quota/64 - 64<<10 }

// rawLimit is limit for what raw readings may use.
func (o *Options) rawLimit() int64 { return o.limit() - o.Reserve }
