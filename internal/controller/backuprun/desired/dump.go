package desired

import (
	corev1 "k8s.io/api/core/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/children"
)

// Dump returns the container that runs the command of spec.dump. source is the container of the source's pods, nil where the
// source is no workload; pullSecrets are those of its pods.
func Dump(backup *slipwayv1alpha1.Backup, source *corev1.Container, pullSecrets []corev1.LocalObjectReference) *mover.DumpContainer {
	spec := backup.Spec.Dump
	dump := &mover.DumpContainer{
		Name: backup.DumpName(), Image: spec.Image, Command: spec.Command, PullSecrets: pullSecrets, Resources: spec.Resources,
		MoreEnv: children.Env(spec.Env, spec.EnvFrom), MoreEnvFrom: children.EnvFrom(spec.EnvFrom),
	}
	if source == nil {
		return dump
	}
	dump.Env, dump.EnvFrom = source.Env, source.EnvFrom
	if dump.Image == "" {
		dump.Image, dump.PullPolicy = source.Image, source.ImagePullPolicy
	}
	return dump
}
