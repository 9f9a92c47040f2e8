package health

import (
	"fmt"
	"regexp"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/text"
)

// metricsGrace is how long an autoscaler may have no metrics before it counts as failed.
// Metrics of a pod exist within a minute of the start of the pod or of the metrics server.
const metricsGrace = 2 * time.Minute

// Autoscaler evaluates the HorizontalPodAutoscaler of a Deployment by the conditions of its
// controller. While no pod is ready, there is nothing to measure, and the verdict is
// Unknown. A problem that is normal shortly after a start is Progressing at first. Then
// left is the time after which the problem counts as a failure.
func Autoscaler(autoscaler *autoscalingv2.HorizontalPodAutoscaler, deployment *appsv1.Deployment, now time.Time) (verdict Verdict, left time.Duration) {
	observed := autoscaler.Status.ObservedGeneration
	if autoscaler.UID == "" || deployment.Status.ReadyReplicas == 0 || observed != nil && *observed < autoscaler.Generation {
		return Verdict{State: Unknown}, 0
	}
	problem := autoscalerProblem(autoscaler)
	if problem == nil {
		return Verdict{State: Healthy}, 0
	}
	name := fmt.Sprintf("HorizontalPodAutoscaler %q cannot scale", autoscaler.Name)
	words := autoscalerWords(problem.Message)
	verdict = Verdict{State: Failed, Reason: slipwayv1alpha1.ReasonAutoscalerFailing, Message: fmt.Sprintf("%s (spec.autoscaling): %s", name, words)}
	switch {
	case noRequest.MatchString(words):
		verdict.Message = fmt.Sprintf("%s (spec.autoscaling, spec.resources.requests.cpu): %s", name, words)
		return verdict, 0
	case requestsNothing(deployment):
		verdict.Message = fmt.Sprintf("%s, because it aims at a share of the CPU that is requested, and spec.resources.requests.cpu is 0: %s", name, words)
		return verdict, 0
	case problem.Type == autoscalingv2.ScalingActive && !noMetrics.MatchString(words):
		if left := metricsGrace - now.Sub(problem.LastTransitionTime.Time); left > 0 {
			verdict.State = Progressing
			return verdict, left
		}
	}
	return verdict, 0
}

// requestsNothing reports whether no container requests any CPU.
func requestsNothing(deployment *appsv1.Deployment) bool {
	containers := deployment.Spec.Template.Spec.Containers
	return !slices.ContainsFunc(containers, func(c corev1.Container) bool { return !c.Resources.Requests.Cpu().IsZero() })
}

// autoscalerProblem returns the condition that prevents scaling, or nil. Scaling that is
// disabled because of 0 replicas is no problem.
func autoscalerProblem(autoscaler *autoscalingv2.HorizontalPodAutoscaler) *autoscalingv2.HorizontalPodAutoscalerCondition {
	for i := range autoscaler.Status.Conditions {
		c := &autoscaler.Status.Conditions[i]
		evaluated := c.Type == autoscalingv2.AbleToScale || c.Type == autoscalingv2.ScalingActive
		if evaluated && c.Status == corev1.ConditionFalse && c.Reason != "ScalingDisabled" {
			return c
		}
	}
	return nil
}

// These parts of an autoscaler's messages differ between attempts.
var (
	computing = regexp.MustCompile(`^the HPA (was unable to compute the replica count|controller was unable to get the target's current scale): `)
	ofPod     = regexp.MustCompile(` (of|for) [Pp]od \S+`)
	target    = regexp.MustCompile(`(Get|Post) "[^"]*": `)
)

// These are the whole of what the controller says when a container requests nothing, and when the cluster has nothing that
// measures. What a server for metrics answers may hold the same words further behind.
var (
	noRequest = regexp.MustCompile(`^` + chainOfMetric + `missing request for \S+ in container `)
	noMetrics = regexp.MustCompile(`^` + chainOfMetric + `unable to get metrics for resource \S+: unable to fetch metrics from \w+ metrics API: the server could not find the requested resource\b`)
)

// chainOfMetric is how the controller's own errors begin.
const chainOfMetric = `(?:invalid metrics \(\d+ invalid out of \d+\), first error is: )?(?:failed to get \S+ (?:(?:resource|container) metric value|usage|utilization): )*`

// maxAutoscalerWords bounds how much of an autoscaler's message is quoted.
const maxAutoscalerWords = 384

func autoscalerWords(message string) string {
	message = computing.ReplaceAllString(message, "")
	message = ofPod.ReplaceAllString(message, "")
	message = target.ReplaceAllString(message, "")
	return text.Cut(withoutAddresses(message), maxAutoscalerWords)
}
