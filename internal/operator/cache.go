package operator

import (
	"cmp"
	"fmt"
	"maps"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	gatewayv1beta1 "sigs.k8s.io/gateway-api/apis/v1beta1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/apigateway/hosts"
	"github.com/slipway-dev/slipway/internal/controller/backup"
	"github.com/slipway-dev/slipway/internal/controller/gateway"
	gatewaydesired "github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/going"
	"github.com/slipway-dev/slipway/internal/kit/optional"
	"github.com/slipway-dev/slipway/internal/kit/webhook"
	"github.com/slipway-dev/slipway/internal/operator/kindrole"
)

// fieldManagerPrefix is common to the field managers of Slipway's controllers.
const fieldManagerPrefix = "slipway-"

// cacheOptions is the cache budget: what the operator keeps in memory, and why. An
// object of a kind that is not listed here makes a read fail instead of silently
// starting a watch on the whole cluster. namespaces are the ones to watch, none: all; own is the
// operator's.
func cacheOptions(namespaces []string, own string) cache.Options {
	child := cache.ByObject{Label: ours(), Transform: keepOwnManagedFields}
	options := cache.Options{
		DefaultNamespaces:           watched(namespaces),
		ReaderFailOnMissingInformer: true,
		DefaultTransform:            keepOwnManagedFields,
		ByObject: map[client.Object]cache.ByObject{
			// The declared objects, all of them.
			&slipwayv1alpha1.WebApp{}:     {Transform: cache.TransformStripManagedFields()},
			&slipwayv1alpha1.APIGateway{}: {Transform: cache.TransformStripManagedFields()},
			&slipwayv1alpha1.Backup{}:     {Transform: cache.TransformStripManagedFields()},
			&slipwayv1alpha1.Restore{}:    {Transform: cache.TransformStripManagedFields()},
			// What the pods and Services of Gateways are made like.
			&slipwayv1alpha1.GatewayParameters{}: {Transform: cache.TransformStripManagedFields()},
			// A Backup makes its runs, so what it states of them is kept.
			&slipwayv1alpha1.BackupRun{}: {Transform: keepOwnManagedFields},

			// Children: only Slipway's own. Their managed fields are what drift is found with.
			&appsv1.Deployment{}:                     child,
			&corev1.Service{}:                        child,
			&autoscalingv2.HorizontalPodAutoscaler{}: child,
			&policyv1.PodDisruptionBudget{}:          child,
			&corev1.PersistentVolumeClaim{}:          child,
			&appsv1.ControllerRevision{}:             child,
			&corev1.ServiceAccount{}:                 child,
			&rbacv1.Role{}:                           child,
			&rbacv1.RoleBinding{}:                    child,
			&networkingv1.Ingress{}:                  child,
			&batchv1.Job{}:                           child,

			// Pods of Slipway's applications: status says why one does not start. Of the spec,
			// which is most of a pod, only what is told of in such words: what keeps it from the
			// scheduler, what a container asks for, how it is probed and, of a WebApp, what is mounted where.
			&corev1.Pod{}: {Label: ours(), Transform: keepPodStatus},
			// ReplicaSets, as metadata: which one is of the current template.
			&appsv1.ReplicaSet{}: {Label: ours(), Transform: keepMetadata(health.AnnotationRevision)},

			// In the operator's own namespace: whose a host is.
			&coordinationv1.Lease{}: {
				Namespaces: map[string]cache.Config{own: {}},
				Label:      hosts.Selector(),
				Transform:  cache.TransformStripManagedFields(),
			},

			// One object: whether the API server trusts the operator's webhooks.
			&admissionregistrationv1.ValidatingWebhookConfiguration{}: {
				Field:     fields.OneTermEqualSelector("metadata.name", webhook.ConfigurationName),
				Transform: cache.TransformStripManagedFields(),
			},

			// One object: which pods may read the Gateway API.
			&rbacv1.ClusterRoleBinding{}: {
				Field:     fields.OneTermEqualSelector("metadata.name", gatewaydesired.RightsName),
				Transform: cache.TransformStripManagedFields(),
			},

			// Every Secret and ConfigMap of the cluster, as metadata without labels and
			// annotations: that it exists, and at which version.
			&corev1.Secret{}:    {Transform: keepIdentity},
			&corev1.ConfigMap{}: {Transform: keepIdentity},
		},
	}
	if len(namespaces) == 0 {
		// Every namespace, as metadata: that it is being deleted.
		options.ByObject[going.Kind()] = cache.ByObject{Transform: keepDeletion}
	}
	// Which kinds there are, as names, and the ClusterRole that lets the monitor read them.
	maps.Copy(options.ByObject, kindrole.Cached())
	return options
}

// exposureBudget is the budget of the kinds by which an APIGateway may be exposed, which a cluster need not have.
func exposureBudget(namespaces []string) optional.Budget {
	return optional.Budget{
		Namespaces: watched(namespaces),
		ByObject: map[client.Object]cache.ByObject{
			// Children: only Slipway's own.
			&gatewayv1.HTTPRoute{}: {Label: ours(), Transform: keepOwnManagedFields},
			// Every Gateway, of which a cluster has few: the addresses that status tells.
			&gatewayv1.Gateway{}: {Transform: keepAddresses},
		},
	}
}

// namedBudget is the budget of what Backups name and others make: every claim, Deployment and StatefulSet, and every class of
// volumes and of priority, as metadata: that it exists, its generation, and which WebApp a Deployment is of.
func namedBudget(namespaces []string) optional.Budget {
	budget := optional.Budget{Namespaces: watched(namespaces), ByObject: map[client.Object]cache.ByObject{}}
	for _, kind := range backup.Named(len(namespaces) > 0) {
		budget.ByObject[kind] = cache.ByObject{Transform: keepApp}
	}
	return budget
}

// keepApp keeps identity, the generation, and the label of a WebApp.
func keepApp(object any) (any, error) {
	app, generation := "", int64(0)
	if metadata, ok := object.(*metav1.PartialObjectMetadata); ok {
		app, generation = metadata.Labels[slipwayv1alpha1.LabelWebApp], metadata.Generation
	}
	kept, err := keepIdentity(object)
	metadata, ok := kept.(*metav1.PartialObjectMetadata)
	if !ok {
		return kept, err
	}
	metadata.Generation = generation
	if app != "" {
		metadata.Labels = map[string]string{slipwayv1alpha1.LabelWebApp: app}
	}
	return kept, err
}

// gatewayBudget is the budget of the Gateway API. Nothing but the classes is kept before there is one of ours. limited tells that
// there are no rights outside of the namespaces.
func gatewayBudget(namespaces []string, limited bool) gateway.Budget {
	whole := cache.ByObject{Transform: cache.TransformStripManagedFields()}
	budget := gateway.Budget{
		// Every class, of which a cluster has few: which ones are ours.
		Classes: optional.Budget{ByObject: map[client.Object]cache.ByObject{&gatewayv1.GatewayClass{}: whole}},
		Objects: optional.Budget{
			Namespaces: watched(namespaces),
			ByObject: map[client.Object]cache.ByObject{
				// Every Gateway: which ones are ours changes with their classes.
				&gatewayv1.Gateway{}: whole,
				// Every route, as it is: its parents decide whether it matters, and entries of others in its status are
				// written back with ours.
				&gatewayv1.HTTPRoute{}: whole,
				&gatewayv1.GRPCRoute{}: whole,
				&gatewayv1.TLSRoute{}:  whole,
				&gatewayv1.TCPRoute{}:  whole,
				&gatewayv1.UDPRoute{}:  whole,
				// Every grant, of which a cluster has few: which references to other namespaces are permitted.
				&gatewayv1.ReferenceGrant{}:      whole,
				&gatewayv1beta1.ReferenceGrant{}: whole, // only where the cluster does not have the other
				// Every policy, of which a cluster has few: entries of others in its status are written back with ours.
				&gatewayv1.BackendTLSPolicy{}:    whole,
				&slipwayv1alpha1.GatewayPolicy{}: whole,
				// Every set of listeners: the Gateway that it names decides whether it matters. What we state of its status
				// is what we take away.
				&gatewayv1.ListenerSet{}: {Transform: keepOwnManagedFields},
				// Every Service, by name, type and ports: whether what a route names exists.
				&corev1.Service{}: {Transform: keepPorts},
			},
		},
	}
	if limited {
		// One object in each namespace: which pods may read the Gateway API there.
		budget.Objects.ByObject[&rbacv1.RoleBinding{}] = cache.ByObject{
			Field:     fields.OneTermEqualSelector("metadata.name", gatewaydesired.LimitedRightsName),
			Transform: cache.TransformStripManagedFields(),
		}
		return budget
	}
	// Every namespace, as metadata: the labels, by which listeners select.
	budget.Objects.ByObject[gateway.Namespace()] = cache.ByObject{Transform: keepLabels}
	return budget
}

// keepPorts keeps name, type and ports of a Service.
func keepPorts(object any) (any, error) {
	service, ok := object.(*corev1.Service)
	if !ok {
		return object, nil
	}
	kept := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: service.Name, Namespace: service.Namespace, UID: service.UID, ResourceVersion: service.ResourceVersion},
		Spec:       corev1.ServiceSpec{Type: service.Spec.Type},
	}
	for _, port := range service.Spec.Ports {
		kept.Spec.Ports = append(kept.Spec.Ports, corev1.ServicePort{Name: port.Name, Port: port.Port, Protocol: port.Protocol, AppProtocol: port.AppProtocol})
	}
	return kept, nil
}

// keepLabels keeps identity and labels.
func keepLabels(object any) (any, error) {
	o, ok := object.(metav1.Object)
	if !ok {
		return object, nil
	}
	o.SetAnnotations(nil)
	o.SetManagedFields(nil)
	return object, nil
}

// ours selects what Slipway manages.
func ours() labels.Selector {
	return labels.SelectorFromSet(labels.Set{slipwayv1alpha1.LabelManagedBy: slipwayv1alpha1.ManagedBySlipway})
}

// ownNamespace is where the operator keeps what is its own.
func ownNamespace(options Options) string { return cmp.Or(options.Namespace, DefaultNamespace) }

// watched are the namespaces to watch; nil: all.
func watched(namespaces []string) map[string]cache.Config {
	if len(namespaces) == 0 {
		return nil
	}
	configs := map[string]cache.Config{}
	for _, namespace := range namespaces {
		configs[namespace] = cache.Config{}
	}
	return configs
}

var _ toolscache.TransformFunc = keepOwnManagedFields

// keepOwnManagedFields drops what other field managers own: about a third of an object.
func keepOwnManagedFields(object any) (any, error) {
	if o, ok := object.(metav1.Object); ok {
		var own []metav1.ManagedFieldsEntry
		for _, entry := range o.GetManagedFields() {
			if strings.HasPrefix(entry.Manager, fieldManagerPrefix) {
				own = append(own, entry)
			}
		}
		o.SetManagedFields(own)
	}
	return object, nil
}

func keepPodStatus(object any) (any, error) {
	pod, ok := object.(*corev1.Pod)
	if !ok {
		return object, nil
	}
	pod.ManagedFields = nil
	pod.Annotations = nil
	spec := corev1.PodSpec{NodeName: pod.Spec.NodeName, SchedulingGates: pod.Spec.SchedulingGates}
	for _, c := range pod.Spec.Containers {
		kept := corev1.Container{Name: c.Name, Resources: c.Resources}
		if c.ReadinessProbe != nil {
			kept.ReadinessProbe, kept.Ports = c.ReadinessProbe, c.Ports
		}
		if pod.Labels[slipwayv1alpha1.LabelWebApp] != "" {
			for _, m := range c.VolumeMounts {
				kept.VolumeMounts = append(kept.VolumeMounts, corev1.VolumeMount{Name: m.Name, MountPath: m.MountPath})
			}
		}
		spec.Containers = append(spec.Containers, kept)
	}
	pod.Spec = spec
	return pod, nil
}

// keepAddresses keeps a Gateway's identity and addresses.
func keepAddresses(object any) (any, error) {
	gateway, ok := object.(*gatewayv1.Gateway)
	if !ok {
		return object, nil
	}
	return &gatewayv1.Gateway{
		ObjectMeta: metav1.ObjectMeta{
			Name: gateway.Name, Namespace: gateway.Namespace, UID: gateway.UID, ResourceVersion: gateway.ResourceVersion,
		},
		Status: gatewayv1.GatewayStatus{Addresses: gateway.Status.Addresses},
	}, nil
}

// keepMetadata keeps identity, labels, owners and the named annotations.
func keepMetadata(annotations ...string) toolscache.TransformFunc {
	return func(object any) (any, error) {
		o, ok := object.(metav1.Object)
		if !ok {
			return object, nil
		}
		kept := map[string]string{}
		for _, name := range annotations {
			if value, ok := o.GetAnnotations()[name]; ok {
				kept[name] = value
			}
		}
		o.SetAnnotations(kept)
		o.SetManagedFields(nil)
		return object, nil
	}
}

// keepDeletion keeps identity, and since when an object is being deleted.
func keepDeletion(object any) (any, error) {
	deleted := (*metav1.Time)(nil)
	if o, ok := object.(metav1.Object); ok {
		deleted = o.GetDeletionTimestamp()
	}
	kept, err := keepIdentity(object)
	if o, ok := kept.(metav1.Object); ok {
		o.SetDeletionTimestamp(deleted)
	}
	return kept, err
}

// keepIdentity keeps name, namespace, UID and version.
func keepIdentity(object any) (any, error) {
	metadata, ok := object.(*metav1.PartialObjectMetadata)
	if !ok {
		if _, deleted := object.(toolscache.DeletedFinalStateUnknown); deleted {
			return object, nil
		}
		return nil, fmt.Errorf("%T must be cached as metadata only", object)
	}
	metadata.ObjectMeta = metav1.ObjectMeta{
		Name:            metadata.Name,
		Namespace:       metadata.Namespace,
		UID:             metadata.UID,
		ResourceVersion: metadata.ResourceVersion,
	}
	return metadata, nil
}
