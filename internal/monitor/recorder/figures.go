package recorder

import (
	"sync/atomic"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// counts are of everything since the start.
type counts struct {
	baselines, created, updated, deleted, gaps atomic.Int64
	schemaDriven, inGap, redacted, folded      atomic.Int64
	losses, metadataOnly                       atomic.Int64
}

// add counts what was stored.
func (c *counts) add(e *entry) {
	for i := range e.records {
		r := &e.records[i]
		switch r.Type {
		case change.Baseline:
			c.baselines.Add(1)
		case change.Created:
			c.created.Add(1)
		case change.Updated:
			c.updated.Add(1)
		case change.Deleted:
			c.deleted.Add(1)
		case change.Gap:
			c.gaps.Add(1)
		}
		for _, flag := range []struct {
			is    bool
			count *atomic.Int64
		}{{r.SchemaDriven, &c.schemaDriven}, {r.InGap, &c.inGap}, {r.MetadataOnly, &c.metadataOnly}} {
			if flag.is {
				flag.count.Add(1)
			}
		}
		c.redacted.Add(r.Redacted)
	}
}

// Figures are about the recorder, since it was made.
type Figures struct {
	// Records are how many were stored, by their type.
	Records map[change.Type]int64
	// SchemaDriven, InGap and MetadataOnly are how many of them are.
	SchemaDriven, InGap, MetadataOnly int64
	// Folded are changes without a meaning that were left out, and Redacted secrets in records that were.
	Folded, Redacted int64
	// Losses are of the store.
	Losses int64
	// WaitingEvents and WaitingBytes wait for the store now.
	WaitingEvents, WaitingBytes int64
}

// Figures returns figures about the recorder.
func (r *Recorder) Figures() Figures {
	c := &r.counts
	f := Figures{
		Records: map[change.Type]int64{
			change.Baseline: c.baselines.Load(), change.Created: c.created.Load(), change.Updated: c.updated.Load(),
			change.Deleted: c.deleted.Load(), change.Gap: c.gaps.Load(),
		},
		SchemaDriven: c.schemaDriven.Load(), InGap: c.inGap.Load(), MetadataOnly: c.metadataOnly.Load(),
		Folded: c.folded.Load(), Redacted: c.redacted.Load(), Losses: c.losses.Load(),
	}
	for _, j := range r.all() {
		entries, bytes := j.pipe.size()
		f.WaitingEvents += int64(entries)
		f.WaitingBytes += bytes
	}
	return f
}
