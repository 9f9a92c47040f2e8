package workload_test

import (
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/workload"
)

// The Deployment's controller tells of an earlier ReplicaSet that goes on trying until the pods of the next one serve.
func TestARefusalIsToldOfTheTemplateThatItIsOf(t *testing.T) {
	replicaSet := func(hash, revision string, made int64) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{
			Name: "shop-" + hash, CreationTimestamp: metav1.Unix(made, 0), Annotations: map[string]string{health.AnnotationRevision: revision},
			Labels: map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: hash},
		}}
	}
	const limits = `is forbidden: maximum memory usage per Container is 64Mi, but limit is 1Gi`
	const webhook = `admission webhook "pods.example.com" denied the request: no team label`
	tests := map[string]struct {
		answer  string
		since   int64
		revised string // the revision of the Deployment
		reason  string
	}{
		"the current one":                        {`pods "shop-new-x7k2p" ` + limits, 200, "2", "PodsForbidden"},
		"the earlier one":                        {`pods "shop-old-x7k2p" ` + limits, 100, "2", ""},
		"the earlier one, after the current was": {`pods "shop-old-x7k2p" ` + limits, 300, "2", ""},
		"the earlier one is current again":       {`pods "shop-old-x7k2p" ` + limits, 100, "1", "PodsForbidden"},
		"a name that is not made yet":            {`pods "shop-old-" is forbidden: error looking up service account team/robot: serviceaccount "robot" not found`, 100, "2", ""},
		"an invalid pod of the earlier one":      {`Pod "shop-old-x7k2p" is invalid: spec.hostname: Invalid value`, 100, "2", ""},
		"a ReplicaSet that has gone":             {`pods "shop-gone-x7k2p" ` + limits, 100, "2", ""},
		"without a name, before":                 {webhook, 100, "2", ""},
		"without a name, since":                  {webhook, 200, "2", "PodsForbidden"},
		"nobody knows the template":              {`pods "shop-old-x7k2p" ` + limits, 100, "", "PodsForbidden"},
		"a name that only begins alike":          {`pods "shop-newer-x7k2p" ` + limits, 100, "2", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			w := workload.Workload{
				Name: "shop", MinReplicas: 1,
				Deployment: &appsv1.Deployment{
					ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "uid", Annotations: map[string]string{health.AnnotationRevision: tc.revised}},
					Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{
						Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", Message: tc.answer,
						LastTransitionTime: metav1.Unix(tc.since, 0),
					}}},
				},
				ReplicaSets: []metav1.PartialObjectMetadata{replicaSet("old", "1", 100), replicaSet("new", "2", 200)},
				Pods:        []corev1.Pod{pod("shop-new-1", "new", 0, starting)},
			}
			current, _ := w.Split()
			got := w.Judge(workload.Judging{Current: current, Now: time.Unix(1000, 0)})
			reason := ""
			if got.Trouble != nil {
				reason = got.Trouble.Reason
			}
			if reason != tc.reason || tc.reason == "" && tc.revised == "2" && got.Waiting == "" {
				t.Errorf("%+v (%+v), want the reason %q", got, got.Trouble, tc.reason)
			}
		})
	}
}

// A rollout makes a pod more than there are to be. If that one does not fit, no number of the spec is too high.
func TestTheExtraPodOfARolloutIsCalledThat(t *testing.T) {
	replicas := int32(2)
	deployment := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", UID: "uid"}, Spec: appsv1.DeploymentSpec{Replicas: &replicas},
		Status: appsv1.DeploymentStatus{Replicas: 2, ReadyReplicas: 2, AvailableReplicas: 2, Conditions: []appsv1.DeploymentCondition{{
			Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate",
			Message: `pods "shop-new-x7k2p" is forbidden: exceeded quota: team, requested: pods=1,requests.cpu=1, used: pods=2,requests.cpu=2, limited: pods=2,requests.cpu=2`,
		}}},
	}
	const want = `Deployment "shop" cannot create the extra pod of its rollout (maxSurge), beside the 2 that there are: ResourceQuota "team" does not allow it: ` +
		`pods=1 is asked for and 2 of 2 is used, requests.cpu=1 is asked for (spec.resources.requests.cpu) and 2 of 2 is used`
	w := workload.Workload{Name: "shop", Deployment: deployment, MinReplicas: 2}
	if got := w.Deployed(); got.Reason != "QuotaExceeded" || got.Message != want {
		t.Errorf("%+v", got)
	}
	deployment.Status.Replicas = 1
	if got := w.Deployed(); !strings.Contains(got.Message, "cannot create its pods: ") || !strings.Contains(got.Message, "(spec.replicas) and 2 of 2 is used") {
		t.Errorf("a pod that is asked for: %+v", got)
	}
}
