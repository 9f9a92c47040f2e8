package desired

import (
	"fmt"

	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// storageVolume is the name of the application's volume in the pod.
const storageVolume = "data"

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
