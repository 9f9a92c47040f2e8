package why

import (
	"fmt"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

const (
	kindSecret    = "Secret"
	kindConfigMap = "ConfigMap"
)

// configUse is one field of a spec that refers to a Secret or ConfigMap.
type configUse struct {
	kind string
	name string
	// keys are the keys that must exist.
	keys []string
	// field is the path of the field.
	field string
}

// configUses lists the Secrets and ConfigMaps that a spec requires, in the order of the
// spec.
func configUses(spec slipwayv1alpha1.WebAppSpec) []configUse {
	var uses []configUse
	add := func(field string, secret, configMap *slipwayv1alpha1.LocalReference, keys []string, optional bool) {
		use := configUse{keys: keys}
		switch {
		case optional:
			return
		case secret != nil:
			use.kind, use.name, use.field = kindSecret, secret.Name, field+".secretRef"
		case configMap != nil:
			use.kind, use.name, use.field = kindConfigMap, configMap.Name, field+".configMapRef"
		default:
			return
		}
		uses = append(uses, use)
	}
	for i, source := range spec.EnvFrom {
		add(fmt.Sprintf("spec.envFrom[%d]", i), source.SecretRef, source.ConfigMapRef, source.Keys, source.Optional)
	}
	for i, source := range spec.Files {
		add(fmt.Sprintf("spec.files[%d]", i), source.SecretRef, source.ConfigMapRef, source.Keys, source.Optional)
	}
	for i := range spec.ImagePullSecrets {
		uses = append(uses,
			configUse{kind: kindSecret, name: spec.ImagePullSecrets[i].Name, field: fmt.Sprintf("spec.imagePullSecrets[%d]", i)})
	}
	return uses
}
