package gateway

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/children"
	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// reasonRetired is that of the event about what a released class has left.
const reasonRetired = "Retired"

// retire ends what a Gateway has left that another controller serves now: its Deployments get no pods, and its Services no
// address of a load balancer. Nothing is deleted. It happens once, and an annotation keeps what was before: who scales a
// Deployment up again is not in the way. An autoscaler leaves a Deployment without pods alone.
//
// It does not happen when the class has gone, or cannot be read: nobody else serves the Gateway then.
func (r *Reconciler) retire(ctx context.Context, key types.NamespacedName) error {
	if !r.kinds.running() || !r.kinds.objects.Watches(key.Namespace) {
		return nil
	}
	gateway := &gatewayv1.Gateway{}
	if err := r.kinds.objects.Get(ctx, key, gateway); err != nil {
		return client.IgnoreNotFound(err)
	}
	deployments, services, err := r.left(ctx, gateway)
	if err != nil || len(deployments)+len(services) == 0 {
		return err
	}
	class, err := r.foreignClass(ctx, gateway)
	if err != nil || class == "" {
		return err
	}
	var errs []error
	for i := range deployments {
		errs = append(errs, r.retireDeployment(ctx, gateway, class, &deployments[i]))
	}
	for i := range services {
		errs = append(errs, r.retireService(ctx, &services[i]))
	}
	return errors.Join(errs...)
}

// left are the Deployments and Services of a Gateway that are not retired.
func (r *Reconciler) left(ctx context.Context, gateway *gatewayv1.Gateway) ([]appsv1.Deployment, []corev1.Service, error) {
	in := []client.ListOption{client.InNamespace(gateway.Namespace), client.MatchingLabels{gatewayv1.GatewayNameLabelKey: desired.LabelValue(gateway)}}
	allDeployments, allServices := &appsv1.DeploymentList{}, &corev1.ServiceList{}
	if err := errors.Join(r.kit.Client.List(ctx, allDeployments, in...), r.kit.Client.List(ctx, allServices, in...)); err != nil {
		return nil, nil, fmt.Errorf("list what a former class has left: %w", err)
	}
	is := func(object client.Object) bool {
		return r.kit.Applier.Ours(gateway, object) && !desired.Retired(object)
	}
	var deployments []appsv1.Deployment
	for i := range allDeployments.Items {
		if is(&allDeployments.Items[i]) {
			deployments = append(deployments, allDeployments.Items[i])
		}
	}
	var services []corev1.Service
	for i := range allServices.Items {
		if is(&allServices.Items[i]) {
			services = append(services, allServices.Items[i])
		}
	}
	return deployments, services, nil
}

// foreignClass asks the API server for the class of a Gateway, if it belongs to another controller. What a cache shows may be old.
// Empty: it does not, or that is not known.
func (r *Reconciler) foreignClass(ctx context.Context, gateway *gatewayv1.Gateway) (string, error) {
	live, class := &gatewayv1.Gateway{}, &gatewayv1.GatewayClass{}
	err := r.kit.Live.Get(ctx, client.ObjectKeyFromObject(gateway), live)
	if apierrors.IsNotFound(err) {
		return "", nil
	}
	if err != nil {
		return "", outcome.Classify(fmt.Sprintf("Gateway %q", gateway.Name), err)
	}
	if live.UID != gateway.UID || !live.DeletionTimestamp.IsZero() {
		return "", nil
	}
	err = r.kit.Live.Get(ctx, types.NamespacedName{Name: string(live.Spec.GatewayClassName)}, class)
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) {
		return "", nil
	}
	if err != nil {
		return "", outcome.Classify(fmt.Sprintf("GatewayClass %q", live.Spec.GatewayClassName), err)
	}
	if class.Spec.ControllerName == Controller {
		return "", nil
	}
	return class.Name, nil
}

func (r *Reconciler) retireDeployment(ctx context.Context, gateway *gatewayv1.Gateway, class string, deployment *appsv1.Deployment) error {
	// Nobody takes the copies away any more when their grants go.
	if err := r.emptyCopies(ctx, gateway, copied.SecretName(deployment.Name)); err != nil {
		return err
	}
	after := deployment.DeepCopy()
	none := int32(0)
	desired.Retire(after, strconv.Itoa(int(children.Or(deployment.Spec.Replicas, 1))))
	after.Spec.Replicas = &none
	if err := r.patch(ctx, deployment, after); err != nil {
		return err
	}
	r.kit.Warn(gateway, reasonRetired, fmt.Sprintf("GatewayClass %q belongs to another controller, so Deployment %q has no pods any more", class, deployment.Name))
	return nil
}

func (r *Reconciler) retireService(ctx context.Context, service *corev1.Service) error {
	after := service.DeepCopy()
	desired.Retire(after, string(service.Spec.Type))
	after.Spec.Type = corev1.ServiceTypeClusterIP
	return r.patch(ctx, service, after)
}

// emptyCopies takes the certificates of other namespaces out of the Secret with the copies.
func (r *Reconciler) emptyCopies(ctx context.Context, gateway *gatewayv1.Gateway, name string) error {
	key := types.NamespacedName{Namespace: gateway.Namespace, Name: name}
	if found, err := r.secret(ctx, key); err != nil || found.UID == "" {
		return err
	}
	copies := &corev1.Secret{}
	err := r.kit.Live.Get(ctx, key, copies)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return outcome.Classify("the Secret with the copies", err)
	}
	if !r.kit.Applier.Ours(gateway, copies) || len(copies.Data) == 0 {
		return nil
	}
	after := copies.DeepCopy()
	after.Data = nil
	return r.patch(ctx, copies, after)
}

// reviveDeployment gives a Deployment the pods back that it had before it was retired, unless somebody has given it some.
func (r *Reconciler) reviveDeployment(ctx context.Context, deployment *appsv1.Deployment) error {
	before, retired := desired.Before(deployment)
	if !retired {
		return nil
	}
	after := deployment.DeepCopy()
	desired.Revive(after)
	if children.Or(deployment.Spec.Replicas, 1) == 0 {
		number, err := strconv.ParseInt(before, 10, 32)
		if err != nil || number < 0 {
			number = 1
		}
		replicas := int32(number)
		after.Spec.Replicas = &replicas
	}
	if err := r.patch(ctx, deployment, after); err != nil {
		return err
	}
	*deployment = *after
	return nil
}

// reviveService takes the annotation from a Service that was applied again, with the type that it is to have.
func (r *Reconciler) reviveService(ctx context.Context, service *corev1.Service) error {
	if !desired.Retired(service) {
		return nil
	}
	after := service.DeepCopy()
	desired.Revive(after)
	if err := r.patch(ctx, service, after); err != nil {
		return err
	}
	*service = *after
	return nil
}

// patch changes an object as it was read.
func (r *Reconciler) patch(ctx context.Context, before, after client.Object) error {
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	if err := r.kit.Client.Patch(ctx, after, patch, client.FieldOwner(FieldManager)); err != nil {
		return outcome.Classify(fmt.Sprintf("%T %q", before, before.GetName()), err)
	}
	return nil
}
