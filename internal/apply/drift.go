package apply

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
)

// identity is what every object states and no field manager owns.
var identity = fieldpath.NewSet(
	fieldpath.MakePathOrDie("apiVersion"),
	fieldpath.MakePathOrDie("kind"),
	fieldpath.MakePathOrDie("metadata", "name"),
	fieldpath.MakePathOrDie("metadata", "namespace"),
)

// Drifted tells whether applying desired would change current: a stated value
// differs, or the set of fields that the field manager owns does.
func (a *Applier) Drifted(desired Configuration, current client.Object) (bool, error) {
	raw, err := encode(desired)
	if err != nil {
		return false, err
	}
	if a.settled.has(current, raw) {
		return false, nil
	}
	drifted, err := a.compare(desired, raw, current)
	if err == nil && !drifted {
		a.settled.add(current, raw)
	}
	return drifted, err
}

func encode(desired Configuration) ([]byte, error) {
	raw, err := json.Marshal(desired)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", subject(desired), err)
	}
	return raw, nil
}

// compare looks at every field. raw is desired in JSON.
func (a *Applier) compare(desired Configuration, raw []byte, current client.Object) (bool, error) {
	entry := a.ownEntry(current)
	if entry == nil {
		return true, nil
	}
	owned := &fieldpath.Set{}
	if err := owned.FromJSON(entry.FieldsV1.GetRawReader()); err != nil {
		return false, fmt.Errorf("read the managed fields of %s: %w", subject(desired), err)
	}
	live, err := a.typedLive(desired, current)
	if err != nil {
		return false, err
	}
	stated, err := a.typedDesired(desired, raw)
	if err != nil {
		return false, err
	}
	// Compared with the schema at hand: the order of keyed lists (env, ports) is the
	// API server's business and no drift.
	comparison, err := live.ExtractItems(owned.Leaves(), typed.WithAppendKeyFields()).Compare(stated)
	if err != nil {
		return false, fmt.Errorf("compare %s: %w", subject(desired), err)
	}
	return !comparison.ExcludeFields(identity).IsSame(), nil
}

// typedLive gives the cached object its schema. Objects from a typed cache carry no
// kind, so it is taken from the configuration.
func (a *Applier) typedLive(desired Configuration, current client.Object) (*typed.TypedValue, error) {
	current.GetObjectKind().SetGroupVersionKind(kindOf(desired))
	live, err := a.Converter.ObjectToTyped(current)
	if err != nil {
		return nil, fmt.Errorf("read the schema of %s: %w", subject(desired), err)
	}
	return live, nil
}

func (a *Applier) typedDesired(desired Configuration, raw []byte) (*typed.TypedValue, error) {
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw); err != nil {
		return nil, fmt.Errorf("decode %s: %w", subject(desired), err)
	}
	stated, err := a.Converter.ObjectToTyped(object)
	if err != nil {
		return nil, fmt.Errorf("read the schema of %s: %w", subject(desired), err)
	}
	return stated, nil
}

func (a *Applier) ownEntry(current client.Object) *metav1.ManagedFieldsEntry {
	for _, entry := range current.GetManagedFields() {
		if entry.Manager == a.FieldManager && entry.Operation == metav1.ManagedFieldsOperationApply &&
			entry.Subresource == "" && entry.FieldsV1 != nil {
			return &entry
		}
	}
	return nil
}

// Owns tells whether the field manager owns a field of current, given as a path such
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
