package desired

import (
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
	// replicaSetHistory is how many old ReplicaSets are kept; a rollback reuses them.
	replicaSetHistory = 5
	// drainSeconds is how long a pod goes on serving after it left the Service, so that
	// no node still sends it new connections when it is told to stop.
	drainSeconds = 5
	// terminationGracePeriodSeconds includes drainSeconds.
	terminationGracePeriodSeconds = 30
	// volumeGroup may write to the volume. Any number but 0 serves.
	volumeGroup = 65532

	// startupSeconds is how long an application may take to start before it is started
	// again: the longest that a rollout may be given (spec.rollout.progressDeadlineSeconds),
	// whatever it is given, so that pods do not depend on it.
	startupSeconds = 86400
)

// Deployment runs the pods.
func Deployment(in Inputs) *appsv1ac.DeploymentApplyConfiguration {
	app := in.App
	template := in.Template
	if template == nil {
		template = podTemplate(in)
	}
	spec := appsv1ac.DeploymentSpec().
		WithSelector(metav1ac.LabelSelector().WithMatchLabels(Selector(app))).
		WithTemplate(allowHooks(template, app)).
		WithStrategy(strategy(in.Revision)).
		WithRevisionHistoryLimit(replicaSetHistory).
		WithProgressDeadlineSeconds(ProgressDeadlineSeconds(app))
	if in.Replicas != nil {
		spec.WithReplicas(*in.Replicas)
	}
	deployment := appsv1ac.Deployment(Name(app), app.Namespace).
		WithLabels(Labels(app)).
		WithOwnerReferences(ownerReference(app)).
		WithSpec(spec)
	if in.ConfigVersions != "" {
		deployment.WithAnnotations(map[string]string{AnnotationConfigVersions: in.ConfigVersions})
	}
	return deployment
}

// strategy never takes a serving pod away before its successor serves, except with a
// volume, which two pods cannot share.
func strategy(revision Revision) *appsv1ac.DeploymentStrategyApplyConfiguration {
	if revision.Spec.Storage != nil {
		return appsv1ac.DeploymentStrategy().WithType(appsv1.RecreateDeploymentStrategyType)
	}
	return children.RollingUpdate()
}

func podTemplate(in Inputs) *corev1ac.PodTemplateSpecApplyConfiguration {
	spec := in.Revision.Spec
	pod := corev1ac.PodSpec().
		WithContainers(container(in.Revision)).
		WithSecurityContext(podSecurityContext(spec)).
		WithTerminationGracePeriodSeconds(terminationGracePeriodSeconds).
		WithEnableServiceLinks(false).
		WithServiceAccountName(serviceAccountName(spec)).
		WithAutomountServiceAccountToken(spec.ServiceAccountName != "").
		WithTopologySpreadConstraints(owner(in.App).Spread()...)
	children.PullSecrets(pod, spec.ImagePullSecrets)
	pod.WithVolumes(volumes(in.App, spec)...)

	template := corev1ac.PodTemplateSpec().WithLabels(Labels(in.App)).WithSpec(pod)
	if in.Revision.ConfigHash != "" {
		template.WithAnnotations(map[string]string{slipwayv1alpha1.AnnotationConfigHash: in.Revision.ConfigHash})
	}
	return template
}

func container(revision Revision) *corev1ac.ContainerApplyConfiguration {
	spec := revision.Spec
	c := corev1ac.Container().
		WithName(containerName).
		WithImage(spec.Image).
		WithPorts(corev1ac.ContainerPort().
			WithName(portName).
			WithContainerPort(spec.Port).
			WithProtocol(corev1.ProtocolTCP)).
		WithEnv(children.Env(spec.Env, spec.EnvFrom)...).
		WithEnvFrom(children.EnvFrom(spec.EnvFrom)...).
		WithVolumeMounts(volumeMounts(spec)...).
		WithStartupProbe(startupProbe(spec)).
		WithReadinessProbe(readinessProbe(spec)).
		WithLifecycle(corev1ac.Lifecycle().WithPreStop(
			corev1ac.LifecycleHandler().WithSleep(corev1ac.SleepAction().WithSeconds(drainSeconds)))).
		WithTerminationMessagePolicy(corev1.TerminationMessageFallbackToLogsOnError).
		WithSecurityContext(children.ContainerSecurity())
	if len(spec.Command) > 0 {
		c.WithCommand(spec.Command...)
	}
	if len(spec.Args) > 0 {
		c.WithArgs(spec.Args...)
	}
	if resources := children.Resources(spec.Resources); resources != nil {
		c.WithResources(resources)
	}
	return c
}

// serviceAccountName is always stated: a name that is no longer stated would stay,
// because the API server keeps a copy of it in a deprecated field and restores it.
func serviceAccountName(spec slipwayv1alpha1.WebAppSpec) string {
	if spec.ServiceAccountName == "" {
		return "default"
	}
	return spec.ServiceAccountName
}

// podSecurityContext satisfies the restricted Pod Security level. The user is the
// image's own, which must not be root.
func podSecurityContext(spec slipwayv1alpha1.WebAppSpec) *corev1ac.PodSecurityContextApplyConfiguration {
	security := children.PodSecurity()
	if spec.Storage != nil {
		security.WithFSGroup(volumeGroup).
			WithFSGroupChangePolicy(corev1.FSGroupChangeOnRootMismatch)
	}
	return security
}

func readinessProbe(spec slipwayv1alpha1.WebAppSpec) *corev1ac.ProbeApplyConfiguration {
	health := healthOf(spec)
	return probe(health).
		WithPeriodSeconds(children.Or(health.PeriodSeconds, 5)).
		WithFailureThreshold(children.Or(health.FailureThreshold, 3))
}

// startupProbe asks every second until the application has started. Its end has the
// kubelet ask for readiness at once, not when its next period is over.
func startupProbe(spec slipwayv1alpha1.WebAppSpec) *corev1ac.ProbeApplyConfiguration {
	return probe(healthOf(spec)).
		WithPeriodSeconds(1).
		WithFailureThreshold(startupSeconds)
}

func healthOf(spec slipwayv1alpha1.WebAppSpec) *slipwayv1alpha1.HealthCheck {
	if spec.Health == nil {
		return &slipwayv1alpha1.HealthCheck{}
	}
	return spec.Health
}

func probe(health *slipwayv1alpha1.HealthCheck) *corev1ac.ProbeApplyConfiguration {
	probe := corev1ac.Probe().WithTimeoutSeconds(children.Or(health.TimeoutSeconds, 2))
	port := intstr.FromString(portName)
	if health.Path == "" {
		return probe.WithTCPSocket(corev1ac.TCPSocketAction().WithPort(port))
	}
	return probe.WithHTTPGet(corev1ac.HTTPGetAction().WithPath(health.Path).WithPort(port))
}
