package webapp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/kit/pullsecret"
	"github.com/slipway-dev/slipway/internal/kit/watch"
	"github.com/slipway-dev/slipway/internal/workload"
)

// scope is what one reconcile knows. The phases fill it in the order of its fields;
// status is computed from it at the end.
type scope struct {
	// app is the WebApp as the cache has it. Its status is replaced at the end.
	app *slipwayv1alpha1.WebApp

	// The children as the cache has them, empty (no UID) where there is none. Applying
	// overwrites them with the API server's answer. Set by load.
	deployment *appsv1.Deployment
	service    *corev1.Service
	autoscaler *autoscalingv2.HorizontalPodAutoscaler
	budget     *policyv1.PodDisruptionBudget
	claim      *corev1.PersistentVolumeClaim
	// revisions are the good revisions, the last one last. Set by load.
	revisions []storedRevision
	// drafts are the revisions that were applied and are not good: they were not completely rolled out since, or not for long
	// enough. Set by load.
	drafts []storedRevision
	// replicaSets are the metadata of the Deployment's ReplicaSets, shared with the cache
	// too. Set by load.
	replicaSets []metav1.PartialObjectMetadata
	// pods are the pods of the Deployment, by name, shared with the cache: not to be
	// changed. Set by load.
	pods []corev1.Pod

	// config is the content of the referenced Secrets and ConfigMaps. Set by resolveConfig.
	config config
	// pullSecrets is what was found of the Secrets to pull the image with. Set by Reconcile.
	pullSecrets pullsecret.Looked

	// wanted is the revision that the spec asks for; its name is empty while the config
	// that it needs is missing. Set by chooseRevision.
	wanted namedRevision
	// intent identifies what the user asks for. It is empty while nobody can tell,
	// because the config is missing or could not be read. Set by chooseRevision.
	intent string
	// specIntent identifies what the spec alone asks for. Set by chooseRevision.
	specIntent string
	// target is the revision to run: wanted, or the last good one. Its name is empty
	// when there is none to run yet. Set by chooseRevision.
	target namedRevision
	// template is the pod template of the target. Set by chooseRevision.
	template *desired.PodTemplate
	// refusedField is the field of the stored template for which template is another one.
	// Empty: it is as stored, or none was. Set by chooseRevision.
	refusedField string

	// applied reports whether the Deployment is of the target, as far as it was desired. Set by
	// applyChildren.
	applied bool
	// drifted reports whether something of a paused application is not as it would be made.
	// Set by applyChildren.
	drifted bool

	// looked reports whether what refuses pods was looked at again, and refusal is what is left of it, or nil. Set by kit.LookAgain.
	looked  bool
	refusal *health.Refusal

	// events are those of pods whose status does not say what keeps them from serving, by
	// the UID of the pod. Set by listen.
	events map[types.UID][]corev1.Event

	// rollout is the verdict on the Deployment. Set by judge.
	rollout rollout

	// err is what went wrong in the phases.
	err error
	// recheck is when to look again though nothing changes; zero: never.
	recheck outcome.Recheck
}

// namedRevision is a revision and its name.
type namedRevision struct {
	name string
	// stored is the UID of the ControllerRevision that it was read from, empty where it was
	// read from none.
	stored types.UID
	desired.Revision
}

// storedRevision is a revision that was applied, as kept in a ControllerRevision.
type storedRevision struct {
	namedRevision
	number int64
	object *appsv1.ControllerRevision
}

// lastGood returns the revision that was last completely rolled out and has proven itself, or nil.
func (s *scope) lastGood() *storedRevision {
	if len(s.revisions) == 0 {
		return nil
	}
	return &s.revisions[len(s.revisions)-1]
}

// load reads the WebApp and everything that belongs to it from the cache. It returns
// nil when the WebApp is gone.
func (r *Reconciler) load(ctx context.Context, key types.NamespacedName) (*scope, error) {
	s := &scope{
		app:        &slipwayv1alpha1.WebApp{},
		deployment: &appsv1.Deployment{},
		service:    &corev1.Service{},
		autoscaler: &autoscalingv2.HorizontalPodAutoscaler{},
		budget:     &policyv1.PodDisruptionBudget{},
		claim:      &corev1.PersistentVolumeClaim{},
	}
	if found, err := r.kit.Get(ctx, key, s.app); !found || err != nil {
		return nil, err
	}
	name := desired.Name(s.app)
	err := errors.Join(
		apply.Load(ctx, r.kit.Applier, s.app, name, s.deployment),
		apply.Load(ctx, r.kit.Applier, s.app, name, s.service),
		apply.Load(ctx, r.kit.Applier, s.app, name, s.autoscaler),
		apply.Load(ctx, r.kit.Applier, s.app, name, s.budget),
	)
	if s.app.Spec.Storage != nil {
		err = errors.Join(err, apply.Load(ctx, r.kit.Applier, s.app, desired.VolumeName(s.app), s.claim))
	}
	if err != nil {
		return nil, err
	}
	if err := r.loadLists(ctx, s); err != nil {
		return s, err
	}
	return s, nil
}

// children are those that exist, and the Secrets and ConfigMaps that the spec names as the cache shows them.
func (s *scope) children() []client.Object {
	all := append(apply.Existing(s.deployment, s.service, s.autoscaler, s.budget, s.claim), s.config.seen...)
	return append(all, s.pullSecrets.Seen...)
}

func (r *Reconciler) loadLists(ctx context.Context, s *scope) error {
	pods, err := watch.Pods(ctx, r.kit.Client, s.app, indexWebApp)
	if err != nil {
		return err
	}
	replicaSets, err := watch.ReplicaSets(ctx, r.kit.Client, s.app, indexWebApp)
	if err != nil {
		return err
	}
	revisions := &appsv1.ControllerRevisionList{}
	if err := r.kit.Client.List(ctx, revisions, watch.OwnedBy(s.app, indexWebApp)); err != nil {
		return fmt.Errorf("list ControllerRevisions: %w", err)
	}
	// Pods and ReplicaSets of others may have the labels too.
	s.pods = workload.PodsOf(s.deployment, replicaSets, pods)
	s.replicaSets = workload.ReplicaSetsOf(s.deployment, replicaSets)
	s.decodeRevisions(r.kit.Applier, revisions.Items)
	return nil
}

// decodeRevisions keeps the application's own revisions, in order. One that cannot be
// read is an error of the reconcile: status has to say so.
func (s *scope) decodeRevisions(applier *apply.Applier, objects []appsv1.ControllerRevision) {
	for i := range objects {
		object := &objects[i]
		if !applier.Ours(s.app, object) || !object.DeletionTimestamp.IsZero() {
			continue
		}
		stored := storedRevision{number: object.Revision, object: object}
		stored.name, stored.stored = object.Name, object.UID
		if err := json.Unmarshal(object.Data.Raw, &stored.Revision); err != nil {
			s.err = noRevision(object.Name)
			continue
		}
		if stored.number == desired.DraftNumber {
			s.drafts = append(s.drafts, stored)
			continue
		}
		s.revisions = append(s.revisions, stored)
	}
	slices.SortFunc(s.revisions, func(a, b storedRevision) int {
		if a.number != b.number {
			return int(a.number - b.number)
		}
		return strings.Compare(a.name, b.name)
	})
}

func noRevision(name string) *outcome.Error {
	return outcome.Invalidf(slipwayv1alpha1.ReasonInvalid, "ControllerRevision %q does not hold a revision: delete it", name)
}
