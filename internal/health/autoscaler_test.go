package health_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/internal/health"
)

const noAPI = "the HPA was unable to compute the replica count: failed to get cpu utilization: unable to get metrics for resource cpu: " +
	"unable to fetch metrics from resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)"

func TestAnAutoscalerThatCannotScaleIsToldWithItsWordsAndTheField(t *testing.T) {
	now := time.Unix(1000, 0)
	said := func(conditionType autoscalingv2.HorizontalPodAutoscalerConditionType, status corev1.ConditionStatus, reason, message string, ago time.Duration) []autoscalingv2.HorizontalPodAutoscalerCondition {
		return []autoscalingv2.HorizontalPodAutoscalerCondition{{Type: conditionType, Status: status, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(now.Add(-ago))}}
	}
	failed := func(message string, ago time.Duration) []autoscalingv2.HorizontalPodAutoscalerCondition {
		return said(autoscalingv2.ScalingActive, corev1.ConditionFalse, "FailedGetResourceMetric", message, ago)
	}
	tests := map[string]struct {
		conditions []autoscalingv2.HorizontalPodAutoscalerCondition
		request    string
		observed   int64
		state      health.State
		message    string
		left       time.Duration
	}{
		"it has said nothing":            {nil, "10m", 1, health.Healthy, "", 0},
		"it scales":                      {said(autoscalingv2.ScalingActive, corev1.ConditionTrue, "ValidMetricFound", "fine", time.Hour), "10m", 1, health.Healthy, "", 0},
		"there are no pods":              {said(autoscalingv2.ScalingActive, corev1.ConditionFalse, "ScalingDisabled", "zero", time.Hour), "10m", 1, health.Healthy, "", 0},
		"it speaks of an earlier target": {failed(noAPI, time.Hour), "10m", 0, health.Unknown, "", 0},
		"it is at its limit":             {said(autoscalingv2.ScalingLimited, corev1.ConditionTrue, "TooManyReplicas", "limit", time.Hour), "10m", 1, health.Healthy, "", 0},
		"the cluster measures nothing, told at once": {
			failed(noAPI, 0), "10m", 1, health.Failed,
			`HorizontalPodAutoscaler "shop" cannot scale (spec.autoscaling): failed to get cpu utilization: unable to get metrics for resource cpu: ` +
				"unable to fetch metrics from resource metrics API: the server could not find the requested resource (get pods.metrics.k8s.io)", 0,
		},
		"no request, told at once": {
			failed("the HPA was unable to compute the replica count: failed to get cpu utilization: missing request for cpu in container proxy of Pod shop-6d5f8c-x2x4z", 0), "10m", 1, health.Failed,
			`HorizontalPodAutoscaler "shop" cannot scale (spec.autoscaling, spec.resources.requests.cpu): failed to get cpu utilization: missing request for cpu in container proxy`, 0,
		},
		"words of a server that are those of another trouble": {
			failed("the HPA was unable to compute the replica count: failed to get cpu utilization: unable to get metrics for resource cpu: "+
				"unable to fetch metrics from resource metrics API: busy: missing request for cpu in container x: the server could not find the requested resource", time.Minute), "10m", 1, health.Progressing,
			`HorizontalPodAutoscaler "shop" cannot scale (spec.autoscaling): failed to get cpu utilization: unable to get metrics for resource cpu: ` +
				"unable to fetch metrics from resource metrics API: busy: missing request for cpu in container x: the server could not find the requested resource", time.Minute,
		},
		"no request, of several metrics": {
			failed("the HPA was unable to compute the replica count: invalid metrics (1 invalid out of 1), first error is: failed to get cpu resource metric value: failed to get cpu utilization: missing request for cpu in container proxy of Pod shop-x", 0), "10m", 1, health.Failed,
			`HorizontalPodAutoscaler "shop" cannot scale (spec.autoscaling, spec.resources.requests.cpu): invalid metrics (1 invalid out of 1), first error is: ` +
				"failed to get cpu resource metric value: failed to get cpu utilization: missing request for cpu in container proxy", 0,
		},
		"a request of 0, told at once": {
			failed("the HPA was unable to compute the replica count: failed to get cpu utilization: no metrics returned matched known pods", 0), "0", 1, health.Failed,
			`HorizontalPodAutoscaler "shop" cannot scale, because it aims at a share of the CPU that is requested, and spec.resources.requests.cpu is 0: ` +
				"failed to get cpu utilization: no metrics returned matched known pods", 0,
		},
		"pods that have not been measured yet": {
			failed("the HPA was unable to compute the replica count: failed to get cpu utilization: no metrics returned from resource metrics API", time.Minute), "10m", 1, health.Progressing,
			`HorizontalPodAutoscaler "shop" cannot scale (spec.autoscaling): failed to get cpu utilization: no metrics returned from resource metrics API`, time.Minute,
		},
		"pods that are not measured for long": {
			failed("the HPA was unable to compute the replica count: failed to get cpu utilization: no metrics returned from resource metrics API", 2*time.Minute), "10m", 1, health.Failed,
			`HorizontalPodAutoscaler "shop" cannot scale (spec.autoscaling): failed to get cpu utilization: no metrics returned from resource metrics API`, 0,
		},
		"what measures does not answer": {
			failed(`unable to fetch metrics from resource metrics API: Get "https://10.0.0.7:443/apis": dial tcp 10.0.0.7:443: connect: connection refused`, time.Hour), "10m", 1, health.Failed,
			`HorizontalPodAutoscaler "shop" cannot scale (spec.autoscaling): unable to fetch metrics from resource metrics API: dial tcp (address): connect: connection refused`, 0,
		},
		"it may not scale, told at once": {
			said(autoscalingv2.AbleToScale, corev1.ConditionFalse, "FailedUpdateScale", "the HPA controller was unable to update the target scale: forbidden", 0), "10m", 1, health.Failed,
			`HorizontalPodAutoscaler "shop" cannot scale (spec.autoscaling): the HPA controller was unable to update the target scale: forbidden`, 0,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			autoscaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "uid", Generation: 1}}
			autoscaler.Status.ObservedGeneration, autoscaler.Status.Conditions = &tc.observed, tc.conditions
			got, left := health.Autoscaler(autoscaler, requesting(tc.request, 1), now)
			if got.State != tc.state || got.Message != tc.message || left != tc.left {
				t.Errorf("got %v after %v, want %v %q after %v", got, left, tc.state, tc.message, tc.left)
			}
		})
	}
}

// requesting returns a Deployment with that many ready pods. One container requests that
// much CPU, the other none.
func requesting(cpu string, ready int32) *appsv1.Deployment {
	deployment := &appsv1.Deployment{Status: appsv1.DeploymentStatus{ReadyReplicas: ready}}
	deployment.Spec.Template.Spec.Containers = []corev1.Container{{Name: "proxy"}, {
		Name: "app", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse(cpu)}},
	}}
	return deployment
}

func TestAnAutoscalerIsNotEvaluatedWithoutPodsAndItsWordsAreBounded(t *testing.T) {
	autoscaler := &autoscalingv2.HorizontalPodAutoscaler{ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "uid"}}
	autoscaler.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{
		Type: autoscalingv2.AbleToScale, Status: corev1.ConditionFalse, Reason: "FailedGetScale", Message: strings.Repeat("ä", 1000),
	}}
	if got, _ := health.Autoscaler(autoscaler, requesting("1", 0), time.Unix(0, 0)); got.State != health.Unknown {
		t.Errorf("without a ready pod it is %v", got)
	}
	got, _ := health.Autoscaler(autoscaler, requesting("1", 1), time.Unix(0, 0))
	if len(got.Message) > 500 || !utf8.ValidString(got.Message) || !strings.HasSuffix(got.Message, "ä...") {
		t.Errorf("%d bytes: %q", len(got.Message), got.Message)
	}
}
