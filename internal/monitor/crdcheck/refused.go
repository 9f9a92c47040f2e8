package crdcheck

import (
	"context"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxRefusals is how many reasons are kept for which a definition is refused.
const maxRefusals = 20

// Refused returns why the API server would not accept a definition in place of another one, or as a new one when before is nil.
// A definition that was deployed and passes here may still be refused by admission webhooks.
func Refused(ctx context.Context, before, after *apiextensionsv1.CustomResourceDefinition) []Finding {
	f := &findings{}
	for i := range after.Spec.Versions {
		if err := schemaTooLarge(schemaOf(&after.Spec.Versions[i])); err != nil {
			f.add(Risky, "", TooLarge, "version %s is not looked at: %v", show(after.Spec.Versions[i].Name), err)
			return f.sorted()
		}
	}
	for _, reason := range refusals(ctx, before, after) {
		f.add(Breaking, "", DefinitionRefused, "the API server refuses it: %s", reason)
	}
	return f.sorted()
}

func refusals(ctx context.Context, before, after *apiextensionsv1.CustomResourceDefinition) []string {
	changed, err := internalOf(after)
	if err != nil {
		return []string{shorten(err.Error(), maxMessage)}
	}
	var errs field.ErrorList
	if before == nil {
		changed.Status = apiextensions.CustomResourceDefinitionStatus{}
		stored(changed)
		errs = validation.ValidateCustomResourceDefinition(ctx, changed)
	} else {
		was, err := internalOf(before)
		if err != nil {
			return nil // it is there, so the API server accepted it
		}
		stored(was)
		annotations := changed.Annotations
		changed.Status, changed.ObjectMeta = *was.Status.DeepCopy(), *was.ObjectMeta.DeepCopy()
		changed.Annotations = annotations
		stored(changed)
		errs = validation.ValidateCustomResourceDefinitionUpdate(ctx, changed, was)
	}
	reasons := make([]string, 0, len(errs))
	for _, err := range errs {
		reasons = append(reasons, shorten(shorten(err.Field, maxMessage/2)+": "+messageOf(err), maxMessage))
	}
	slices.Sort(reasons)
	reasons = slices.Compact(reasons)
	return reasons[:min(len(reasons), maxRefusals)]
}

// internalOf returns a definition as the API server has it, with its defaults.
func internalOf(crd *apiextensionsv1.CustomResourceDefinition) (*apiextensions.CustomResourceDefinition, error) {
	crd = crd.DeepCopy()
	apiextensionsv1.SetObjectDefaults_CustomResourceDefinition(crd)
	internal := &apiextensions.CustomResourceDefinition{}
	if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(
		crd, internal, nil,
	); err != nil {
		return nil, err
	}
	if internal.ResourceVersion == "" {
		internal.ResourceVersion = "1" // of a file: an update needs one
	}
	return internal, nil
}

// stored adds the storage version to the versions in which objects may be stored, as the API server does with every write.
func stored(crd *apiextensions.CustomResourceDefinition) {
	for _, version := range crd.Spec.Versions {
		if version.Storage && !slices.Contains(crd.Status.StoredVersions, version.Name) {
			crd.Status.StoredVersions = append(crd.Status.StoredVersions, version.Name)
		}
	}
}
