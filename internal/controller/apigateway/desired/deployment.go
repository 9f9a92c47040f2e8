package desired

import (
	"cmp"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/children"
)

const (
	// replicaSetHistory is how many old ReplicaSets are kept.
	replicaSetHistory = 5
	// ProgressDeadlineSeconds is how long a rollout may go without progress before status
	// calls it failed.
	ProgressDeadlineSeconds = 300
	// leaveSeconds is how long a gateway that was told to end goes on serving, while it
	// says that it is not ready: until no node sends it new connections. The gateway waits
	// itself, so that no hook is needed.
	leaveSeconds = 5
	// defaultDrainSeconds is how long requests and streams then have to end.
	defaultDrainSeconds = 30
	// killMarginSeconds is how much later than that a gateway is killed.
	killMarginSeconds = 10
)

// Deployment runs the gateway pods.
func Deployment(in Inputs) *appsv1ac.DeploymentApplyConfiguration {
	gateway := in.Gateway
	spec := appsv1ac.DeploymentSpec().
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(Selector(gateway))).
		WithTemplate(podTemplate(in)).
		WithStrategy(children.RollingUpdate()).
		WithRevisionHistoryLimit(replicaSetHistory).
		WithProgressDeadlineSeconds(ProgressDeadlineSeconds)
	if in.Replicas != nil {
		spec.WithReplicas(*in.Replicas)
	}
	return appsv1ac.Deployment(Name(gateway), gateway.Namespace).
		WithLabels(Labels(gateway)).
		WithOwnerReferences(ownerReference(gateway)).
		WithSpec(spec)
}

// Replicas states a Deployment's number of pods and nothing else.
func Replicas(gateway *slipwayv1alpha1.APIGateway, replicas int32) *appsv1ac.DeploymentApplyConfiguration {
	return owner(gateway).Replicas(replicas)
}

func podTemplate(in Inputs) *corev1ac.PodTemplateSpecApplyConfiguration {
	pod := corev1ac.PodSpec().
		WithContainers(container(in)).
		WithSecurityContext(children.PodSecurity()).
		WithTerminationGracePeriodSeconds(int64(leaveSeconds + drainSeconds(in.Gateway) + killMarginSeconds)).
		WithEnableServiceLinks(false).
		WithServiceAccountName(Name(in.Gateway)).
		// The gateway watches the API server.
		WithAutomountServiceAccountToken(true).
		WithTopologySpreadConstraints(owner(in.Gateway).Spread()...)
	children.PullSecrets(pod, in.Gateway.Spec.ImagePullSecrets)
	return corev1ac.PodTemplateSpec().WithLabels(Labels(in.Gateway)).WithSpec(pod)
}

func container(in Inputs) *corev1ac.ContainerApplyConfiguration {
	return corev1ac.Container().
		WithName(containerName).
		WithImage(image(in)).
		WithArgs(
			"--gateway="+in.Gateway.Name,
			fmt.Sprintf("--http=:%d", httpPort),
			// Listened at without certificates too: the first one needs no restart.
			fmt.Sprintf("--https=:%d", httpsPort),
			fmt.Sprintf("--admin=:%d", AdminPort),
			fmt.Sprintf("--drain-delay=%ds", leaveSeconds),
			fmt.Sprintf("--drain-timeout=%ds", drainSeconds(in.Gateway))).
		WithEnv(corev1ac.EnvVar().WithName("POD_NAMESPACE").WithValueFrom(corev1ac.EnvVarSource().
			// The version is stated because the reference is one value: its default would be drift.
			WithFieldRef(corev1ac.ObjectFieldSelector().WithAPIVersion("v1").WithFieldPath("metadata.namespace")))).
		WithPorts(
			containerPort(httpPortName, httpPort),
			containerPort(httpsPortName, httpsPort),
			containerPort(adminPortName, AdminPort)).
		WithReadinessProbe(readinessProbe(in)).
		// Whether it lives, not whether it is ready: one that drains, or waits for its first
		// table, must not be killed.
		WithLivenessProbe(corev1ac.Probe().
			WithTCPSocket(corev1ac.TCPSocketAction().WithPort(intstr.FromString(adminPortName))).
			WithPeriodSeconds(10).
			WithTimeoutSeconds(5).
			WithFailureThreshold(6)).
		WithResources(resources(in.Gateway)).
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
		WithSecurityContext(children.ContainerSecurity().WithReadOnlyRootFilesystem(true))
}

func image(in Inputs) string { return cmp.Or(in.Gateway.Spec.Image, in.Image) }

// readinessProbe takes a pod that says that it is not ready out of service within 2 s, and
// one that is slow to answer after 6 s.
func readinessProbe(in Inputs) *corev1ac.ProbeApplyConfiguration {
	probe := corev1ac.Probe().
		WithHTTPGet(corev1ac.HTTPGetAction().WithPath("/readyz").WithPort(intstr.FromString(adminPortName)))
	if hasFirstProbe(in) {
		return probe.WithPeriodSeconds(2).WithTimeoutSeconds(2).WithFailureThreshold(3)
	}
	return probe.WithPeriodSeconds(1).WithTimeoutSeconds(3).WithFailureThreshold(2)
}

// hasFirstProbe tells whether pods of the same image run with the probe of v0.1.0. They
// keep it until the image is another one: an upgrade of the operator replaces no pods.
func hasFirstProbe(in Inputs) bool {
	if in.Current == nil {
		return false
	}
	for _, container := range in.Current.Spec.Template.Spec.Containers {
		if container.Name != containerName || container.ReadinessProbe == nil {
			continue
		}
		probe := container.ReadinessProbe
		return container.Image == image(in) && probe.PeriodSeconds == 2 && probe.TimeoutSeconds == 2 && probe.FailureThreshold == 3
	}
	return false
}

func containerPort(name string, port int32) *corev1ac.ContainerPortApplyConfiguration {
	return corev1ac.ContainerPort().WithName(name).WithContainerPort(port).WithProtocol(corev1.ProtocolTCP)
}

// resources are the spec's, or enough for a gateway with 1,000 routes at a modest load.
// There is no limit: slow requests are worse than a busy node, and a gateway that is
// killed for its memory cuts every stream.
func resources(gateway *slipwayv1alpha1.APIGateway) *corev1ac.ResourceRequirementsApplyConfiguration {
	switch stated := children.Resources(gateway.Spec.Resources); {
	case gateway.Spec.Resources == nil:
		return corev1ac.ResourceRequirements().WithRequests(corev1.ResourceList{
			corev1.ResourceCPU:    resource.MustParse("100m"),
			corev1.ResourceMemory: resource.MustParse("64Mi"),
		})
	case stated == nil:
		return corev1ac.ResourceRequirements()
	default:
		return stated
	}
}

func drainSeconds(gateway *slipwayv1alpha1.APIGateway) int32 {
	return children.Or(gateway.Spec.DrainSeconds, defaultDrainSeconds)
}
