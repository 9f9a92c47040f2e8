package change

import "strings"

// Written tells the fields of a change that somebody wrote from those that nobody did. It is asked where that is known to be possible: the
// definition of the kind has changed, and with it how its objects read, or another version of the kind is followed. Such fields differ at
// the next write of anybody, who has nothing to do with them. converted reports whether the two states are of different versions.
//
// What somebody writes is owned by somebody. So nobody wrote a field that nobody owns, or owned before it was removed. After a conversion
// that is not enough: a field that has another name or form is owned by who wrote it long ago. There only those count as written that
// belong to an entry of managedFields which is new or changed. Of metadata, all are written: the API server itself writes some of it.
// If managedFields tell nothing, now or before (a user may have emptied them), everything counts as written.
func Written(before, after *State, fields []Field, converted bool) (written, rest []Field) {
	owners := readOwners(after)
	old := readOwners(before)
	if len(owners) == 0 || len(old) == 0 {
		return fields, nil
	}
	wrote := false
	for i := range owners {
		owners[i].compare(old)
		wrote = wrote || owners[i].wrote
	}
	if converted && !wrote {
		return fields, nil // the entries only say the second of a write
	}
	for _, f := range fields {
		if isWritten(f, owners, old, converted) {
			written = append(written, f)
		} else {
			rest = append(rest, f)
		}
	}
	return written, rest
}

func isWritten(f Field, now, old []owner, converted bool) bool {
	steps, err := parsePath(f.Path)
	if err != nil || f.Path == ".metadata" || strings.HasPrefix(f.Path, ".metadata.") || strings.HasPrefix(f.Path, ".metadata[") {
		return true
	}
	for i := range now {
		if !converted && owns(now[i].fields, steps) > 0 {
			return true
		}
		if claimed := now[i]; converted && claimed.wrote {
			claimed.claims = 0
			if claimed.claim(f.Op, steps); claimed.claims > 0 {
				return true
			}
		}
	}
	for i := range old {
		if !converted && f.Op == Removed && owns(old[i].fields, steps) > 0 {
			return true
		}
	}
	return false
}
