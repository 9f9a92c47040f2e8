// Package dataplane builds what runs the pods of a gateway, whatever kind asks for them.
package dataplane

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/children"
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
	// DefaultDrainSeconds is how long requests and streams then have to end.
	DefaultDrainSeconds = 30
	// killMarginSeconds is how much later than that a gateway is killed.
	killMarginSeconds = 10
)

const (
	// containerName is the name of the gateway's container.
	containerName = "gateway"
	// adminPortName is the name of the port where a pod says whether it is ready and what it serves.
	adminPortName = "admin"
)

// Pods is what a gateway's pods are made of.
type Pods struct {
	// Owner owns them.
	Owner children.Owner
	// Image is what they run.
	Image string
	// Serve are the arguments that say what they serve, and where.
	Serve []string
	// Ports are those that have a name, besides AdminPort.
	Ports []Port
	// AdminPort is where a pod says whether it is ready and what it serves.
	AdminPort int32
	// LowPorts lets them open ports below 1024.
	LowPorts bool
	// DrainSeconds is how long requests and streams have to end.
	DrainSeconds int32
	// Resources are the spec's. What they leave out of memory, and all if nil, is the release's default.
	Resources *slipwayv1alpha1.ResourceRequirements
	// PullSecrets pull the image.
	PullSecrets []slipwayv1alpha1.LocalReference
	// Current is the Deployment as it is, or nil.
	Current *appsv1.Deployment
	// Replicas is how many pods to ask for, or nil to leave the number to whoever else sets it.
	Replicas *int32
}

// Port is a port of a pod with its name.
type Port struct {
	Name   string
	Number int32
}

// Deployment runs the gateway pods.
func Deployment(in Pods) *appsv1ac.DeploymentApplyConfiguration {
	spec := appsv1ac.DeploymentSpec().
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(in.Owner.Selector())).
		WithTemplate(podTemplate(in)).
		WithStrategy(children.RollingUpdate()).
		WithRevisionHistoryLimit(replicaSetHistory).
		WithProgressDeadlineSeconds(ProgressDeadlineSeconds)
	if in.Replicas != nil {
		spec.WithReplicas(*in.Replicas)
	}
	return appsv1ac.Deployment(in.Owner.Name(), in.Owner.Object.GetNamespace()).
		WithLabels(in.Owner.Labels()).
		WithAnnotations(in.Owner.Annotations).
		WithOwnerReferences(in.Owner.Reference()).
		WithSpec(spec)
}

// ServiceAccount is who the gateway pods are.
func ServiceAccount(owner children.Owner) *corev1ac.ServiceAccountApplyConfiguration {
	return corev1ac.ServiceAccount(owner.Name(), owner.Object.GetNamespace()).
		WithLabels(owner.Labels()).
		WithAnnotations(owner.Annotations).
		WithOwnerReferences(owner.Reference()).
		// The pods ask for the token themselves; nobody else gets it by accident.
		WithAutomountServiceAccountToken(false)
}

func podTemplate(in Pods) *corev1ac.PodTemplateSpecApplyConfiguration {
	security := children.PodSecurity()
	if in.LowPorts {
		security.WithSysctls(corev1ac.Sysctl().WithName("net.ipv4.ip_unprivileged_port_start").WithValue("0"))
	}
	pod := corev1ac.PodSpec().
		WithContainers(container(in)).
		WithSecurityContext(security).
		WithTerminationGracePeriodSeconds(int64(leaveSeconds + in.DrainSeconds + killMarginSeconds)).
		WithEnableServiceLinks(false).
		WithServiceAccountName(in.Owner.Name()).
		// The gateway watches the API server.
		WithAutomountServiceAccountToken(true).
		WithTopologySpreadConstraints(in.Owner.Spread()...)
	children.PullSecrets(pod, in.PullSecrets)
	return corev1ac.PodTemplateSpec().WithLabels(in.Owner.Labels()).WithAnnotations(in.Owner.Annotations).WithSpec(pod)
}

func container(in Pods) *corev1ac.ContainerApplyConfiguration {
	c := corev1ac.Container().
		WithName(containerName).
		WithImage(in.Image).
		WithArgs(in.Serve...).
		WithArgs(
			fmt.Sprintf("--admin=:%d", in.AdminPort),
			fmt.Sprintf("--drain-delay=%ds", leaveSeconds),
			fmt.Sprintf("--drain-timeout=%ds", in.DrainSeconds)).
		WithEnv(corev1ac.EnvVar().WithName("POD_NAMESPACE").WithValueFrom(corev1ac.EnvVarSource().
			// The version is stated because the reference is one value: its default would be drift.
			WithFieldRef(corev1ac.ObjectFieldSelector().WithAPIVersion("v1").WithFieldPath("metadata.namespace"))))
	limitMemory(c, in)
	for _, port := range in.Ports {
		c.WithPorts(containerPort(port.Name, port.Number))
	}
	return c.
		WithPorts(containerPort(adminPortName, in.AdminPort)).
		WithReadinessProbe(readinessProbe(in)).
		// Whether it lives, not whether it is ready: one that drains, or waits for its first
		// table, must not be killed.
		WithLivenessProbe(corev1ac.Probe().
			WithTCPSocket(corev1ac.TCPSocketAction().WithPort(intstr.FromString(adminPortName))).
			WithPeriodSeconds(10).
			WithTimeoutSeconds(5).
			WithFailureThreshold(6)).
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
		WithSecurityContext(children.ContainerSecurity().WithReadOnlyRootFilesystem(true))
}

// readinessProbe takes a pod that says that it is not ready out of service within 2 s, and
// one that is slow to answer after 6 s.
func readinessProbe(in Pods) *corev1ac.ProbeApplyConfiguration {
	probe := corev1ac.Probe().
		WithHTTPGet(corev1ac.HTTPGetAction().WithPath("/readyz").WithPort(intstr.FromString(adminPortName)))
	if hasFirstProbe(in) {
		return probe.WithPeriodSeconds(2).WithTimeoutSeconds(2).WithFailureThreshold(3)
	}
	return probe.WithPeriodSeconds(1).WithTimeoutSeconds(3).WithFailureThreshold(2)
}

// hasFirstProbe reports whether pods of the same image run with the probe of v0.1.0. They
// keep it until the image is another one: an upgrade of the operator replaces no pods.
// Ends in v0.4.0.
func hasFirstProbe(in Pods) bool {
	container := current(in)
	if container == nil || container.ReadinessProbe == nil {
		return false
	}
	probe := container.ReadinessProbe
	return probe.PeriodSeconds == 2 && probe.TimeoutSeconds == 2 && probe.FailureThreshold == 3
}

// current is the container as it is, if it has the same image, else nil.
func current(in Pods) *corev1.Container {
	if in.Current == nil {
		return nil
	}
	containers := in.Current.Spec.Template.Spec.Containers
	i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == containerName })
	if i < 0 || containers[i].Image != in.Image {
		return nil
	}
	return &containers[i]
}

func containerPort(name string, port int32) *corev1ac.ContainerPortApplyConfiguration {
	return corev1ac.ContainerPort().WithName(name).WithContainerPort(port).WithProtocol(corev1.ProtocolTCP)
}
