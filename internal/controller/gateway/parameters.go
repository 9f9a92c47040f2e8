package gateway

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
)

// parametersKind is the kind of parameters that there is.
const parametersKind = "GatewayParameters"

// parameters reads GatewayParameters.
type parameters struct {
	// reader is the cache.
	reader client.Reader
	// watched tells whether objects of a namespace can be read.
	watched func(namespace string) bool
}

func newParameters(mgr ctrl.Manager, options Options) parameters {
	return parameters{reader: mgr.GetClient(), watched: options.Budget.Objects.Watches}
}

// ofClass returns the parameters of a class, and why they cannot be used; empty: they can.
func (p parameters) ofClass(ctx context.Context, class *gatewayv1.GatewayClass) (of slipwayv1alpha1.GatewayParametersSpec, problem string, err error) {
	const field = "spec.parametersRef"
	ref := class.Spec.ParametersRef
	switch {
	case ref == nil:
		return of, "", nil
	case ref.Namespace == nil || *ref.Namespace == "":
		return of, fmt.Sprintf("%s.namespace is required: %s are in a namespace", field, parametersKind), nil
	}
	name := types.NamespacedName{Namespace: string(*ref.Namespace), Name: ref.Name}
	return p.read(ctx, field, ref.Group, ref.Kind, name)
}

// ofGateway does the same for those that a Gateway names itself.
func (p parameters) ofGateway(ctx context.Context, gateway *gatewayv1.Gateway) (of slipwayv1alpha1.GatewayParametersSpec, problem string, err error) {
	infrastructure := gateway.Spec.Infrastructure
	if infrastructure == nil || infrastructure.ParametersRef == nil {
		return of, "", nil
	}
	ref := infrastructure.ParametersRef
	name := types.NamespacedName{Namespace: gateway.Namespace, Name: ref.Name}
	return p.read(ctx, "spec.infrastructure.parametersRef", ref.Group, ref.Kind, name)
}

func (p parameters) read(ctx context.Context, field string, group gatewayv1.Group, kind gatewayv1.Kind, name types.NamespacedName) (of slipwayv1alpha1.GatewayParametersSpec, problem string, err error) {
	switch {
	case string(group) != slipwayv1alpha1.GroupName || kind != parametersKind:
		return of, fmt.Sprintf("%s: %s of group %q is not supported: %s of group %q is", field, kind, group, parametersKind, slipwayv1alpha1.GroupName), nil
	case !p.watched(name.Namespace):
		return of, fmt.Sprintf("%s.namespace: the operator does not watch namespace %q", field, name.Namespace), nil
	}
	found := &slipwayv1alpha1.GatewayParameters{}
	switch err := p.reader.Get(ctx, name, found); {
	case apierrors.IsNotFound(err):
		return of, fmt.Sprintf("%s: there is no %s %q in namespace %q", field, parametersKind, name.Name, name.Namespace), nil
	case err != nil:
		return of, "", fmt.Errorf("read %s %q: %w", parametersKind, name, err)
	}
	return found.Spec, "", nil
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
	ofClass, problem, err := r.given.ofClass(ctx, class)
	if err != nil {
		return err
	}
	if problem != "" {
		problem = fmt.Sprintf("GatewayClass %q: %s", class.Name, problem)
	}
	own, ownProblem, err := r.given.ofGateway(ctx, s.gateway)
	if err != nil {
		return err
	}
	if ownProblem != "" {
		problem = ownProblem
	}
	s.parameters = desired.Parameters(ofClass, own)
	if why := desired.Contradiction(s.parameters); problem == "" && why != "" {
		problem = fmt.Sprintf("the %s of GatewayClass %q and of the Gateway contradict each other: %s", parametersKind, class.Name, why)
	}
	s.input.ParametersProblem = problem
	if known && problem == "" {
		return nil
	}
	s.parameters, s.forgotten = desired.Asked(s.deployment)
	return nil
}
