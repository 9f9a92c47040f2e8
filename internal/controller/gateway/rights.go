package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/kit"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// rights keeps the subjects of the bindings by which the pods of Gateways read the Gateway API: of a ClusterRoleBinding, or of a
// RoleBinding in each namespace to which the operator is limited. So nothing has to be made and deleted with a Gateway that is not
// beside it. Somebody else makes the bindings; one that is missing was left out on purpose.
type rights struct {
	kit   *kit.Tools
	kinds *kinds
	owned owned
	// namespaces are the ones to which the operator is limited. Empty: it works in all.
	namespaces []string
}

// Reconcile makes the subjects those of the Gateways that are ours.
func (r *rights) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if !r.kinds.running() {
		return r.kit.Forget(ctx, req.NamespacedName)
	}
	ours, err := r.subjects(ctx)
	if err != nil {
		return r.kit.Abort(req.NamespacedName, err)
	}
	if len(r.namespaces) == 0 {
		err = r.keepInCluster(ctx, ours)
	}
	for _, namespace := range r.namespaces {
		err = errors.Join(err, r.keepIn(ctx, namespace, ours))
	}
	if err != nil {
		return r.kit.Abort(req.NamespacedName, err)
	}
	return r.kit.Forget(ctx, req.NamespacedName)
}

// keepInCluster keeps the subjects of the ClusterRoleBinding.
func (r *rights) keepInCluster(ctx context.Context, ours []rbacv1.Subject) error {
	binding := &rbacv1.ClusterRoleBinding{}
	if found, err := r.kit.Get(ctx, types.NamespacedName{Name: desired.RightsName}, binding); !found || err != nil {
		return err
	}
	wanted := merged(ours, binding.Subjects, func(subject rbacv1.Subject) bool {
		return subject.Kind != rbacv1.ServiceAccountKind || !r.kinds.objects.Watches(subject.Namespace)
	})
	if equality.Semantic.DeepEqual(binding.Subjects, wanted) {
		return nil
	}
	after := binding.DeepCopy()
	after.Subjects = wanted
	return r.write(ctx, r.kit.Client, binding, after)
}

// keepIn keeps those of the RoleBinding in a namespace. No other operator works there, so no other ServiceAccount is in it.
func (r *rights) keepIn(ctx context.Context, namespace string, ours []rbacv1.Subject) error {
	binding := &rbacv1.RoleBinding{}
	err := r.kinds.objects.Get(ctx, types.NamespacedName{Namespace: namespace, Name: desired.LimitedRightsName}, binding)
	switch {
	case apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("read RoleBinding %q of namespace %q: %w", desired.LimitedRightsName, namespace, err)
	}
	wanted := merged(ours, binding.Subjects, func(subject rbacv1.Subject) bool { return subject.Kind != rbacv1.ServiceAccountKind })
	if equality.Semantic.DeepEqual(binding.Subjects, wanted) {
		return nil
	}
	in, err := r.kinds.objects.Client(binding)
	if err != nil {
		return err
	}
	after := binding.DeepCopy()
	after.Subjects = wanted
	return r.write(ctx, in, binding, after)
}

// write changes a binding. Others may change it as well, so the write is locked.
func (r *rights) write(ctx context.Context, in client.Client, before, after client.Object) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := in.Patch(ctx, after, patch, client.FieldOwner(FieldManager)); err != nil {
		return outcome.Classify(fmt.Sprintf("%T %q", before, client.ObjectKeyFromObject(before)), err)
	}
	return nil
}

// merged are our subjects and those that are to be left alone, in order.
func merged(ours, all []rbacv1.Subject, leave func(rbacv1.Subject) bool) []rbacv1.Subject {
	wanted := slices.Clone(ours)
	for _, subject := range all {
		if leave(subject) {
			wanted = append(wanted, subject)
		}
	}
	slices.SortFunc(wanted, func(a, b rbacv1.Subject) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	return wanted
}

// subjects are the ServiceAccounts of the Gateways that are ours.
func (r *rights) subjects(ctx context.Context) ([]rbacv1.Subject, error) {
	list := &gatewayv1.GatewayList{}
	if err := r.kinds.objects.List(ctx, list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("list the Gateways: %w", err)
	}
	var subjects []rbacv1.Subject
	for i := range list.Items {
		gateway := &list.Items[i]
		ours, err := r.owned.is(ctx, gateway)
		if err != nil {
			return nil, err
		}
		if ours {
			subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: gateway.Namespace, Name: desired.Name(gateway)})
		}
	}
	return subjects, nil
}

// whole is the one request: the subjects are kept all at once.
func whole(context.Context, client.Object) []reconcile.Request {
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: desired.RightsName}}}
}

// setupRights registers what keeps the subjects of the bindings.
func setupRights(mgr ctrl.Manager, options Options, known *kinds, of *Reconciler) error {
	with := outcome.ControllerOptions(1, options.NewQueue)
	with.Reconciler = &rights{kit: of.kit, kinds: known, owned: of.owned, namespaces: of.namespaces}
	built, err := controller.New("gatewayrights", mgr, with)
	if err != nil {
		return fmt.Errorf("build the controller: %w", err)
	}
	through := handler.EnqueueRequestsFromMapFunc(whole)
	if options.limited() {
		err = known.objects.Watch(built.Watch, &rbacv1.RoleBinding{}, through)
	} else {
		err = built.Watch(source.Kind(mgr.GetCache(), client.Object(&rbacv1.ClusterRoleBinding{}), through))
	}
	return errors.Join(
		err,
		known.classes.Watch(built.Watch, &gatewayv1.GatewayClass{}, through, predicate.GenerationChangedPredicate{}),
		known.objects.Watch(built.Watch, &gatewayv1.Gateway{}, through, predicate.GenerationChangedPredicate{}),
	)
}
