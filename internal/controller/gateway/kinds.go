package gateway

import (
	"errors"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/kit/optional"
)

// Budget is what is kept in memory of the Gateway API.
type Budget struct {
	// Classes has GatewayClasses.
	Classes optional.Budget
	// Objects has Gateways, HTTPRoutes, GRPCRoutes and ReferenceGrants, and the Services and Namespaces that they refer to.
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
	class := &gatewayv1.GatewayClass{}
	classes, err := optional.New(mgr, optional.Options{Budget: options.Budget.Classes, NewCache: options.NewCache, Required: []client.Object{class}})
	if err != nil {
		return nil, err
	}
	objects, err := optional.New(mgr, optional.Options{
		Budget: options.Budget.Objects, NewCache: options.NewCache, Required: []client.Object{&gatewayv1.Gateway{}}, OnDemand: true,
	})
	if err != nil {
		return nil, err
	}
	return &kinds{classes: classes, objects: objects}, nil
}

// running tells that classes and Gateways can be read. Before that nobody knows what there is.
func (k *kinds) running() bool { return k.classes.Running() && k.objects.Running() }

// start looks for them.
func (k *kinds) start() error { return errors.Join(k.objects.Setup(), k.classes.Setup()) }
