package webapp

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/uuid"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
	"github.com/slipway-dev/slipway/internal/testing/generate"
	"github.com/slipway-dev/slipway/internal/testing/property"
	"github.com/slipway-dev/slipway/internal/testing/truth"
)

// facts are what the phases of a reconcile find.
type facts struct {
	deployment  appsv1.Deployment
	pods        []corev1.Pod
	claim       corev1.PersistentVolumeClaim
	autoscaler  autoscalingv2.HorizontalPodAutoscaler
	revisions   []storedRevision
	replicaSets []metav1.PartialObjectMetadata
	config      config
	// configErr and applyErr are what the phases of these names return.
	configErr, applyErr error
	drifted             bool
}

func someFacts(s *generate.Source, app *slipwayv1alpha1.WebApp) facts {
	f := facts{config: config{hash: generate.Pick(s, "", "c0ffee")}, drifted: s.Maybe()}
	revision := map[string]string{health.AnnotationRevision: "1"}
	f.deployment.Name, f.deployment.Annotations = app.Name, revision
	if s.Maybe() {
		f.deployment.UID = "deployment-uid"
		generate.Deployment(s, &f.deployment)
	}
	if s.Maybe() {
		f.replicaSets = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{
			Annotations: revision, Labels: map[string]string{appsv1.DefaultDeploymentUniqueLabelKey: "new"},
		}}}
	}
	for i := range s.Below(3) {
		f.pods = append(f.pods, generate.Pod(s, fmt.Sprintf("shop-%d", i), generate.Pick(s, "new", "old")))
	}
	if app.Spec.Storage != nil && s.Maybe() {
		f.claim.UID, f.claim.Name = "claim-uid", desired.VolumeName(app)
		f.claim.Status.Phase = generate.Pick(s, corev1.ClaimPending, corev1.ClaimBound, corev1.ClaimLost)
		f.claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	}
	if s.Maybe() {
		f.revisions = []storedRevision{stored(namedRevision{name: "shop-old", Revision: desired.RevisionOf(generate.Spec(s), "")}, 1)}
	}
	if s.Maybe() {
		f.autoscaler.Name, f.autoscaler.UID = app.Name, "autoscaler-uid"
		f.autoscaler.Status.Conditions = []autoscalingv2.HorizontalPodAutoscalerCondition{{
			Type: autoscalingv2.ScalingActive, Status: generate.Pick(s, corev1.ConditionTrue, corev1.ConditionFalse),
			Message: generate.Pick(s, "failed to get cpu utilization: missing request for cpu in container app", "no metrics returned"), LastTransitionTime: metav1.NewTime(time.Unix(int64(s.Byte()), 0)),
		}}
	}
	missing := outcome.Waitingf(0, slipwayv1alpha1.ReasonSecretNotFound, "Secret %q does not exist", "db")
	refused := outcome.Blockedf(0, slipwayv1alpha1.ReasonNameConflict, "Service %q exists", "shop")
	conflict := outcome.Classify("request", apierrors.NewConflict(schema.GroupResource{}, "shop", errors.New("changed")))
	switch s.Below(8) {
	case 1:
		f.config.missing, f.config.hash = missing, ""
	case 2:
		f.configErr = outcome.Classify("Secret", errors.New("timeout"))
	case 3:
		f.applyErr = refused
	case 4:
		f.applyErr = errors.Join(conflict, errors.New("timeout"))
	case 5:
		f.applyErr = outcome.Waitingf(0, slipwayv1alpha1.ReasonTerminating, "Service %q is being deleted", "shop")
	}
	return f
}

// stored is a revision as it is kept.
func stored(revision namedRevision, number int64) storedRevision {
	return storedRevision{namedRevision: revision, number: number, object: &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{UID: uuid.NewUUID()}}}
}

// pass does what Reconcile does, with the facts in the place of the cluster.
func (f facts) pass(t *testing.T, app *slipwayv1alpha1.WebApp, names *names, now time.Time) *scope {
	t.Helper()
	s := &scope{
		app: app, deployment: f.deployment.DeepCopy(), service: &corev1.Service{}, autoscaler: &f.autoscaler,
		budget: &policyv1.PodDisruptionBudget{}, claim: &f.claim, revisions: f.revisions, replicaSets: f.replicaSets, pods: f.pods, err: f.configErr,
	}
	if s.err == nil {
		s.config = f.config
		s.err = s.chooseRevision(names)
	}
	if s.err == nil {
		s.err = f.applyErr
		s.applied = s.target.name != "" && (s.err == nil || !app.Spec.Paused)
		s.drifted = app.Spec.Paused && (f.drifted || !s.applied)
		if s.applied && s.deployment.UID == "" {
			s.deployment.UID, s.deployment.Generation = "deployment-uid", 1
		}
	}
	s.judge(now)
	if s.err == nil && !app.Spec.Paused && s.rollout.proven && s.wanted.name != "" && s.target.name == s.wanted.name && !s.isGood(s.wanted) {
		s.revisions = append(s.revisions, stored(s.wanted, 2))
	}
	return s
}

// Whatever the phases find: the conditions do not contradict each other or the facts, and
// reconciles that find the same reach a steady state.
func FuzzStatus(f *testing.F) {
	generate.Seed(f, 20)
	f.Fuzz(checkHistory)
}

// The states that matter are rare among the inputs that a fuzz test starts from.
func TestStatusIsTrueWhateverThePhasesFind(t *testing.T) {
	count, source := property.Inputs(t, 600, 120)
	random := source(0)
	for range count {
		data := make([]byte, 300)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		checkHistory(t, data)
	}
}

// checkHistory checks the status of a WebApp through some changes of its spec and of the
// facts.
func checkHistory(t *testing.T, data []byte) {
	t.Helper()
	source := generate.From(data)
	app := generate.WebApp(source)
	names := newNames()
	if source.Maybe() {
		app.Status.Rollback = earlierRollback(t, app)
	}
	for step := range 3 {
		if step > 0 && source.Maybe() {
			app.Spec = generate.Spec(source)
			app.Generation++
		}
		found := someFacts(source, app)
		now := time.Unix(int64(100*step)+int64(source.Byte()), 0)
		settled := false
		for passes := 0; passes < 4 && !settled; passes++ {
			s := found.pass(t, app, names, now)
			if s.err != nil && outcome.Worst(s.err) == nil {
				break // A conflict: Reconcile writes nothing.
			}
			before := app.Status
			app.Status = s.status(now)
			settled = equality.Semantic.DeepEqual(before, app.Status)
			found.revisions = s.revisions
			if err := truth.Check(app); err != nil {
				t.Fatalf("step %d: the status is not true: %v\n%+v\nfacts: %+v", step, err, app.Status, found)
			}
			checkStatus(t, s, before)
			if passes == 3 && !settled {
				t.Errorf("step %d: the status goes on changing (-before +after):\n%s\nfacts: %+v", step, cmp.Diff(before, app.Status), found)
			}
		}
	}
}

// earlierRollback is that of the very spec.
func earlierRollback(t *testing.T, app *slipwayv1alpha1.WebApp) *slipwayv1alpha1.RollbackStatus {
	t.Helper()
	intent, err := desired.Intent(app.Spec, "c0ffee")
	if err != nil {
		t.Fatal(err)
	}
	spec, err := desired.Intent(app.Spec, "")
	if err != nil {
		t.Fatal(err)
	}
	return &slipwayv1alpha1.RollbackStatus{
		Intent: intent, Spec: spec, FromRevision: "shop-bad", ToRevision: "shop-old", Reason: slipwayv1alpha1.ReasonImageNotFound, Message: "no such image",
	}
}

// checkStatus checks a status against the facts and against the one before it.
func checkStatus(t *testing.T, s *scope, before slipwayv1alpha1.WebAppStatus) {
	t.Helper()
	after, deployed := s.app.Status, s.deployment.Status
	expect := func(ok bool, what string) {
		t.Helper()
		if !ok {
			t.Errorf("%s: before %+v, after %+v, facts %+v", what, before, after, s)
		}
	}
	is := func(conditionType string) bool { return meta.IsStatusConditionTrue(after.Conditions, conditionType) }

	worst := outcome.Worst(s.err)
	stalls := worst.Stalls()
	expect(!stalls || is(slipwayv1alpha1.ConditionStalled), "a user must act, and it is not stalled")
	if is(slipwayv1alpha1.ConditionReady) {
		expect(s.err == nil && s.config.missing == nil && !s.drifted && after.Rollback == nil, "ready, though something is missing, drifted or rolled back")
		expect(s.target.name != "" && s.target.name == s.wanted.name, "ready, and another revision runs")
		expect(deployed.ObservedGeneration >= s.deployment.Generation && deployed.UpdatedReplicas >= deployed.Replicas &&
			deployed.AvailableReplicas >= desired.MinReplicas(s.app), "ready, and not rolled out")
	}
	if s.undecided() {
		expect(equality.Semantic.DeepEqual(before.Rollback, after.Rollback), "nobody knows what is asked for, and the rollback changes")
	}
	if after.Rollback != nil && before.Rollback == nil {
		expect(desired.OnFailure(s.app) == slipwayv1alpha1.FailurePolicyRollback && !s.app.Spec.Paused && s.lastGood() != nil && s.applied, "rolled back without being asked")
	}
	if after.Rollback != nil && !s.drifted {
		expect(is(slipwayv1alpha1.ConditionRolledBack), "a rollback stands, and no condition says so")
		expect(is(slipwayv1alpha1.ConditionDegraded), "a rollback stands, and nothing is degraded")
	}
	if before.Rollout != nil && after.Rollout != nil && before.Rollout.Revision == after.Rollout.Revision {
		expect(before.Rollout.StartTime.Equal(&after.Rollout.StartTime), "the rollout begins again")
	}
}

// Two contents have the same digest when the keys that are used have the same values.
func FuzzDigest(f *testing.F) {
	f.Add("A", "1", "B", "2", "A", "1", "B", "3", true)
	f.Add("A", "1B", "C", "", "A", "1", "BC", "", false)
	f.Add("AB", "C", "D", "", "A", "BC", "D", "", false)
	f.Add("A", "1", "A", "2", "A", "1", "B", "2", false)
	f.Add("A", "=1:", "B", "1:A=", "A", "", "B", "=1:1:A=", false)
	f.Fuzz(func(t *testing.T, k1, v1, k2, v2, k3, v3, k4, v4 string, keyed bool) {
		one := map[string][]byte{k1: []byte(v1), k2: []byte(v2)}
		other := map[string][]byte{k3: []byte(v3), k4: []byte(v4)}
		ref := configRef{}
		if keyed {
			ref.keys = []string{k1}
		}
		used := func(data map[string][]byte) map[string]string {
			content := map[string]string{}
			for key := range data {
				if !keyed || key == k1 {
					content[key] = string(data[key])
				}
			}
			return content
		}
		digestOf := func(data map[string][]byte) (d digest) {
			d.hash, d.missingKey = hashOf(sha256.New(), ref, data)
			return d
		}
		a, b := digestOf(one), digestOf(other)
		if same := maps.Equal(used(one), used(other)); (a == b) != same {
			t.Errorf("digests %+v and %+v of %q and %q", a, b, used(one), used(other))
		}
		if same := combine(map[string]digest{k1: a, k2: b}) == combine(map[string]digest{k1: b, k2: a}); same != (a.hash == b.hash) {
			t.Errorf("swapped, the digests %+v and %+v of %q and %q combine to the same: %v", a, b, k1, k2, same)
		}
	})
}
