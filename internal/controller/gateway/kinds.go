package gateway

import (
	"context"
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	"github.com/slipway-dev/slipway/internal/kit/optional"
)

// Budget is what is kept in memory of the Gateway API.
type Budget struct {
	// Classes has GatewayClasses.
	Classes optional.Budget
	// Objects has Gateways, ListenerSets, routes and ReferenceGrants, and the Services and Namespaces that they refer to.
	// Where the operator is limited to some namespaces, it has the RoleBindings of the pods, and no Namespaces.
	// Nothing of it is kept before there is a class of ours.
	Objects optional.Budget
}

// Namespace is the kind as it is cached: its metadata.
func Namespace() *metav1.PartialObjectMetadata {
	namespace := &metav1.PartialObjectMetadata{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	return namespace
}

// kinds are those that a cluster need not have.
type kinds struct {
	// classes has GatewayClasses.
	classes *optional.Kinds
	// objects has everything else. It begins with the first class of ours, so classes of others cost nothing.
	objects *optional.Kinds
}

func newKinds(mgr ctrl.Manager, options Options) (*kinds, error) {
	classes, err := newClasses(mgr, options)
	if err != nil {
		return nil, err
	}
	objects, err := optional.New(mgr, optional.Options{
		Budget: options.Budget.Objects, NewCache: options.NewCache, Required: []client.Object{&gatewayv1.Gateway{}}, OnDemand: true,
		// The Gateway API has the newer version since v1.5, and clusters have older definitions for years.
		Older: map[client.Object]client.Object{&gatewayv1.ReferenceGrant{}: &gatewayv1beta1.ReferenceGrant{}},
	})
	if err != nil {
		return nil, err
	}
	return &kinds{classes: classes, objects: objects}, nil
}

// newClasses are GatewayClasses. They are in no namespace, so an operator for some namespaces need not have the right to read them.
func newClasses(mgr ctrl.Manager, options Options) (*optional.Kinds, error) {
	return optional.New(mgr, optional.Options{
		Budget: options.Budget.Classes, NewCache: options.NewCache, Required: []client.Object{&gatewayv1.GatewayClass{}},
		MayBeForbidden: options.limited(),
	})
}

// running reports whether classes and Gateways can be read. Before that nobody knows what there is.
func (k *kinds) running() bool { return k.classes.Running() && k.objects.Running() }

// start looks for them.
func (k *kinds) start() error { return errors.Join(k.objects.Setup(), k.classes.Setup()) }

// grants reads ReferenceGrants in the version that the cluster has. The versions differ in nothing but their name.
func (k *kinds) grants(ctx context.Context, from client.Reader, options ...client.ListOption) ([]*gatewayv1.ReferenceGrant, error) {
	older := &gatewayv1beta1.ReferenceGrantList{}
	if k.hasOlderGrants() {
		if err := from.List(ctx, older, options...); err != nil {
			return nil, err
		}
	}
	// Asked again: when the newer version is found between the two, the list of the older one is empty.
	if k.hasOlderGrants() {
		grants := make([]*gatewayv1.ReferenceGrant, 0, len(older.Items))
		for i := range older.Items {
			grants = append(grants, (*gatewayv1.ReferenceGrant)(&older.Items[i]))
		}
		return grants, nil
	}
	newer := &gatewayv1.ReferenceGrantList{}
	err := from.List(ctx, newer, options...)
	return pointers(newer.Items), err
}

// hasOlderGrants reports whether the cluster has only the older version.
func (k *kinds) hasOlderGrants() bool { return k.objects.Has(&gatewayv1beta1.ReferenceGrant{}) }

// hasGrants reports whether the cluster has ReferenceGrants, in whichever version.
func (k *kinds) hasGrants() bool {
	return k.objects.Has(&gatewayv1.ReferenceGrant{}) || k.hasOlderGrants()
}
