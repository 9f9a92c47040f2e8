package gateway

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/kit/pullsecret"
	"github.com/slipway-dev/slipway/internal/kit/watch"
)

// parametersKind is the kind of parameters that there is.
const parametersKind = "GatewayParameters"

// parameters reads GatewayParameters.
type parameters struct {
	// reader is the cache.
	reader client.Reader
	// watched reports whether objects of a namespace can be read.
	watched func(namespace string) bool
}

func newParameters(mgr ctrl.Manager, options Options) parameters {
	return parameters{reader: mgr.GetClient(), watched: options.Budget.Objects.Watches}
}

// asked are parameters as they were read.
type asked struct {
	spec slipwayv1alpha1.GatewayParametersSpec
	// problem is why they cannot be used. Empty: they can.
	problem string
	// object is the object as the cache has it, without a UID where there is none. Nil: none is to be read.
	object client.Object
}

// ofClass returns the parameters of a class.
func (p parameters) ofClass(ctx context.Context, class *gatewayv1.GatewayClass) (asked, error) {
	const field = "spec.parametersRef"
	ref := class.Spec.ParametersRef
	switch {
	case ref == nil:
		return asked{}, nil
	case ref.Namespace == nil || *ref.Namespace == "":
		return asked{problem: fmt.Sprintf("%s.namespace is required: %s are in a namespace", field, parametersKind)}, nil
	}
	name := types.NamespacedName{Namespace: string(*ref.Namespace), Name: ref.Name}
	return p.read(ctx, field, ref.Group, ref.Kind, name)
}

// namespaceOf is the namespace of the GatewayParameters that a class names, if it names some.
func (p parameters) namespaceOf(class *gatewayv1.GatewayClass) (namespace string, named bool) {
	ref := class.Spec.ParametersRef
	if ref == nil || string(ref.Group) != slipwayv1alpha1.GroupName || ref.Kind != parametersKind || ref.Namespace == nil || *ref.Namespace == "" {
		return "", false
	}
	return string(*ref.Namespace), true
}

// ofGateway does the same for those that a Gateway names itself.
func (p parameters) ofGateway(ctx context.Context, gateway *gatewayv1.Gateway) (asked, error) {
	infrastructure := gateway.Spec.Infrastructure
	if infrastructure == nil || infrastructure.ParametersRef == nil {
		return asked{}, nil
	}
	ref := infrastructure.ParametersRef
	name := types.NamespacedName{Namespace: gateway.Namespace, Name: ref.Name}
	return p.read(ctx, "spec.infrastructure.parametersRef", ref.Group, ref.Kind, name)
}

func (p parameters) read(ctx context.Context, field string, group gatewayv1.Group, kind gatewayv1.Kind, name types.NamespacedName) (asked, error) {
	switch {
	case string(group) != slipwayv1alpha1.GroupName || kind != parametersKind:
		return asked{problem: fmt.Sprintf("%s: %s of group %q is not supported: %s of group %q is", field, kind, group, parametersKind, slipwayv1alpha1.GroupName)}, nil
	case !p.watched(name.Namespace):
		return asked{problem: fmt.Sprintf("%s.namespace: the operator does not watch namespace %q", field, name.Namespace)}, nil
	}
	found := &slipwayv1alpha1.GatewayParameters{}
	switch err := p.reader.Get(ctx, name, found); {
	case apierrors.IsNotFound(err):
		missing := &slipwayv1alpha1.GatewayParameters{ObjectMeta: metav1.ObjectMeta{Name: name.Name, Namespace: name.Namespace}}
		return asked{problem: fmt.Sprintf("%s: there is no %s %q in namespace %q", field, parametersKind, name.Name, name.Namespace), object: missing}, nil
	case err != nil:
		return asked{}, fmt.Errorf("read %s %q: %w", parametersKind, name, err)
	}
	return asked{spec: found.Spec, object: found}, nil
}

// loadParameters finds the parameters by which the children are made. Where they cannot be used, or nobody knows those of the
// class because it was deleted, those stay that the Deployment was made with.
func (r *Reconciler) loadParameters(ctx context.Context, s *scope) error {
	class := &gatewayv1.GatewayClass{}
	err := r.kinds.classes.Get(ctx, types.NamespacedName{Name: string(s.gateway.Spec.GatewayClassName)}, class)
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("read the GatewayClass: %w", err)
	}
	known := err == nil
	ofClass, err := r.given.ofClass(ctx, class)
	if err != nil {
		return err
	}
	own, err := r.given.ofGateway(ctx, s.gateway)
	if err != nil {
		return err
	}
	problem := own.problem
	if problem == "" && ofClass.problem != "" {
		problem = fmt.Sprintf("GatewayClass %q: %s", class.Name, ofClass.problem)
	}
	for _, given := range []asked{ofClass, own} {
		// What a stale cache says of them must not undo what the operator that led before has made of newer ones.
		if given.object != nil {
			s.shown = append(s.shown, given.object)
		}
	}
	s.parameters = desired.Parameters(ofClass.spec, own.spec)
	if why := desired.Contradiction(s.parameters); problem == "" && why != "" {
		problem = fmt.Sprintf("the %s of GatewayClass %q and of the Gateway contradict each other: %s", parametersKind, class.Name, why)
	}
	s.input.ParametersProblem = problem
	if !known || problem != "" {
		s.parameters, s.forgotten = desired.Asked(s.deployment)
	}
	s.pullSecrets, err = pullsecret.Look(ctx, r.kit.Client, s.gateway.Namespace, s.parameters.ImagePullSecrets, "spec.imagePullSecrets", " of its "+parametersKind)
	return err
}

func pullSecretIndex(object client.Object) []string {
	found, ok := object.(*slipwayv1alpha1.GatewayParameters)
	if !ok {
		return nil
	}
	return pullsecret.Names(found.Spec.ImagePullSecrets)
}

// ofPullSecret are the Gateways of a namespace whose images are pulled with a Secret of it. The parameters may be those of a class,
// which are in another namespace.
func ofPullSecret(find mapper, known *kinds, reader client.Reader) handler.MapFunc {
	ofParameters := find.ofParameters(known.classes)
	return func(ctx context.Context, secret client.Object) []reconcile.Request {
		naming := watch.Referrers{
			Reader: reader, List: &slipwayv1alpha1.GatewayParametersList{}, Index: indexPullSecret,
			Values: func(object client.Object) []string { return []string{object.GetName()} },
		}
		var requests []reconcile.Request
		for _, name := range naming.Map(ctx, secret) {
			requests = append(requests, ofParameters(ctx, &slipwayv1alpha1.GatewayParameters{
				ObjectMeta: metav1.ObjectMeta{Name: name.Name, Namespace: name.Namespace},
			})...)
		}
		return slices.DeleteFunc(requests, func(r reconcile.Request) bool { return r.Namespace != secret.GetNamespace() })
	}
}
