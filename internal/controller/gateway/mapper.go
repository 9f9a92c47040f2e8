package gateway

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/kit/watch"
)

const (
	// indexGateway finds pods by the label with the name of their Gateway, and Gateways by that label.
	indexGateway = "slipway.dev/gateway"
	// indexClass finds Gateways by their class.
	indexClass = "slipway.dev/class"
	// indexParameters finds Gateways by the GatewayParameters that they name themselves.
	indexParameters = "slipway.dev/parameters"
	// indexPullSecret finds GatewayParameters by the Secrets that images are pulled with.
	indexPullSecret = "slipway.dev/pull-secret"
	// indexSecret finds Gateways and ListenerSets by the Secrets that listeners name, and by the namespace of each that is not
	// their own, and GatewayPolicies by the Secrets that they name.
	indexSecret = "slipway.dev/secret"
	// indexBundle finds Gateways and BackendTLSPolicies by the ConfigMaps with authorities that they name, and Gateways by the
	// namespace of each that is not their own.
	indexBundle = "slipway.dev/bundle"
	// indexParent finds routes by the Gateways and ListenerSets that they name or have an entry of ours for, and ListenerSets by the
	// Gateway that they name.
	indexParent = "slipway.dev/parent"
	// indexEntry finds routes by the Gateways and ListenerSets that they have an entry of ours for.
	indexEntry = "slipway.dev/entry"
	// indexBackend finds routes by the Services that they name, and by the namespace of each that is not their own, and
	// GatewayPolicies by the Services that they name.
	indexBackend = "slipway.dev/backend"
)

// ofNamespace is the value in an index for anything in another namespace. No name is empty.
func ofNamespace(namespace string) string { return namespace + "/" }

// ofSet is the value in an index of routes for a ListenerSet. That for a Gateway has one slash.
func ofSet(name types.NamespacedName) string { return "listenersets/" + name.String() }

func names(list []types.NamespacedName, from string) []string {
	values := make([]string, 0, len(list))
	for _, name := range list {
		values = append(values, name.String())
		if name.Namespace != from {
			values = append(values, ofNamespace(name.Namespace))
		}
	}
	return values
}

func labelIndex(object client.Object) []string {
	if gateway, ok := object.(*gatewayv1.Gateway); ok {
		return []string{desired.LabelValue(gateway)}
	}
	return nil
}

func classIndex(object client.Object) []string {
	if gateway, ok := object.(*gatewayv1.Gateway); ok {
		return []string{string(gateway.Spec.GatewayClassName)}
	}
	return nil
}

func parametersIndex(object client.Object) []string {
	gateway, ok := object.(*gatewayv1.Gateway)
	if !ok || gateway.Spec.Infrastructure == nil || gateway.Spec.Infrastructure.ParametersRef == nil {
		return nil
	}
	return []string{types.NamespacedName{Namespace: gateway.Namespace, Name: gateway.Spec.Infrastructure.ParametersRef.Name}.String()}
}

// secretIndex has the Secret with the copies, too: what somebody does to it is undone.
func secretIndex(object client.Object) []string {
	if set, is := object.(*gatewayv1.ListenerSet); is {
		return names(gatewayapi.CertificatesOfSet(set), set.Namespace)
	}
	if policy, is := object.(*slipwayv1alpha1.GatewayPolicy); is {
		return names(gatewayapi.SecretsOfGatewayPolicy(policy), policy.Namespace)
	}
	gateway, ok := object.(*gatewayv1.Gateway)
	if !ok {
		return nil
	}
	copies := types.NamespacedName{Namespace: gateway.Namespace, Name: desired.CopiesName(gateway)}
	return names(append(gatewayapi.Certificates(gateway), copies), gateway.Namespace)
}

func bundleIndex(object client.Object) []string {
	switch of := object.(type) {
	case *gatewayv1.Gateway:
		return names(gatewayapi.Bundles(of), of.Namespace)
	case *gatewayv1.BackendTLSPolicy:
		return names(gatewayapi.BundlesOfPolicy(of), of.Namespace)
	default:
		return nil
	}
}

func parentIndex(object client.Object) []string {
	if set, is := object.(*gatewayv1.ListenerSet); is {
		if name, is := gatewayapi.GatewayOfSet(set); is {
			return []string{name.String()}
		}
		return nil
	}
	var values []string
	gateways, sets := parentsOf(object)
	for _, name := range gateways {
		values = append(values, name.String())
	}
	for _, name := range sets {
		values = append(values, ofSet(name))
	}
	return values
}

func entryIndex(object client.Object) []string {
	var values []string
	for _, entry := range *parentStatuses(object) {
		if entry.ControllerName != Controller {
			continue
		}
		if name, is := gatewayapi.GatewayOf(entry.ParentRef, object.GetNamespace()); is {
			values = append(values, name.String())
		}
		if name, is := gatewayapi.SetOf(entry.ParentRef, object.GetNamespace()); is {
			values = append(values, ofSet(name))
		}
	}
	return values
}

func backendIndex(object client.Object) []string {
	if policy, is := object.(*slipwayv1alpha1.GatewayPolicy); is {
		return names(gatewayapi.ServicesOfGatewayPolicy(policy), policy.Namespace)
	}
	return names(backendsOf(object), object.GetNamespace())
}

// mapper finds the Gateways that an object matters for.
type mapper struct{ reader client.Reader }

// ofRoute are the Gateways that a route names, itself or by a ListenerSet.
func (m mapper) ofRoute(ctx context.Context, object client.Object) []reconcile.Request {
	var requests []reconcile.Request
	gateways, sets := parentsOf(object)
	for _, name := range gateways {
		requests = append(requests, reconcile.Request{NamespacedName: name})
	}
	for _, name := range sets {
		set := &gatewayv1.ListenerSet{}
		err := m.reader.Get(ctx, name, set, client.UnsafeDisableDeepCopy)
		if client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
			logf.FromContext(ctx).Error(err, "An event is lost: a Gateway is not reconciled", "listenerSet", name.String())
		}
		if err == nil {
			requests = append(requests, m.ofSet(ctx, set)...)
		}
	}
	return requests
}

// ofSet is the Gateway that a ListenerSet names.
func (m mapper) ofSet(_ context.Context, object client.Object) []reconcile.Request {
	if set, is := object.(*gatewayv1.ListenerSet); is {
		if name, is := gatewayapi.GatewayOfSet(set); is {
			return []reconcile.Request{{NamespacedName: name}}
		}
	}
	return nil
}

// ofSets are the Gateways that some ListenerSets name.
func (m mapper) ofSets(ctx context.Context, which client.ListOption) []reconcile.Request {
	sets := &gatewayv1.ListenerSetList{}
	err := m.reader.List(ctx, sets, which, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err != nil && ctx.Err() == nil {
		logf.FromContext(ctx).Error(err, "An event is lost: Gateways are not reconciled", "list", "ListenerSets")
	}
	var requests []reconcile.Request
	for i := range sets.Items {
		requests = append(requests, m.ofSet(ctx, &sets.Items[i])...)
	}
	return requests
}

// ofSecret are the Gateways whose listeners name a Secret, those of their ListenerSets included.
func (m mapper) ofSecret(ctx context.Context, object client.Object) []reconcile.Request {
	value := client.ObjectKeyFromObject(object).String()
	requests := m.gateways(indexSecret, false, func(client.Object) []string { return []string{value} })(ctx, object)
	requests = append(requests, m.ofSets(ctx, client.MatchingFields{indexSecret: value})...)
	return append(requests, m.ofGatewayPolicies(ctx, client.MatchingFields{indexSecret: value})...)
}

// ofGatewayPolicies are the Gateways that some GatewayPolicies matter for.
func (m mapper) ofGatewayPolicies(ctx context.Context, which client.ListOption) []reconcile.Request {
	policies := &slipwayv1alpha1.GatewayPolicyList{}
	err := m.reader.List(ctx, policies, which, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err != nil && ctx.Err() == nil {
		logf.FromContext(ctx).Error(err, "An event is lost: Gateways are not reconciled", "list", "GatewayPolicies")
	}
	var requests []reconcile.Request
	for i := range policies.Items {
		requests = append(requests, m.ofGatewayPolicy(ctx, &policies.Items[i])...)
	}
	return requests
}

// gateways are found by an index.
func (m mapper) gateways(index string, sameNamespace bool, values func(client.Object) []string) handler.MapFunc {
	return watch.Referrers{Reader: m.reader, List: &gatewayv1.GatewayList{}, Index: index, Values: values, SameNamespace: sameNamespace}.Map
}

// ofParameters are the Gateways that name GatewayParameters, and those whose class does.
func (m mapper) ofParameters(classes client.Reader) handler.MapFunc {
	named := m.gateways(indexParameters, false, func(object client.Object) []string { return []string{client.ObjectKeyFromObject(object).String()} })
	ofClass := m.gateways(indexClass, false, func(object client.Object) []string { return []string{object.GetName()} })
	return func(ctx context.Context, object client.Object) []reconcile.Request {
		requests := named(ctx, object)
		for _, class := range classesNaming(ctx, classes, object) {
			requests = append(requests, ofClass(ctx, class)...)
		}
		return requests
	}
}

// classesOf are the classes that name GatewayParameters.
func classesOf(classes client.Reader) handler.MapFunc {
	return func(ctx context.Context, object client.Object) []reconcile.Request {
		var requests []reconcile.Request
		for _, class := range classesNaming(ctx, classes, object) {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(class)})
		}
		return requests
	}
}

func classesNaming(ctx context.Context, classes client.Reader, object client.Object) []*gatewayv1.GatewayClass {
	list := &gatewayv1.GatewayClassList{}
	if err := classes.List(ctx, list, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency); err != nil {
		if ctx.Err() == nil {
			logf.FromContext(ctx).Error(err, "An event is lost: GatewayClasses are not reconciled")
		}
		return nil
	}
	var naming []*gatewayv1.GatewayClass
	for i := range list.Items {
		ref := list.Items[i].Spec.ParametersRef
		if ref != nil && ref.Name == object.GetName() && ref.Namespace != nil && string(*ref.Namespace) == object.GetNamespace() {
			naming = append(naming, &list.Items[i])
		}
	}
	return naming
}

// ofService are the Gateways of the routes and GatewayPolicies that name a Service.
func (m mapper) ofService(ctx context.Context, object client.Object) []reconcile.Request {
	which := client.MatchingFields{indexBackend: client.ObjectKeyFromObject(object).String()}
	return append(m.ofRoutes(ctx, which), m.ofGatewayPolicies(ctx, which)...)
}

// ofNamespace are the Gateways of the routes and ListenerSets in a namespace.
func (m mapper) ofNamespace(ctx context.Context, object client.Object) []reconcile.Request {
	in := client.InNamespace(object.GetName())
	return append(m.ofRoutes(ctx, in), m.ofSets(ctx, in)...)
}

// ofGrant are the Gateways that name Secrets and ConfigMaps of the namespace of a grant, themselves or by a ListenerSet, and those
// of routes that name Services there.
func (m mapper) ofGrant(ctx context.Context, object client.Object) []reconcile.Request {
	value := ofNamespace(object.GetNamespace())
	in := func(client.Object) []string { return []string{value} }
	found := append(m.gateways(indexSecret, false, in)(ctx, object), m.gateways(indexBundle, false, in)(ctx, object)...)
	found = append(found, m.ofSets(ctx, client.MatchingFields{indexSecret: value})...)
	return append(found, m.ofRoutes(ctx, client.MatchingFields{indexBackend: value})...)
}

// ofPolicy are the Gateways of the routes and GatewayPolicies that name the Services of a policy, and those that it has an entry of ours for.
func (m mapper) ofPolicy(ctx context.Context, object client.Object) []reconcile.Request {
	policy, ok := object.(*gatewayv1.BackendTLSPolicy)
	if !ok {
		return nil
	}
	var requests []reconcile.Request
	for _, name := range gatewayapi.ServicesOfPolicy(policy) {
		which := client.MatchingFields{indexBackend: name.String()}
		requests = append(requests, append(m.ofRoutes(ctx, which), m.ofGatewayPolicies(ctx, which)...)...)
	}
	for _, entry := range policy.Status.Ancestors {
		if name, is := gatewayapi.GatewayOf(entry.AncestorRef, policy.Namespace); is && entry.ControllerName == Controller {
			requests = append(requests, reconcile.Request{NamespacedName: name})
		}
	}
	return requests
}

// ofGatewayPolicy are the Gateways that a policy names, those of the ListenerSets and routes that it names, and those that it has
// an entry of ours for.
func (m mapper) ofGatewayPolicy(ctx context.Context, object client.Object) []reconcile.Request {
	policy, ok := object.(*slipwayv1alpha1.GatewayPolicy)
	if !ok {
		return nil
	}
	var requests []reconcile.Request
	for _, target := range gatewayapi.TargetsOf(policy) {
		if target.Kind == "Gateway" {
			requests = append(requests, reconcile.Request{NamespacedName: target.Name})
			continue
		}
		named := objectOf(target)
		err := m.reader.Get(ctx, target.Name, named, client.UnsafeDisableDeepCopy)
		if client.IgnoreNotFound(err) != nil && ctx.Err() == nil {
			logf.FromContext(ctx).Error(err, "An event is lost: a Gateway is not reconciled", "target", target.Name.String())
		}
		if err == nil {
			requests = append(requests, append(m.ofRoute(ctx, named), m.ofSet(ctx, named)...)...)
		}
	}
	for i := range policy.Status.Ancestors {
		if entry := ancestorOf(&policy.Status.Ancestors[i]); entry.ControllerName == Controller {
			if name, is := gatewayapi.GatewayOf(entry.AncestorRef, policy.Namespace); is {
				requests = append(requests, reconcile.Request{NamespacedName: name})
			}
		}
	}
	return requests
}

// objectOf is what a target is, to be read.
func objectOf(target gatewayapi.Target) client.Object {
	switch target.Kind {
	case string(gatewayapi.HTTPRoute):
		return &gatewayv1.HTTPRoute{}
	case string(gatewayapi.GRPCRoute):
		return &gatewayv1.GRPCRoute{}
	default:
		return &gatewayv1.ListenerSet{}
	}
}

// ofBundle are the Gateways that name a ConfigMap with authorities, and those that a policy that names it matters for.
func (m mapper) ofBundle(ctx context.Context, object client.Object) []reconcile.Request {
	value := client.ObjectKeyFromObject(object).String()
	requests := m.gateways(indexBundle, false, func(client.Object) []string { return []string{value} })(ctx, object)
	policies := &gatewayv1.BackendTLSPolicyList{}
	err := m.reader.List(ctx, policies, client.MatchingFields{indexBundle: value}, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err != nil && ctx.Err() == nil {
		logf.FromContext(ctx).Error(err, "An event is lost: Gateways are not reconciled", "list", "BackendTLSPolicies")
	}
	for i := range policies.Items {
		requests = append(requests, m.ofPolicy(ctx, &policies.Items[i])...)
	}
	return requests
}

// ofRoutes are the Gateways that some routes name.
func (m mapper) ofRoutes(ctx context.Context, which client.ListOption) []reconcile.Request {
	found, err := listRoutes(ctx, m.reader, which, client.UnsafeDisableDeepCopy, client.DisableReadYourWritesConsistency)
	if err != nil && ctx.Err() == nil {
		logf.FromContext(ctx).Error(err, "An event is lost: Gateways are not reconciled", "list", "routes")
	}
	var requests []reconcile.Request
	for _, route := range found {
		requests = append(requests, m.ofRoute(ctx, route)...)
	}
	return requests
}
