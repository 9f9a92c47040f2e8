package backuprun

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
		var err error
		if names, err = r.claimsOf(ctx, set); err != nil {
			return nil, err
		}
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

// claimsAtOnce is how many claims are read in one request.
const claimsAtOnce = 500

// claimsOf are the claims of a StatefulSet that there are, by ordinal, tooMany at most: those that its pods use, and those of pods
// that it had before it was scaled down, or before its ordinals began elsewhere. Their number is that of claims in the namespace,
// whatever the spec of the set says. They are read as metadata, past the cache, which has only what Slipway made.
func (r *Reconciler) claimsOf(ctx context.Context, set *appsv1.StatefulSet) ([]string, error) {
	if len(set.Spec.VolumeClaimTemplates) == 0 {
		return nil, nil
	}
	templates := map[string]int{}
	for i := range set.Spec.VolumeClaimTemplates {
		templates[set.Spec.VolumeClaimTemplates[i].Name] = i
	}
	var found []ownClaim
	list := &metav1.PartialObjectMetadataList{}
	for {
		next := &metav1.PartialObjectMetadataList{}
		next.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaimList"))
		if err := r.kit.Live.List(ctx, next, client.InNamespace(set.Namespace), client.Limit(claimsAtOnce), client.Continue(list.Continue)); err != nil {
			return nil, outcome.Classify("the PersistentVolumeClaims of the namespace", err)
		}
		list = next
		for i := range list.Items {
			if claim, ok := ownClaimOf(set, templates, &list.Items[i]); ok {
				found = append(found, claim)
			}
		}
		if list.Continue == "" {
			break
		}
	}
	slices.SortFunc(found, func(a, b ownClaim) int {
		return cmp.Or(cmp.Compare(a.ordinal, b.ordinal), cmp.Compare(a.template, b.template))
	})
	var names []string
	for _, claim := range found[:min(len(found), tooMany)] {
		names = append(names, claim.name)
	}
	return names, nil
}

// ownClaim is a claim of a StatefulSet, by the index of its template.
type ownClaim struct {
	name     string
	ordinal  int64
	template int
}

// ownClaimOf tells whether a claim is of a StatefulSet. Its name says so: <template>-<set>-<ordinal>. A pod uses the claim of its name
// whoever made it. Where the set has no such pod, another set may have had it, for example one whose name ends like this one's: then
// the claim has to have the labels that the set gives to its own.
func ownClaimOf(set *appsv1.StatefulSet, templates map[string]int, claim *metav1.PartialObjectMetadata) (ownClaim, bool) {
	none := ownClaim{}
	at := strings.LastIndexByte(claim.Name, '-')
	if at < 0 {
		return none, false
	}
	text := claim.Name[at+1:]
	ordinal, err := strconv.ParseInt(text, 10, 64)
	if err != nil || strconv.FormatInt(ordinal, 10) != text {
		return none, false
	}
	template, found := strings.CutSuffix(claim.Name[:at], "-"+set.Name)
	index, named := templates[template]
	if !found || !named || !hasPod(set, ordinal) && (!claim.DeletionTimestamp.IsZero() || !isLabelled(set, claim)) {
		return none, false
	}
	return ownClaim{name: claim.Name, ordinal: ordinal, template: index}, true
}

// hasPod tells whether a StatefulSet is to have a pod of an ordinal.
func hasPod(set *appsv1.StatefulSet, ordinal int64) bool {
	replicas, first := int64(1), int64(0)
	if set.Spec.Replicas != nil {
		replicas = int64(*set.Spec.Replicas)
	}
	if set.Spec.Ordinals != nil {
		first = int64(set.Spec.Ordinals.Start)
	}
	return ordinal >= first && ordinal < first+replicas
}

// isLabelled tells whether a claim has the labels that a StatefulSet gives to its claims: those that it selects its pods by.
func isLabelled(set *appsv1.StatefulSet, claim *metav1.PartialObjectMetadata) bool {
	if set.Spec.Selector == nil || len(set.Spec.Selector.MatchLabels) == 0 {
		return false
	}
	for label, value := range set.Spec.Selector.MatchLabels {
		if got, found := claim.Labels[label]; !found || got != value {
			return false
		}
	}
	return true
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
