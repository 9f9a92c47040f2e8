package store

import (
	"strconv"
	"time"

	"github.com/google/uuid"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// typeNumbers are the types as they are stored. They never change.
var typeNumbers = map[change.Type]int64{change.Baseline: 1, change.Created: 2, change.Updated: 3, change.Deleted: 4, change.Gap: 5}

func typeOf(number int64) change.Type {
	for name, n := range typeNumbers {
		if n == number {
			return name
		}
	}
	return ""
}

// The flags of a change, as they are stored.
const (
	flagSnapshot = 1 << iota
	flagSchemaDriven
	flagInGap
	flagWithDefinition
	flagMetadataOnly
	flagTruncated
)

func flagsOf(r *change.Record) int64 {
	var flags int64
	for _, f := range []struct {
		set  bool
		flag int64
	}{
		{r.SchemaDriven, flagSchemaDriven},
		{r.InGap, flagInGap},
		{r.WithDefinition, flagWithDefinition},
		{r.MetadataOnly, flagMetadataOnly},
		{r.Truncated, flagTruncated},
	} {
		if f.set {
			flags |= f.flag
		}
	}
	return flags
}

func setFlags(r *change.Record, flags int64) {
	r.SchemaDriven = flags&flagSchemaDriven != 0
	r.InGap = flags&flagInGap != 0
	r.WithDefinition = flags&flagWithDefinition != 0
	r.MetadataOnly = flags&flagMetadataOnly != 0
	r.Truncated = flags&flagTruncated != 0
}

// storedUID is a UID as it is stored: in 16 bytes if it reads the same afterwards, otherwise as it is.
func storedUID(uid types.UID) any {
	if parsed, err := uuid.Parse(string(uid)); err == nil && parsed.String() == string(uid) {
		return parsed[:]
	}
	return string(uid)
}

func readUID(stored any) (types.UID, error) {
	switch v := stored.(type) {
	case []byte:
		parsed, err := uuid.FromBytes(v)
		if err != nil {
			return "", errDamaged
		}
		return types.UID(parsed.String()), nil
	case string:
		return types.UID(v), nil
	default:
		return "", errDamaged
	}
}

// storedVersion is a resource version as it is stored: as a number if it reads the same afterwards, otherwise as it is.
func storedVersion(version string) any {
	if number, err := strconv.ParseInt(version, 10, 64); err == nil && strconv.FormatInt(number, 10) == version {
		return number
	}
	return version
}

func readVersion(stored any) (string, error) {
	switch v := stored.(type) {
	case int64:
		return strconv.FormatInt(v, 10), nil
	case string:
		return v, nil
	default:
		return "", errDamaged
	}
}

// storedTime is a time in nanoseconds since 1970, and 0 if it is not set.
func storedTime(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

func readTime(stored int64) time.Time {
	if stored == 0 {
		return time.Time{}
	}
	return time.Unix(0, stored).UTC()
}

// minuteOf is the minute of a time. Division rounds down before 1970, too.
func minuteOf(nanoseconds int64) int64 {
	minute := nanoseconds / int64(time.Minute)
	if nanoseconds%int64(time.Minute) < 0 {
		minute--
	}
	return minute
}

func boolNumber(b bool) int64 {
	if b {
		return 1
	}
	return 0
}
