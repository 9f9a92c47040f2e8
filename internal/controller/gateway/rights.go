package gateway

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/kit"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// rights keeps the subjects of the ClusterRoleBinding by which the pods of Gateways read the Gateway API: nothing that is in
// no namespace has to be made and deleted with a Gateway. Somebody else makes the binding; one that is missing was left out
// on purpose.
type rights struct {
	kit   *kit.Tools
	kinds *kinds
	owned owned
}

// Reconcile makes the subjects those of the Gateways that are ours.
func (r *rights) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	if !r.kinds.running() {
		return r.kit.Forget(ctx, req.NamespacedName)
	}
	binding := &rbacv1.ClusterRoleBinding{}
	if found, err := r.kit.Get(ctx, types.NamespacedName{Name: desired.RightsName}, binding); !found || err != nil {
		return r.kit.Abort(req.NamespacedName, err)
	}
	wanted, err := r.subjects(ctx)
	if err != nil {
		return r.kit.Abort(req.NamespacedName, err)
	}
	for _, subject := range binding.Subjects {
		// Another operator keeps those of other namespaces.
		if subject.Kind != rbacv1.ServiceAccountKind || !r.kinds.objects.Watches(subject.Namespace) {
			wanted = append(wanted, subject)
		}
	}
	slices.SortFunc(wanted, func(a, b rbacv1.Subject) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
	})
	if equality.Semantic.DeepEqual(binding.Subjects, wanted) {
		return r.kit.Forget(ctx, req.NamespacedName)
	}
	after := binding.DeepCopy()
	after.Subjects = wanted
	patch := client.MergeFromWithOptions(binding, client.MergeFromWithOptimisticLock{})
	if err := r.kit.Client.Patch(ctx, after, patch, client.FieldOwner(FieldManager)); err != nil {
		return r.kit.Abort(req.NamespacedName, outcome.Classify(fmt.Sprintf("ClusterRoleBinding %q", binding.Name), err))
	}
	return r.kit.Forget(ctx, req.NamespacedName)
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
