package refusal

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/workload"
)

// cluster has one quota and the events of one ReplicaSet, and counts what is written.
type cluster struct {
	client.Reader
	client.Writer
	quota  corev1.ResourceQuota
	ranges []corev1.LimitRange
	events []corev1.Event
	// gone reports whether there is no quota.
	gone bool
	// level is the Pod Security level of the namespace.
	level string
	// writes is how often a mend was written, and retries are when pods were asked for again without one.
	writes  int
	retries []time.Time
	// reads is how often events were read.
	reads int
}

func (c *cluster) Get(_ context.Context, _ client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if c.gone {
		return apierrors.NewNotFound(corev1.Resource("resourcequotas"), "team")
	}
	switch into := into.(type) {
	case *corev1.ResourceQuota:
		c.quota.DeepCopyInto(into)
	case *metav1.PartialObjectMetadata:
		into.Labels = map[string]string{podSecurityLabels + "enforce": c.level, "team": fmt.Sprint(c.reads)}
	}
	return nil
}

func (c *cluster) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	switch into := into.(type) {
	case *corev1.LimitRangeList:
		into.Items = c.ranges
	case *corev1.EventList:
		c.reads++
		into.Items = c.events
	}
	return nil
}

func (c *cluster) Patch(_ context.Context, object client.Object, patch client.Patch, _ ...client.PatchOption) error {
	written, err := patch.Data(object)
	if err != nil {
		return err
	}
	said := &metav1.PartialObjectMetadata{}
	if err := json.Unmarshal(written, said); err != nil {
		return err
	}
	if at := retriedAt(&appsv1.Deployment{ObjectMeta: said.ObjectMeta}); !at.IsZero() {
		c.retries = append(c.retries, at)
		return nil
	}
	c.writes++
	return nil
}

// count has the quota allow and use so many pods.
func (c *cluster) count(version int, hard, used string) {
	list := func(pods string) corev1.ResourceList { return corev1.ResourceList{"pods": resource.MustParse(pods)} }
	c.quota = corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Name: "team", ResourceVersion: fmt.Sprint(version)},
		Spec:       corev1.ResourceQuotaSpec{Hard: list(hard)}, Status: corev1.ResourceQuotaStatus{Hard: list(hard), Used: list(used)},
	}
}

func refused(since int64) workload.Workload {
	revision := map[string]string{health.AnnotationRevision: "1"}
	return workload.Workload{
		Name: "shop", MinReplicas: 2,
		Deployment: &appsv1.Deployment{
			ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "team", UID: "uid", Annotations: revision},
			Status: appsv1.DeploymentStatus{Conditions: []appsv1.DeploymentCondition{{
				Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue, Reason: "FailedCreate", LastTransitionTime: metav1.Unix(since, 0),
				Message: `pods "shop-a-x7k2p" is forbidden: exceeded quota: team, requested: pods=1, used: pods=1, limited: pods=1`,
			}}},
		},
		ReplicaSets: []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{
			Name: "shop-a", UID: "set", Annotations: revision, Labels: map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "a"},
		}}},
	}
}

// A quota whose count others change all the time costs writes only where it has room, and one in a while then. What refuses
// beside it is told in its own words.
func TestAMendIsWrittenOnceInAWhile(t *testing.T) {
	c := &cluster{}
	clock := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	r := NewReader(c, c, clock)
	owner := types.NamespacedName{Namespace: "team", Name: "shop"}
	look := func() (said string, again time.Duration) {
		w, recheck := r.Look(t.Context(), owner, refused(900))
		if w.Refusal != nil {
			said = w.Deployed().Message
		}
		return said, recheck.In()
	}
	for version := range 100 {
		c.count(version, "5", "5")
		if said, _ := look(); !strings.Contains(said, "5 of 5 is used") || c.writes > 0 {
			t.Fatalf("a full quota: %q after %d writes", said, c.writes)
		}
	}
	for version := range 100 {
		c.count(100+version, "5", fmt.Sprint(version%4))
		if said, again := look(); said != "" || again != grace || c.writes != 1 {
			t.Fatalf("a quota with room: %q, again after %v, %d writes", said, again, c.writes)
		}
	}
	// It has room, and something else refuses.
	clock.SetTime(clock.Now().Add(grace))
	c.events = []corev1.Event{
		{LastTimestamp: metav1.Unix(900, 0), Message: "Error creating: pods \"shop-a-b\" is forbidden: older"},
		{LastTimestamp: metav1.Unix(1001, 0), Message: `Error creating: pods "shop-a-c" is forbidden: violates PodSecurity "restricted:latest": host namespaces`},
	}
	if said, _ := look(); !strings.Contains(said, "violates PodSecurity") || c.writes != 1 {
		t.Errorf("what refuses since: %q after %d writes", said, c.writes)
	}
	if said, again := look(); !strings.Contains(said, "violates PodSecurity") || again <= 0 || again > minPause || c.writes != 1 {
		t.Errorf("later: %q, again after %v, %d writes", said, again, c.writes)
	}
	// Another refusal is looked at anew.
	c.count(300, "5", "5")
	w, _ := r.Look(t.Context(), owner, refused(1100))
	if said := w.Deployed().Message; !strings.Contains(said, "5 of 5 is used") || c.writes != 1 {
		t.Errorf("another refusal: %q after %d writes", said, c.writes)
	}
}
