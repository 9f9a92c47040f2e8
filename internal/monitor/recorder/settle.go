package recorder

import (
	"cmp"
	"slices"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

const (
	// apiVersionPath is a field that nobody writes: it says at which version the kind is followed.
	apiVersionPath = ".apiVersion"
	otherVersion   = "the kind is followed at another version than before: fields may differ because of that"
	otherReading   = "nobody wrote this: how the objects of the kind read has changed with its definition"
)

// settle books no change to somebody who has not made it. The version at which a kind is followed is no change of an object. What
// differs because the definition does becomes a record of its own, which is nobody's, before that of who wrote the rest. As long as
// both states are of one version, and were read by one definition, somebody wrote all of it, whatever managedFields say: they are
// written by users, too, and nobody owns what a mutating webhook or the API server itself adds to a write.
func settle(records []change.Record, before, after *change.State) []change.Record {
	kept := make([]change.Record, 0, len(records))
	for i := range records {
		r := records[i]
		all := len(r.Fields)
		r.Fields = slices.DeleteFunc(slices.Clone(r.Fields), func(f change.Field) bool { return f.Path == apiVersionPath })
		converted := len(r.Fields) < all
		if r.Type != change.Updated {
			kept = append(kept, r)
			continue
		}
		if converted && len(r.Fields) == 0 && !r.Truncated && !r.MetadataOnly {
			continue
		}
		if converted {
			r.Reason = cmp.Or(r.Reason, otherVersion)
		}
		kept = append(kept, split(r, before, after, converted)...)
	}
	return kept
}

// split parts the fields of an update that nobody wrote from the others. One that is cut off is left as it is: nobody knows the rest.
func split(r change.Record, before, after *change.State, converted bool) []change.Record {
	if r.SchemaDriven || r.MetadataOnly || r.Truncated || before == nil || after == nil || !converted && !redefined(before, after) {
		return []change.Record{r}
	}
	written, rest := change.Written(before, after, r.Fields, converted)
	if len(rest) == 0 {
		return []change.Record{r}
	}
	read := r
	read.Fields, read.SchemaDriven, read.Actor = rest, true, change.Actor{Confidence: change.Unknown}
	read.ResourceVersion, read.Generation, read.Reason = before.ResourceVersion, before.Generation, otherReading
	if len(written) == 0 {
		return []change.Record{read}
	}
	read.Folded = 0
	r.Fields, r.Actor = written, change.Attribute(before, after, written)
	if r.Reason == otherVersion {
		r.Reason = ""
	}
	return []change.Record{read, r}
}

// redefined reports whether the definition has changed from one state to the other. Of a state that does not say by which it was read,
// nobody knows.
func redefined(before, after *change.State) bool {
	return before.Definition != 0 && after.Definition != 0 && before.Definition != after.Definition
}
