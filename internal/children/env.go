package children

import (
	"slices"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// Env lists the variables of a container by name: values, and single keys of Secrets and ConfigMaps. Of several sources the
// last one wins, and values win over all, because a name can stand in the list only once. A variable that a value refers to
// comes before it.
func Env(values map[string]slipwayv1alpha1.EnvValue, sources []slipwayv1alpha1.EnvFromSource) []*corev1ac.EnvVarApplyConfiguration {
	byName := map[string]*corev1ac.EnvVarApplyConfiguration{}
	for _, source := range sources {
		for _, key := range source.Keys {
			name := source.Prefix + key
			byName[name] = corev1ac.EnvVar().WithName(name).WithValueFrom(keySource(source, key))
		}
	}
	for name, value := range values {
		byName[name] = corev1ac.EnvVar().WithName(name).WithValue(string(value))
	}
	names := make([]string, 0, len(byName))
	for name := range byName {
		names = append(names, name)
	}
	slices.Sort(names)
	list := make([]*corev1ac.EnvVarApplyConfiguration, 0, len(names))
	for _, name := range names {
		list = append(list, byName[name])
	}
	return InOrder(list)
}

func keySource(source slipwayv1alpha1.EnvFromSource, key string) *corev1ac.EnvVarSourceApplyConfiguration {
	if source.SecretRef != nil {
		selector := corev1ac.SecretKeySelector().WithName(source.SecretRef.Name).WithKey(key)
		if source.Optional {
			selector.WithOptional(true)
		}
		return corev1ac.EnvVarSource().WithSecretKeyRef(selector)
	}
	selector := corev1ac.ConfigMapKeySelector().WithName(source.ConfigMapRef.Name).WithKey(key)
	if source.Optional {
		selector.WithOptional(true)
	}
	return corev1ac.EnvVarSource().WithConfigMapKeyRef(selector)
}

// EnvFrom lists the sources that are used whole.
func EnvFrom(sources []slipwayv1alpha1.EnvFromSource) []*corev1ac.EnvFromSourceApplyConfiguration {
	var list []*corev1ac.EnvFromSourceApplyConfiguration
	for _, source := range sources {
		if len(source.Keys) > 0 {
			continue
		}
		from := corev1ac.EnvFromSource()
		if source.Prefix != "" {
			from.WithPrefix(source.Prefix)
		}
		if source.SecretRef != nil {
			ref := corev1ac.SecretEnvSource().WithName(source.SecretRef.Name)
			if source.Optional {
				ref.WithOptional(true)
			}
			from.WithSecretRef(ref)
		} else {
			ref := corev1ac.ConfigMapEnvSource().WithName(source.ConfigMapRef.Name)
			if source.Optional {
				ref.WithOptional(true)
			}
			from.WithConfigMapRef(ref)
		}
		list = append(list, from)
	}
	return list
}
