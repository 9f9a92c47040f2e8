package backuprun

import (
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/transfer"
	"github.com/slipway-dev/slipway/internal/mover"
)

// claims returns the names of the claims that a source means, in order. More than a run may copy are refused, before there is
// a name of each.
func (r *Reconciler) claims(ctx context.Context, namespace string, source mover.Source) ([]string, error) {
	key := types.NamespacedName{Namespace: namespace, Name: source.Name}
	var template corev1.PodTemplateSpec
	var names []string
	switch source.Kind {
	case mover.SourceClaim:
		return []string{source.Name}, nil
	case mover.SourceWebApp, mover.SourceDeployment:
		deployment := &appsv1.Deployment{}
		if err := r.source(ctx, key, source, deployment); err != nil {
			return nil, err
		}
		if source.Kind == mover.SourceWebApp && deployment.Labels[slipwayv1alpha1.LabelWebApp] != source.Name {
			return nil, outcome.Waitingf(transfer.Recheck, slipwayv1alpha1.ReasonSourceNotFound, "there is no %s (spec.source of the Backup)", source)
		}
		template = deployment.Spec.Template
	case mover.SourceStatefulSet:
		set := &appsv1.StatefulSet{}
		if err := r.source(ctx, key, source, set); err != nil {
			return nil, err
		}
		template = set.Spec.Template
		names = claimsOf(set)
	}
	names = addMounted(names, &template)
	switch {
	case len(names) > maxVolumes:
		return nil, outcome.Invalidf(slipwayv1alpha1.ReasonInvalid, "%s has more than %d volumes: a Backup takes no more (spec.source of the Backup)", source, maxVolumes)
	case len(names) == 0:
		return nil, outcome.Waitingf(transfer.Recheck, slipwayv1alpha1.ReasonSourceHasNoVolume, "%s has no volume (spec.source of the Backup)", source)
	}
	return names, nil
}

// tooMany is how many names are enough to know that there are too many.
const tooMany = maxVolumes + 1

// claimsOf are the claims that a StatefulSet makes for its pods, tooMany at most.
func claimsOf(set *appsv1.StatefulSet) []string {
	replicas, first := int64(1), int64(0)
	if set.Spec.Replicas != nil {
		replicas = int64(*set.Spec.Replicas)
	}
	if set.Spec.Ordinals != nil {
		first = int64(set.Spec.Ordinals.Start)
	}
	if len(set.Spec.VolumeClaimTemplates) == 0 {
		return nil
	}
	var names []string
	for ordinal := first; ordinal < first+replicas; ordinal++ {
		for i := range set.Spec.VolumeClaimTemplates {
			if len(names) == tooMany {
				return names
			}
			names = append(names, fmt.Sprintf("%s-%s-%d", set.Spec.VolumeClaimTemplates[i].Name, set.Name, ordinal))
		}
	}
	return names
}

// addMounted adds the claims that the pods of a template mount, up to tooMany.
func addMounted(names []string, template *corev1.PodTemplateSpec) []string {
	for i := range template.Spec.Volumes {
		if len(names) == tooMany {
			break
		}
		if claim := template.Spec.Volumes[i].PersistentVolumeClaim; claim != nil && !slices.Contains(names, claim.ClaimName) {
			names = append(names, claim.ClaimName)
		}
	}
	return names
}

func (r *Reconciler) source(ctx context.Context, key types.NamespacedName, source mover.Source, into client.Object) error {
	err := r.kit.Live.Get(ctx, key, into)
	switch {
	case apierrors.IsNotFound(err):
		return outcome.Waitingf(transfer.Recheck, slipwayv1alpha1.ReasonSourceNotFound, "there is no %s (spec.source of the Backup)", source)
	case err != nil:
		return outcome.Classify(source.String(), err)
	default:
		return nil
	}
}
