package rule

import (
	"errors"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/interpreter"
	kjson "sigs.k8s.io/json"

	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/monitor/change"
)

// variables are what expressions see of an object. All rules that look at it share them. They belong to one goroutine.
type variables struct {
	o *Observation
	// object and old are decoded when they are first asked for.
	object, old map[string]any
	changes     any
	oldRead     bool
}

var errUnknown = errors.New("the content of the object is not known")

// read decodes the object.
func (v *variables) read() error {
	if v.object != nil {
		return nil
	}
	if v.o.Object != nil {
		v.object = v.o.Object
		return nil
	}
	object, err := decode(v.o.After)
	v.object = object
	return err
}

// complete returns an error unless the object is known as a whole.
func (v *variables) complete() error {
	if v.o.After.MetadataOnly {
		return errUnknown
	}
	return v.read()
}

// decode reads a state.
func decode(s *change.State) (map[string]any, error) {
	object, err := s.Object()
	if err != nil {
		return object, errUnknown
	}
	return object, nil
}

// ResolveName implements interpreter.Activation.
func (v *variables) ResolveName(name string) (any, bool) {
	switch name {
	case varObject:
		return v.object, true
	case varOld:
		return v.before(), true
	case varChanges:
		if v.changes == nil {
			v.changes = listOf(v.o.Records)
		}
		return v.changes, true
	case varHealth:
		return healthOf(v.o.Health), true
	case varNow:
		return types.Timestamp{Time: v.o.Time}, true
	}
	return nil, false
}

// Parent implements interpreter.Activation.
func (v *variables) Parent() interpreter.Activation { return nil }

func (v *variables) before() any {
	if !v.oldRead {
		v.oldRead = true
		// Another object of the same name is not what this one was.
		if b := v.o.Before; b != nil && b.UID == v.o.After.UID && !b.MetadataOnly {
			v.old, _ = decode(b)
		}
	}
	if len(v.old) == 0 {
		return types.NullValue
	}
	return v.old
}

func healthOf(verdict health.Verdict) map[string]string {
	return map[string]string{
		"state": string(verdict.State), "field": verdict.Field, "value": verdict.Value, "reason": verdict.Reason,
		"message": verdict.Message,
	}
}

// listOf makes of records what expressions see of them.
func listOf(records []change.Record) []map[string]any {
	list := []map[string]any{}
	for i := range records {
		for _, field := range records[i].Fields {
			list = append(list, map[string]any{
				"path": field.Path, "op": string(field.Op), "old": valueOf(field.Old), "new": valueOf(field.New),
			})
		}
	}
	return list
}

func valueOf(raw []byte) any {
	var value any
	if len(raw) == 0 || kjson.UnmarshalCaseSensitivePreserveInts(raw, &value) != nil || value == nil {
		return types.NullValue
	}
	return value
}

// timeIn reads a time of the metadata, the zero time if there is none.
func timeIn(object map[string]any, field string) time.Time {
	meta, _ := object["metadata"].(map[string]any)
	text, _ := meta[field].(string)
	t, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return t
}
