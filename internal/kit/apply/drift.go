package apply

import (
	"bytes"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/value"
)

// Drifted reports whether applying desired would change current: a desired value differs,
// or the set of fields that the field manager owns does.
func (a *Applier) Drifted(desired Configuration, current client.Object) (bool, error) {
	raw, err := encode(desired)
	if err != nil {
		return false, err
	}
	return a.drifted(Child{Desired: desired, Current: current}, raw)
}

func (a *Applier) drifted(child Child, desired []byte) (bool, error) {
	if a.settled.has(child, desired) {
		return false, nil
	}
	drifted, err := a.compare(child.Desired, child.Current)
	if err == nil && !drifted {
		a.settled.add(child, desired)
	}
	return drifted, err
}

// encode writes a configuration as JSON that means the same in YAML, as which the API
// server reads an apply.
func encode(desired Configuration) ([]byte, error) {
	raw, err := json.Marshal(desired)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", subject(desired), err)
	}
	if !bytes.ContainsFunc(raw, isOddInYAML) {
		return raw, nil
	}
	var escaped bytes.Buffer
	for _, r := range string(raw) {
		if isOddInYAML(r) {
			fmt.Fprintf(&escaped, `\u%04x`, r)
		} else {
			escaped.WriteRune(r)
		}
	}
	return escaped.Bytes(), nil
}

// isOddInYAML tells characters that JSON may hold as they are, and that YAML does not
// allow or takes for the end of a line.
func isOddInYAML(r rune) bool {
	return (r >= 0x7f && r <= 0x9f) || r == 0xfeff || r == 0xfffe || r == 0xffff
}

// compare looks at every field that is desired or owned.
func (a *Applier) compare(desired Configuration, current client.Object) (bool, error) {
	entry := a.ownEntry(current)
	if entry == nil {
		return true, nil
	}
	owned := &fieldpath.Set{}
	if err := owned.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
		return false, fmt.Errorf("read the managed fields of %s: %w", subject(desired), err)
	}
	want, err := value.NewValueReflect(desired)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", subject(desired), err)
	}
	live, err := value.NewValueReflect(current)
	if err != nil {
		return false, fmt.Errorf("read %s: %w", subject(desired), err)
	}
	return !comparison{allocator: value.NewFreelistAllocator()}.same(owned, identity, want, live), nil
}

func (a *Applier) ownEntry(current client.Object) *metav1.ManagedFieldsEntry {
	entries := current.GetManagedFields()
	for i := range entries {
		entry := &entries[i]
		if entry.Manager == a.FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply &&
			entry.Subresource == "" && entry.FieldsV1 != nil {
			return entry
		}
	}
	return nil
}

// Owns reports whether the field manager owns a field of current, given as a path such
// as "spec", "replicas".
func (a *Applier) Owns(current client.Object, path ...any) (bool, error) {
	entry := a.ownEntry(current)
	if entry == nil {
		return false, nil
	}
	owned := &fieldpath.Set{}
	if err := owned.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
		return false, fmt.Errorf("read the managed fields of %q: %w", current.GetName(), err)
	}
	return owned.Has(fieldpath.MakePathOrDie(path...)), nil
}
