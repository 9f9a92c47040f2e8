package kindrole

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/monitor/selection"
)

// Name is that of the ClusterRole. Somebody else makes it, without rules, and binds it to the monitor.
const Name = "slipway-monitor-kinds"

// FieldManager owns the rules of the ClusterRole.
const FieldManager = "slipway-monitor-kinds"

// pause is the least time between two writes, whether they succeed or not. An installer makes hundreds of definitions in a
// few seconds: those of the same second are one write.
const pause = time.Second

// Reconciler keeps the rules.
type Reconciler struct {
	client  client.Client
	kinds   selection.Kinds
	clock   clock.PassiveClock
	metrics *prometheus.GaugeVec

	mu sync.Mutex
	// written is when a write was last tried.
	written time.Time
}

// The rights of the operator for it. It has to escalate, because it gives rights that it does not have.
//
// +kubebuilder:rbac:groups=rbac.authorization.k8s.io,resources=clusterroles,resourceNames=slipway-monitor-kinds,verbs=get;list;watch;patch;escalate
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups=apiregistration.k8s.io,resources=apiservices,verbs=get;list;watch

// Reconcile makes the rules of the ClusterRole those of the definitions. It makes no ClusterRole: one that is missing was left
// out on purpose, and there is nothing to do until somebody makes it.
func (r *Reconciler) Reconcile(ctx context.Context, _ reconcile.Request) (ctrl.Result, error) {
	role := &rbacv1.ClusterRole{}
	if err := r.client.Get(ctx, types.NamespacedName{Name: Name}, role); err != nil {
		if apierrors.IsNotFound(err) {
			r.show(found{})
			return outcome.Result(nil, 0)
		}
		return outcome.Result(fmt.Errorf("read the ClusterRole: %w", err), 0)
	}
	wanted, count, err := r.wanted(ctx)
	if err != nil {
		return outcome.Result(err, 0)
	}
	r.show(count)
	if !role.DeletionTimestamp.IsZero() || equality.Semantic.DeepEqual(role.Rules, wanted) {
		return outcome.Result(nil, 0)
	}
	if left := r.left(); left > 0 {
		return outcome.Result(nil, left)
	}
	if err := r.write(ctx, role, wanted); err != nil {
		return outcome.Result(outcome.Classify(fmt.Sprintf("ClusterRole %q", Name), err), 0)
	}
	log.FromContext(ctx).Info("the kinds that the monitor may read have changed",
		"granted", count.granted, "excluded", count.excluded, "foreign", count.foreign)
	return outcome.Result(nil, 0)
}

// wanted returns the rules that there should be. Both lists are complete: a controller begins when its caches are filled.
func (r *Reconciler) wanted(ctx context.Context) ([]rbacv1.PolicyRule, found, error) {
	definitions, services := listOf(definitionKind), listOf(serviceKind)
	if err := r.client.List(ctx, definitions); err != nil {
		return nil, found{}, fmt.Errorf("list the CustomResourceDefinitions: %w", err)
	}
	if err := r.client.List(ctx, services); err != nil {
		return nil, found{}, fmt.Errorf("list the APIServices: %w", err)
	}
	names := make([]string, 0, len(definitions.Items))
	for i := range definitions.Items {
		names = append(names, definitions.Items[i].Name)
	}
	served := make([]apiService, 0, len(services.Items))
	for i := range services.Items {
		service := &services.Items[i]
		served = append(served, apiService{name: service.Name, ofDefinitions: service.Labels[managedLabel] == managedByDefinitions})
	}
	wanted, count := rules(names, served, r.kinds)
	return wanted, count, nil
}

func (r *Reconciler) show(count found) {
	r.metrics.WithLabelValues("granted").Set(float64(count.granted))
	r.metrics.WithLabelValues("excluded").Set(float64(count.excluded))
	r.metrics.WithLabelValues("foreign").Set(float64(count.foreign))
}

// left returns how long it is until the next write may be tried. Zero: now, and this is the one.
func (r *Reconciler) left() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.clock.Now()
	if left := pause - now.Sub(r.written); left > 0 && left <= pause {
		return left
	}
	r.written = now
	return 0
}

// write applies the rules to the ClusterRole that was seen. One that was made anew meanwhile is left for the next look, and one
// that has gone is not made.
func (r *Reconciler) write(ctx context.Context, seen *rbacv1.ClusterRole, wanted []rbacv1.PolicyRule) error {
	stated := struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        map[string]string   `json:"metadata"`
		Rules           []rbacv1.PolicyRule `json:"rules"`
	}{
		TypeMeta: metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
		Metadata: map[string]string{"name": Name, "uid": string(seen.UID)},
		Rules:    wanted,
	}
	body, err := json.Marshal(stated)
	if err != nil {
		return fmt.Errorf("encode the rules: %w", err)
	}
	answer := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: Name}}
	return r.client.Patch(ctx, answer, client.RawPatch(types.ApplyPatchType, body), client.FieldOwner(FieldManager), client.ForceOwnership)
}
