//go:build monitortest

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// memorySink keeps what it is told, as a recorder would, and complains when it is told something against the rules.
type memorySink struct {
	t testing.TB

	mutex sync.Mutex
	known []change.Kind
	kinds map[string]*memoryKind // by resource.group/definition
	// successors are when the definitions were made that came after those that are gone.
	successors []time.Time
	gone       []change.Kind
	// block, when not nil, holds each event until it is closed.
	block chan struct{}
	// refuse, when not nil, is asked before each call.
	refuse func(kind change.Kind, call string) error
}

// memoryKind is what is known of one kind.
type memoryKind struct {
	kind       change.Kind
	checkpoint string
	previous   string            // checkpoint
	objects    map[string]Object // by UID
	seen       map[string]bool   // UID/resourceVersion
	removed    map[string]bool   // UIDs that were seen to go
	gaps       []memoryGap
	lost       []Gap
	schemas    []string
	opened     []change.Kind
	listing    map[string]bool
	unfinished bool // a list was begun, and has not ended
	from       string
	gap        Gap
	busy       bool
	events     int
	anySeen    bool // a watch has said something
}

// memoryGap is a gap that a list closed: what happened in between may not have been seen.
type memoryGap struct {
	after, upTo int
	reason      string
}

func newMemorySink(t testing.TB) *memorySink {
	return &memorySink{t: t, kinds: map[string]*memoryKind{}}
}

func memoryKey(kind change.Kind) string {
	return kind.GroupResource().String() + "/" + string(kind.Definition)
}

// kindOf returns what is known of a kind.
func (m *memorySink) kindOf(kind change.Kind) memoryKind {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	k := m.kinds[memoryKey(kind)]
	if k == nil {
		return memoryKind{}
	}
	c := *k
	c.objects, c.removed, c.seen = maps.Clone(k.objects), maps.Clone(k.removed), maps.Clone(k.seen)
	c.gaps, c.schemas, c.opened, c.lost = slices.Clone(k.gaps), slices.Clone(k.schemas), slices.Clone(k.opened), slices.Clone(k.lost)
	return c
}

func (m *memorySink) hold(block chan struct{}) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.block = block
}

func (m *memorySink) wasGone(kind change.Kind) bool {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	return slices.ContainsFunc(m.gone, func(k change.Kind) bool { return memoryKey(k) == memoryKey(kind) })
}

func (m *memorySink) Known(context.Context) ([]change.Kind, error) { return m.known, nil }

func (m *memorySink) Open(_ context.Context, kind change.Kind, schema Schema) (Journal, error) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	if m.refuse != nil {
		if err := m.refuse(kind, "open"); err != nil {
			return nil, err
		}
	}
	k := m.kinds[memoryKey(kind)]
	if k == nil {
		k = &memoryKind{objects: map[string]Object{}, seen: map[string]bool{}, removed: map[string]bool{}}
		m.kinds[memoryKey(kind)] = k
	}
	k.kind, k.listing = kind, nil
	k.opened = append(k.opened, kind)
	k.schemas = append(k.schemas, string(schema.JSON))
	return &memoryJournal{sink: m, k: k}, nil
}

func (m *memorySink) Gone(_ context.Context, kind change.Kind, successor time.Time) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.successors = append(m.successors, successor)
	if k := m.kinds[memoryKey(kind)]; k != nil {
		if k.busy {
			m.t.Errorf("%s is gone while its journal is used", memoryKey(kind))
		}
		for uid := range k.objects {
			k.removed[uid] = true
		}
		k.objects = map[string]Object{}
	}
	m.gone = append(m.gone, kind)
	return nil
}

type memoryJournal struct {
	sink *memorySink
	k    *memoryKind
}

// call runs a call of the journal, one at a time.
func (j *memoryJournal) call(ctx context.Context, name string, do func(k *memoryKind)) error {
	j.sink.mutex.Lock()
	if j.k.busy {
		j.sink.t.Errorf("%s: two calls at a time", memoryKey(j.k.kind))
	}
	if j.sink.refuse != nil {
		if err := j.sink.refuse(j.k.kind, name); err != nil {
			j.sink.mutex.Unlock()
			return err
		}
	}
	j.k.busy = true
	block := j.sink.block
	j.sink.mutex.Unlock()
	var err error
	if block != nil && name == "event" {
		select {
		case <-block:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	j.sink.mutex.Lock()
	defer j.sink.mutex.Unlock()
	j.k.busy = false
	if err == nil {
		do(j.k)
	}
	return err
}

func (j *memoryJournal) Resume() string {
	j.sink.mutex.Lock()
	defer j.sink.mutex.Unlock()
	return j.k.checkpoint
}

func (j *memoryJournal) Event(ctx context.Context, event Event) error {
	return j.call(ctx, "event", func(k *memoryKind) {
		if k.listing != nil {
			j.sink.t.Errorf("%s: an event within a list", memoryKey(k.kind))
		}
		k.previous, k.checkpoint = k.checkpoint, event.Object.ResourceVersion
		k.events++
		k.anySeen = true
		j.keep(k, event)
	})
}

func (j *memoryJournal) keep(k *memoryKind, event Event) {
	id := string(event.Object.UID) + "/" + event.Object.ResourceVersion
	if k.seen[id] {
		return
	}
	k.seen[id] = true
	if event.Type == Deleted {
		delete(k.objects, string(event.Object.UID))
		k.removed[string(event.Object.UID)] = true
		return
	}
	k.objects[string(event.Object.UID)] = event.Object
}

func (j *memoryJournal) Bookmark(ctx context.Context, version string, _ time.Time) error {
	return j.call(ctx, "bookmark", func(k *memoryKind) { k.checkpoint, k.anySeen = version, true })
}

func (j *memoryJournal) BeginList(ctx context.Context, gap Gap) error {
	return j.call(ctx, "begin", func(k *memoryKind) {
		if gap.Reason == "" && k.checkpoint != "" && (k.anySeen || len(k.seen) > 0) {
			j.sink.t.Errorf("%s: a list after %s without a reason", memoryKey(k.kind), k.checkpoint)
		}
		k.listing = map[string]bool{}
		if k.unfinished {
			return // the gap is the one that the first list was to close
		}
		k.from, k.gap = k.checkpoint, gap
		if gap.Reason == errDisorder.Error() {
			k.from = k.previous // the last event came before one that it should have come after
		}
		// Until a list has ended, no checkpoint is true.
		k.checkpoint, k.unfinished = "", true
	})
}

func (j *memoryJournal) Listed(ctx context.Context, object Object) error {
	return j.call(ctx, "listed", func(k *memoryKind) {
		if k.listing == nil {
			j.sink.t.Errorf("%s: an object without a list", memoryKey(k.kind))
			return
		}
		k.listing[string(object.UID)] = true
		k.seen[string(object.UID)+"/"+object.ResourceVersion] = true
		k.objects[string(object.UID)] = object
	})
}

func (j *memoryJournal) EndList(ctx context.Context, version string, complete bool) error {
	return j.call(ctx, "end", func(k *memoryKind) {
		for uid := range k.objects {
			if complete && !k.listing[uid] {
				delete(k.objects, uid)
				k.removed[uid] = true
			}
		}
		after, _ := strconv.Atoi(k.from)
		upTo, _ := strconv.Atoi(version)
		k.gaps = append(k.gaps, memoryGap{after, upTo, k.gap.Reason})
		k.checkpoint, k.listing, k.unfinished = version, nil, false
	})
}

func (j *memoryJournal) SchemaChanged(ctx context.Context, schema Schema) error {
	return j.call(ctx, "schema", func(k *memoryKind) { k.schemas = append(k.schemas, string(schema.JSON)) })
}

func (j *memoryJournal) Lost(ctx context.Context, gap Gap) error {
	return j.call(ctx, "lost", func(k *memoryKind) { k.lost = append(k.lost, gap) })
}

// unseen returns the events of a kind that were neither seen nor within a gap that was told.
func (m *memorySink) unseen(kind change.Kind, events []fakeEvent) error {
	k := m.kindOf(kind)
	for _, e := range events {
		if k.seen[e.uid+"/"+strconv.Itoa(e.version)] {
			continue
		}
		inGap := slices.ContainsFunc(k.gaps, func(g memoryGap) bool { return e.version > g.after && e.version <= g.upTo })
		if !inGap {
			return fmt.Errorf("%s: %s of %s at %d was missed; gaps %+v", kind.Resource, e.what, e.uid, e.version, k.gaps)
		}
	}
	return nil
}

var errRefused = errors.New("the disk is full")
