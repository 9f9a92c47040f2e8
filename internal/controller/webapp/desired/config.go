package desired

import (
	"fmt"
	"slices"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// storageVolume is the name of the application's volume in the pod.
const storageVolume = "data"

// env lists the container's variables by name. Single keys of Secrets and ConfigMaps
// come first in precedence order and spec.env wins, because a name can stand in the
// list only once.
func env(spec slipwayv1alpha1.WebAppSpec) []*corev1ac.EnvVarApplyConfiguration {
	byName := map[string]*corev1ac.EnvVarApplyConfiguration{}
	for _, source := range spec.EnvFrom {
		for _, key := range source.Keys {
			name := source.Prefix + key
			byName[name] = corev1ac.EnvVar().WithName(name).WithValueFrom(keySource(source, key))
		}
	}
	for name, value := range spec.Env {
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
	return list
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

// envFrom lists the sources that are used whole.
func envFrom(spec slipwayv1alpha1.WebAppSpec) []*corev1ac.EnvFromSourceApplyConfiguration {
	var list []*corev1ac.EnvFromSourceApplyConfiguration
	for _, source := range spec.EnvFrom {
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

func volumes(app *slipwayv1alpha1.WebApp, spec slipwayv1alpha1.WebAppSpec) []*corev1ac.VolumeApplyConfiguration {
	var list []*corev1ac.VolumeApplyConfiguration
	for i, source := range spec.Files {
		list = append(list, fileVolume(i, source))
	}
	if spec.Storage != nil {
		list = append(list, corev1ac.Volume().WithName(storageVolume).WithPersistentVolumeClaim(
			corev1ac.PersistentVolumeClaimVolumeSource().WithClaimName(VolumeName(app))))
	}
	return list
}

func fileVolume(index int, source slipwayv1alpha1.FileSource) *corev1ac.VolumeApplyConfiguration {
	var items []*corev1ac.KeyToPathApplyConfiguration
	for _, key := range source.Keys {
		items = append(items, corev1ac.KeyToPath().WithKey(key).WithPath(key))
	}
	volume := corev1ac.Volume().WithName(fileVolumeName(index))
	if source.SecretRef != nil {
		secret := corev1ac.SecretVolumeSource().WithSecretName(source.SecretRef.Name).WithItems(items...)
		if source.Optional {
			secret.WithOptional(true)
		}
		return volume.WithSecret(secret)
	}
	configMap := corev1ac.ConfigMapVolumeSource().WithName(source.ConfigMapRef.Name).WithItems(items...)
	if source.Optional {
		configMap.WithOptional(true)
	}
	return volume.WithConfigMap(configMap)
}

func volumeMounts(spec slipwayv1alpha1.WebAppSpec) []*corev1ac.VolumeMountApplyConfiguration {
	var list []*corev1ac.VolumeMountApplyConfiguration
	for i, source := range spec.Files {
		list = append(list, corev1ac.VolumeMount().
			WithName(fileVolumeName(i)).WithMountPath(source.MountPath).WithReadOnly(true))
	}
	if spec.Storage != nil {
		list = append(list, corev1ac.VolumeMount().
			WithName(storageVolume).WithMountPath(spec.Storage.MountPath))
	}
	return list
}

func fileVolumeName(index int) string { return fmt.Sprintf("files-%d", index) }
