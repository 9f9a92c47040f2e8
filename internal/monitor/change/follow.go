package change

import (
	"slices"
	"strconv"
	"time"
)

// Context is what is known about a change besides the two states.
type Context struct {
	Kind   Kind
	Schema *Schema
	// Time is when it was seen.
	Time time.Time
	// First reports whether the kind was not watched before: an object without a state before was there already.
	First bool
	// InGap reports whether the change was found by comparing a list with what is stored.
	InGap bool
	// Gone reports whether the object was deleted: then after is the last the watch said of it.
	Gone bool
	// WithDefinition reports whether a deleted object went because its definition did.
	WithDefinition bool
	// Folded counts changes without a meaning since the last record of the object.
	Folded int64
}

// Records says which records follow from what an object was and what it is. Before is nil if nothing is known, and after is nil if it is
// gone and nothing more is known. There are no records if nothing changed that means anything: folded is then how many changes
// without a meaning there are since the last record, Context.Folded included. With a record it is 0: they stand in the record.
//
// An object of the same name with another UID is another object: the old one was deleted, the new one created. An older version than
// the one before is no news, unless it comes from a list: then the cluster was set back.
func Records(before, after *State, c Context) (records []Record, folded int64) {
	switch {
	case before == nil && after == nil:
		return nil, c.Folded
	case before == nil && c.Gone:
		return []Record{c.deleted(after)}, 0
	case before == nil:
		return []Record{c.created(after)}, 0
	case after == nil:
		c.Gone = false
		return []Record{c.deleted(before)}, 0
	case isOlder(after, before) && !c.InGap:
		return nil, c.Folded
	case before.UID != after.UID:
		return c.replaced(before, after), 0
	case c.Gone:
		return []Record{c.gone(before, after)}, 0
	case before.ResourceVersion == after.ResourceVersion && before.Hash == after.Hash:
		return nil, c.Folded
	}
	return c.updated(before, after)
}

func (c Context) record(of *State, t Type) Record {
	return Record{
		Kind: c.Kind, Namespace: of.Namespace, Name: of.Name, UID: of.UID,
		ResourceVersion: of.ResourceVersion, Generation: of.Generation,
		Type: t, Time: c.Time, InGap: c.InGap, Actor: Actor{Confidence: Unknown},
		MetadataOnly: of.MetadataOnly, Reason: of.Reason, Redacted: of.Redacted, Folded: c.Folded,
		ObjectCreated: of.Created,
	}
}

// created is the first record of an object. It has no fields: all of the object is new.
func (c Context) created(after *State) Record {
	if c.First {
		return c.record(after, Baseline)
	}
	record := c.record(after, Created)
	record.Actor = Attribute(nil, after, nil)
	return record
}

// deleted is the last record of an object. Of one that is just gone nobody knows the version: it is not that of the state before,
// because that one has its own record.
func (c Context) deleted(last *State) Record {
	record := c.record(last, Deleted)
	if !c.Gone {
		record.ResourceVersion = ""
	}
	record.WithDefinition = c.WithDefinition
	return record
}

// gone is the last record of an object of which the watch said how it was in the end.
func (c Context) gone(before, after *State) Record {
	record := c.deleted(after)
	if after.ResourceVersion == before.ResourceVersion {
		record.ResourceVersion = ""
	}
	record.compare(before, after, c.Schema)
	record.Folded += noiseChanges(before.Noise, after.Noise)
	return record
}

// replaced is what happened if the name stayed and the object did not. A watch would have said that one went and the other came, so
// this was found later.
func (c Context) replaced(before, after *State) []Record {
	gone, came := c, c
	gone.InGap, gone.Gone = true, false
	came.InGap, came.First, came.Folded = true, false, 0
	if c.Gone {
		return []Record{gone.deleted(before), came.deleted(after)}
	}
	return []Record{gone.deleted(before), came.created(after)}
}

func (c Context) updated(before, after *State) ([]Record, int64) {
	noise := noiseChanges(before.Noise, after.Noise)
	if before.Hash == after.Hash && (before.MetadataOnly == after.MetadataOnly || before.Reason == NoRoom) {
		return nil, c.Folded + max(noise, 1)
	}
	record := c.record(after, Updated)
	record.compare(before, after, c.Schema)
	record.Folded += noise
	if before.ResourceVersion == after.ResourceVersion {
		record.SchemaDriven = true
		record.Fields = slices.DeleteFunc(record.Fields, isRedaction)
	} else {
		record.Actor = Attribute(before, after, record.Fields)
	}
	if len(record.Fields) == 0 && !record.Truncated && !record.MetadataOnly {
		return nil, c.Folded + max(noise, 1)
	}
	if isOlder(after, before) {
		record.explain("its version is older than the one before: the cluster was set back")
	}
	return []Record{record}, 0
}

// compare fills in the fields that differ, and says what is not known about them.
func (r *Record) compare(before, after *State, s *Schema) {
	if before.Reason == NoRoom {
		if before.Hash != after.Hash {
			r.Truncated = true
			r.explain("what it was before is not known: " + before.Reason)
		}
		return
	}
	var err error
	if r.Fields, r.Truncated, err = Compare(before, after, s); err != nil {
		r.Truncated = true
		r.explain(err.Error())
	}
	if before.MetadataOnly && !after.MetadataOnly {
		r.MetadataOnly = true
		r.explain("what it was before is not known: " + before.Reason)
	}
}

// isRedaction reports whether a field differs because a secret is hidden, or hidden with another key.
func isRedaction(f Field) bool {
	return isMarker(f.Old) || isMarker(f.New)
}

func isMarker(value []byte) bool {
	text, err := strconv.Unquote(string(value))
	return err == nil && (IsRedacted(text) || text == Redacted)
}

// explain adds a reason.
func (r *Record) explain(reason string) {
	if r.Reason != "" {
		r.Reason += "; "
	}
	r.Reason += reason
}

// isOlder compares versions as the numbers that they are since Kubernetes 1.35. Of other texts it says nothing.
func isOlder(a, b *State) bool {
	first, err := strconv.ParseUint(a.ResourceVersion, 10, 64)
	if err != nil {
		return false
	}
	second, err := strconv.ParseUint(b.ResourceVersion, 10, 64)
	return err == nil && first < second
}
