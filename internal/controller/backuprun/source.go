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
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/backup/transfer"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// sourced are the claims that a source means.
type sourced struct {
	names []string
	// leftOut is how many more there are of pods that a StatefulSet had before, for which a run has no room.
	leftOut int
}

// claims finds the claims that a source means. Those that its pods use are all there, or there is an error. More of them than a
// run may copy are refused, before there is a name of each.
func (r *Reconciler) claims(ctx context.Context, namespace string, source mover.Source) (sourced, error) {
	key := types.NamespacedName{Namespace: namespace, Name: source.Name}
	var template corev1.PodTemplateSpec
	var own ownClaims
	switch source.Kind {
	case mover.SourceClaim:
		return sourced{names: []string{source.Name}}, nil
	case mover.SourceWebApp, mover.SourceDeployment:
		deployment := &appsv1.Deployment{}
		if err := r.source(ctx, key, source, deployment); err != nil {
			return sourced{}, err
		}
		if source.Kind == mover.SourceWebApp && deployment.Labels[slipwayv1alpha1.LabelWebApp] != source.Name {
			return sourced{}, outcome.Waitingf(transfer.Recheck, slipwayv1alpha1.ReasonSourceNotFound,
				"there is no %s (spec.source of the Backup)", source)
		}
		template = deployment.Spec.Template
	case mover.SourceStatefulSet:
		set := &appsv1.StatefulSet{}
		if err := r.source(ctx, key, source, set); err != nil {
			return sourced{}, err
		}
		template = set.Spec.Template
		var err error
		if own, err = r.claimsOf(ctx, set, source); err != nil {
			return sourced{}, err
		}
	}
	found, fits := own.choose(&template)
	switch {
	case !fits:
		return sourced{}, tooManyVolumes(source)
	case len(found.names) == 0:
		return sourced{}, outcome.Waitingf(transfer.Recheck, slipwayv1alpha1.ReasonSourceHasNoVolume,
			"%s has no volume (spec.source of the Backup)", source)
	}
	return found, nil
}

func tooManyVolumes(source mover.Source) error {
	return outcome.Invalidf(slipwayv1alpha1.ReasonInvalid,
		"%s has more than %d volumes: a Backup takes no more (spec.source of the Backup)", source, maxVolumes)
}

// tooMany is how many names are enough to know that there are too many.
const tooMany = maxVolumes + 1

// claimsAtOnce is how many claims are read in one request.
const claimsAtOnce = 500

// claimsOf are the claims of a StatefulSet: those of all pods that it is to have, and those that are left of pods that it had
// before it was scaled down, or before its ordinals began elsewhere. They are read as metadata, past the cache, which has only
// what Slipway made. A set that is to have too many is refused before, so no number in its spec costs anything.
func (r *Reconciler) claimsOf(ctx context.Context, set *appsv1.StatefulSet, source mover.Source) (ownClaims, error) {
	templates := map[string]int{}
	for i := range set.Spec.VolumeClaimTemplates {
		templates[set.Spec.VolumeClaimTemplates[i].Name] = i
	}
	if _, replicas := ordinals(set); replicas*int64(len(templates)) > maxVolumes {
		return ownClaims{}, tooManyVolumes(source)
	}
	if len(templates) == 0 {
		return ownClaims{}, nil
	}
	var found []ownClaim
	list := &metav1.PartialObjectMetadataList{}
	for {
		next := &metav1.PartialObjectMetadataList{}
		next.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaimList"))
		if err := r.kit.Live.List(ctx, next, client.InNamespace(set.Namespace), client.Limit(claimsAtOnce),
			client.Continue(list.Continue)); err != nil {
			return ownClaims{}, outcome.Classify("the PersistentVolumeClaims of the namespace", err)
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
	slices.SortFunc(found, compareOwn)
	own := ownClaims{}
	for _, claim := range found {
		if hasPod(set, claim.ordinal) {
			own.present = append(own.present, claim)
		} else {
			own.former = append(own.former, claim)
		}
	}
	return own, own.refuseMissing(set, source)
}

// ownClaims are the claims of a StatefulSet, each list by ordinal: of pods that it is to have, and of those that it had before.
type ownClaims struct {
	present, former []ownClaim
}

// refuseMissing refuses a StatefulSet of which a claim is not there that one of its pods is to have: a copy without the volume
// would pass for one of the whole. There are maxVolumes of such claims at most.
func (o ownClaims) refuseMissing(set *appsv1.StatefulSet, source mover.Source) error {
	var missing []string
	first, replicas := ordinals(set)
	for ordinal := first; ordinal < first+replicas; ordinal++ {
		for i := range set.Spec.VolumeClaimTemplates {
			name := set.Spec.VolumeClaimTemplates[i].Name + "-" + set.Name + "-" + strconv.FormatInt(ordinal, 10)
			if !slices.ContainsFunc(o.present, func(claim ownClaim) bool { return claim.name == name }) {
				missing = append(missing, name)
			}
		}
	}
	switch len(missing) {
	case 0:
		return nil
	case 1:
		return outcome.Waitingf(transfer.Recheck, slipwayv1alpha1.ReasonSourceNotFound,
			"there is no PersistentVolumeClaim %q, which a pod of %s is to have (spec.source of the Backup)", missing[0], source)
	default:
		return outcome.Waitingf(transfer.Recheck, slipwayv1alpha1.ReasonSourceNotFound,
			"there is no PersistentVolumeClaim %q, nor are %d more that pods of %s are to have (spec.source of the Backup)", missing[0],
			len(missing)-1, source)
	}
}

// choose returns what a run copies, and whether that fits: what pods use comes first, and what is left of former pods gets the
// room that there is after that, the lowest ordinals first. template is that of the pods.
func (o ownClaims) choose(template *corev1.PodTemplateSpec) (found sourced, fits bool) {
	var present []string
	for _, claim := range o.present {
		present = append(present, claim.name)
	}
	present = addMounted(present, template)
	if len(present) > maxVolumes {
		return sourced{}, false
	}
	former := slices.DeleteFunc(slices.Clone(o.former), func(claim ownClaim) bool { return slices.Contains(present, claim.name) })
	room := min(maxVolumes-len(present), len(former))
	own := slices.Concat(o.present, former[:room])
	slices.SortFunc(own, compareOwn)
	for _, claim := range own {
		found.names = append(found.names, claim.name)
	}
	found.names = append(found.names, present[len(o.present):]...)
	found.leftOut = len(former) - room
	return found, true
}

// ownClaim is a claim of a StatefulSet, by the index of its template.
type ownClaim struct {
	name     string
	ordinal  int64
	template int
}

func compareOwn(a, b ownClaim) int {
	return cmp.Or(cmp.Compare(a.ordinal, b.ordinal), cmp.Compare(a.template, b.template))
}

// ownClaimOf reports whether a claim is of a StatefulSet. Its name says so: <template>-<set>-<ordinal>. A pod uses the claim of its name
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

// hasPod reports whether a StatefulSet is to have a pod of an ordinal.
func hasPod(set *appsv1.StatefulSet, ordinal int64) bool {
	first, replicas := ordinals(set)
	return ordinal >= first && ordinal < first+replicas
}

// ordinals are those of the pods that a StatefulSet is to have: the first one, and how many there are.
func ordinals(set *appsv1.StatefulSet) (first, replicas int64) {
	replicas = 1
	if set.Spec.Replicas != nil {
		replicas = int64(*set.Spec.Replicas)
	}
	if set.Spec.Ordinals != nil {
		first = int64(set.Spec.Ordinals.Start)
	}
	return first, replicas
}

// isLabelled reports whether a claim has the labels that a StatefulSet gives to its claims: those that it selects its pods by.
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
		return outcome.Waitingf(
			transfer.Recheck, slipwayv1alpha1.ReasonSourceNotFound, "there is no %s (spec.source of the Backup)", source,
		)
	case err != nil:
		return outcome.Classify(source.String(), err)
	default:
		return nil
	}
}
