package recorder

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/store"
)

// entry is what follows from one event. It is stored as one.
type entry struct {
	records    []change.Record
	put        *change.State
	drop       []types.UID
	checkpoint string
	// reached is when the checkpoint was.
	reached     time.Time
	outbox      []store.Message
	values      []store.Value
	definitions []store.Definition
	// stored is called when it is stored, unless it is nil.
	stored func()
	// check is a definition whose objects have to be checked once it is stored, nil for none.
	check *wantedCheck
	// update is what readers are told, nil for nothing.
	update *Update
	// weight is how many bytes it takes while it waits.
	weight int64
}

// parts is what counts towards the size of a batch.
func (e *entry) parts() int {
	n := len(e.records) + len(e.drop) + len(e.outbox) + len(e.values) + len(e.definitions)
	if e.put != nil {
		n++
	}
	return n
}

// empty reports whether there is nothing in it but a checkpoint.
func (e *entry) empty() bool { return e.parts() == 0 }

const (
	// maxEntries and maxBytes bound what waits in one journal, and maxParts what is committed as one: the store takes no
	// more than 2,000 parts.
	maxEntries = 500
	maxBytes   = 4 << 20
	maxParts   = 1900
	// batchEntries are as many as are committed without waiting for more.
	batchEntries = 100
)

// part is what is committed together.
type part struct {
	kind    change.Kind
	epoch   int64
	entries []entry
	// checkpoint is that of bookmarks after the last entry.
	checkpoint string
	reached    time.Time
	weight     int64
}

// split takes the first entries that fit into a batch. One that is too large by itself comes alone.
func (p *part) split() (first, rest part) {
	parts := 0
	for i := range p.entries {
		parts += p.entries[i].parts()
		if parts <= maxParts || i == 0 {
			continue
		}
		first, rest = *p, *p
		first.entries, rest.entries = p.entries[:i:i], p.entries[i:]
		first.checkpoint = ""
		first.weight, rest.weight = weigh(first.entries), weigh(rest.entries)
		return first, rest
	}
	return *p, part{}
}

func weigh(entries []entry) (sum int64) {
	for i := range entries {
		sum += entries[i].weight
	}
	return sum
}

// batch is what the store is given. Of an object there is the last state only.
func (p *part) batch() store.Batch {
	b := store.Batch{Kind: p.kind}
	last := map[types.UID]*change.State{}
	var order []types.UID
	see := func(uid types.UID, state *change.State) {
		if _, seen := last[uid]; !seen {
			order = append(order, uid)
		}
		last[uid] = state
	}
	values := map[string]int{}
	for i := range p.entries {
		e := &p.entries[i]
		b.Records = append(b.Records, e.records...)
		b.Outbox = append(b.Outbox, e.outbox...)
		b.Definitions = append(b.Definitions, e.definitions...)
		for _, uid := range e.drop {
			see(uid, nil)
		}
		if e.put != nil {
			see(e.put.UID, e.put)
		}
		for _, v := range e.values {
			if at, seen := values[v.Key]; seen {
				b.Values[at] = v
				continue
			}
			values[v.Key] = len(b.Values)
			b.Values = append(b.Values, v)
		}
		if e.checkpoint != "" {
			b.Checkpoint, b.Reached = e.checkpoint, e.reached
		}
	}
	if p.checkpoint != "" {
		b.Checkpoint, b.Reached = p.checkpoint, p.reached
	}
	for _, uid := range order {
		if state := last[uid]; state != nil {
			b.Put = append(b.Put, *state)
		} else {
			b.Drop = append(b.Drop, uid)
		}
	}
	return b
}

// without returns what is left of an entry that the store does not take: that it is not there, as a gap of the kind.
func (e *entry) without(kind change.Kind, problem error) entry {
	left := entry{checkpoint: e.checkpoint, reached: e.reached, weight: e.weight}
	if len(e.records) == 0 {
		return left
	}
	first := e.records[0]
	left.records = []change.Record{{
		Kind: kind, Type: change.Gap, Time: first.Time, Since: first.Time, Actor: change.Actor{Confidence: change.Unknown},
		Reason: fmt.Sprintf("a change of %s cannot be stored: %v", nameOf(first.Namespace, first.Name), problem),
	}}
	return left
}

// nameOf is an object in a text.
func nameOf(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "/" + name
}
