package why

import (
	"bytes"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/testing/clitest"
)

// wellFindings returns the findings of clitest.ReadyApp when everything is healthy.
func wellFindings(changes ...func(*webAppFindings)) *webAppFindings {
	app := clitest.ReadyApp()
	owned := metav1.ObjectMeta{Name: "shop", UID: "service-uid", OwnerReferences: clitest.OwnedBy(app)}
	f := &webAppFindings{app: app, findings: findings{now: clitest.Now, service: &corev1.Service{ObjectMeta: owned}, logs: map[logTarget]logTail{}}}
	f.deployment = &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{
			Name: "shop", UID: "deployment-uid", Generation: 2, OwnerReferences: clitest.OwnedBy(app),
			Annotations: map[string]string{health.AnnotationRevision: "2"},
		},
		Spec:   appsv1.DeploymentSpec{Replicas: new(int32(2))},
		Status: appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 2, UpdatedReplicas: 2, ReadyReplicas: 2, AvailableReplicas: 2},
	}
	f.replicaSets = []appsv1.ReplicaSet{set("shop-1", "1", 0, 0), set("shop-2", "2", 2, 2)}
	f.pods = []corev1.Pod{pod("shop-2-a", "shop-2", serving()), pod("shop-2-b", "shop-2", serving())}
	for _, change := range changes {
		change(f)
	}
	return f
}

// rollingFindings returns findings in the middle of a rollout. The pod of the new
// ReplicaSet has the given status.
func rollingFindings(reason, message string, status corev1.PodStatus, changes ...func(*webAppFindings)) *webAppFindings {
	f := wellFindings(func(f *webAppFindings) {
		clitest.Unready(reason, message)(f.app)
		f.deployment.Status.UpdatedReplicas, f.deployment.Status.Replicas = 1, 3
		f.deployment.Annotations[health.AnnotationRevision] = "3"
		f.replicaSets = append(f.replicaSets, set("shop-3", "3", 1, 0))
		f.pods = append(f.pods, pod("shop-3-a", "shop-3", status))
	})
	for _, change := range changes {
		change(f)
	}
	return f
}

func set(name, revision string, want, ready int32) appsv1.ReplicaSet {
	return appsv1.ReplicaSet{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, UID: types.UID(name + "-uid"), Annotations: map[string]string{health.AnnotationRevision: revision},
			OwnerReferences: clitest.ControlledBy("Deployment", "shop", "deployment-uid"),
		},
		Spec:   appsv1.ReplicaSetSpec{Replicas: &want},
		Status: appsv1.ReplicaSetStatus{Replicas: want, ReadyReplicas: ready, AvailableReplicas: ready},
	}
}

func pod(name, owner string, status corev1.PodStatus) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name + "-uid"), OwnerReferences: clitest.ControlledBy("ReplicaSet", owner, types.UID(owner+"-uid"))},
		Status:     status,
	}
}

func serving() corev1.PodStatus {
	return corev1.PodStatus{
		Conditions:        []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		ContainerStatuses: []corev1.ContainerStatus{{Name: "app", Ready: true, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}},
	}
}

// leaving returns a terminating pod of the earlier ReplicaSet. overdue is the time since
// its grace period ended.
func leaving(overdue time.Duration) corev1.Pod {
	p := pod("shop-1-a", "shop-1", clitest.Crashing(false))
	p.DeletionTimestamp = new(clitest.Ago(overdue))
	return p
}

func boundClaim() *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "shop-data", UID: "claim-uid", Labels: map[string]string{slipwayv1alpha1.LabelWebApp: "shop"}},
		Spec:       corev1.PersistentVolumeClaimSpec{StorageClassName: new("fast")},
		Status:     corev1.PersistentVolumeClaimStatus{Phase: corev1.ClaimBound},
	}
}

func warning(object types.UID, reason, message string, age time.Duration, count int32) corev1.Event {
	return corev1.Event{
		Type: corev1.EventTypeWarning, Reason: reason, Message: message, Count: count, LastTimestamp: clitest.Ago(age),
		InvolvedObject: corev1.ObjectReference{UID: object},
	}
}

const crashMessage = `pod "shop-3-a" container "app" ended with exit code 1: cannot reach the database`

func crashFindings(changes ...func(*webAppFindings)) *webAppFindings {
	return rollingFindings("CrashLoopBackOff", crashMessage, clitest.Crashing(false), append([]func(*webAppFindings){func(f *webAppFindings) {
		f.logs[logTarget{"shop-3-a", "app", true}] = logTail{Lines: []string{"listening on :8080", "cannot reach the database", "exit"}}
		f.events = []corev1.Event{
			warning("shop-3-a-uid", "BackOff", "Back-off restarting failed container app", 40*time.Second, 12),
			warning("shop-3-a-uid", "Old", "too old to matter", 2*time.Hour, 1),
			warning("another-uid", "Other", "about something else", time.Second, 1),
		}
	}}, changes...)...)
}

func whyCases() map[string]*webAppFindings {
	unschedulable := corev1.PodStatus{Conditions: []corev1.PodCondition{{
		Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable,
		Message: "0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.",
	}}}
	return map[string]*webAppFindings{
		"well":  wellFindings(),
		"crash": crashFindings(),
		"crash-many": crashFindings(func(f *webAppFindings) {
			f.pods = append(f.pods, pod("shop-3-b", "shop-3", clitest.Crashing(false)), pod("shop-3-c", "shop-3", clitest.Crashing(false)))
		}),
		"log-unavailable": crashFindings(func(f *webAppFindings) {
			f.logs = map[logTarget]logTail{{"shop-3-a", "app", true}: {Error: "the node is away"}}
		}),
		"image": rollingFindings("ImageNotFound", `pod "shop-3-a" container "app": ImagePullBackOff: image "registry.example.com/shop:1.5.0" does not exist: check spec.image`,
			clitest.Waiting("ImagePullBackOff", "not found")),
		"missing-config": wellFindings(func(f *webAppFindings) {
			clitest.Unready(slipwayv1alpha1.ReasonSecretNotFound, `Secret "db" does not exist (spec.envFrom[0].secretRef)`)(f.app)
			f.deployment, f.replicaSets, f.pods = nil, nil, nil
			f.config = []configFinding{
				{configUse: configUse{kind: kindSecret, name: "db", field: "spec.envFrom[0].secretRef"}, readable: true},
				{configUse: configUse{kind: kindConfigMap, name: "site", field: "spec.files[0].configMapRef"}, readable: true, exists: true, missing: []string{"a.conf", "b.conf"}},
				{configUse: configUse{kind: kindSecret, name: "fine", field: "spec.files[1].secretRef"}, readable: true, exists: true},
				{configUse: configUse{kind: kindSecret, name: "pull", field: "spec.imagePullSecrets[0]"}, readable: true},
			}
		}),
		"volume": rollingFindings("VolumePending", `PersistentVolumeClaim "shop-data" is not bound (spec.storage)`, unschedulable, func(f *webAppFindings) {
			f.app.Spec.Storage = &slipwayv1alpha1.Storage{MountPath: "/data"}
			f.claim = boundClaim()
			f.claim.Status.Phase = corev1.ClaimPending
			f.events = []corev1.Event{warning("claim-uid", "ProvisioningFailed", `storageclass.storage.k8s.io "fast" not found`, 5*time.Second, 3)}
		}),
		"conflict": wellFindings(func(f *webAppFindings) {
			clitest.Unready(slipwayv1alpha1.ReasonNameConflict, `Deployment "shop" exists and is not ours`)(f.app)
			f.deployment.OwnerReferences, f.service.OwnerReferences = nil, nil
		}),
		"app-warnings": wellFindings(func(f *webAppFindings) {
			clitest.Unready("NotReady", "x")(f.app)
			f.events = []corev1.Event{
				warning("app-uid", "SecretNotFound", "over long ago", 20*time.Minute, 1), warning("app-uid", "APIError", "of this trouble", time.Minute, 1),
			}
		}),
		"quota": wellFindings(func(f *webAppFindings) {
			clitest.Unready(slipwayv1alpha1.ReasonQuotaExceeded, "quota")(f.app)
			f.pods, f.replicaSets = nil, []appsv1.ReplicaSet{set("shop-2", "2", 2, 0)}
			f.replicaSets[0].Status.Replicas = 0
			f.deployment.Status = appsv1.DeploymentStatus{ObservedGeneration: 2, Conditions: []appsv1.DeploymentCondition{{
				Type: appsv1.DeploymentReplicaFailure, Status: corev1.ConditionTrue,
				Message: `pods "shop-2-x" is forbidden: exceeded quota: small, requested: pods=1, used: pods=0, limited: pods=0`,
			}}}
		}),
		"rolled-back": wellFindings(func(f *webAppFindings) {
			f.app = clitest.ReadyApp(clitest.RolledBack)
			f.pods = append(f.pods, leaving(-10*time.Second))
			f.events = []corev1.Event{warning("app-uid", "CrashLoopBackOff", f.app.Status.Rollback.Message, time.Second, 1)}
		}),
		"recreate": rollingFindings("RolloutInProgress", "x", corev1.PodStatus{}, func(f *webAppFindings) {
			f.app.Spec.Storage = &slipwayv1alpha1.Storage{MountPath: "/data"}
			f.claim = boundClaim()
			f.pods = append(f.pods[:2], leaving(-10*time.Second))
		}),
		"lost-a-pod": wellFindings(func(f *webAppFindings) {
			clitest.Unready(slipwayv1alpha1.ReasonReplicasNotReady, `Deployment "shop" has fewer ready pods than asked for`)(f.app)
			f.deployment.Status.ReadyReplicas, f.deployment.Status.AvailableReplicas = 1, 1
			f.deployment.Status.Conditions = []appsv1.DeploymentCondition{{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"}}
			f.replicaSets[1].Status.ReadyReplicas, f.replicaSets[1].Status.AvailableReplicas = 1, 1
			f.pods[1].Status = clitest.Crashing(false)
		}),
		"overdue":         wellFindings(func(f *webAppFindings) { f.pods = append(f.pods, leaving(10*time.Minute)) }),
		"not-as-reported": wellFindings(func(f *webAppFindings) { f.pods[0].Status = clitest.Crashing(true) }),
		"not-observed":    wellFindings(func(f *webAppFindings) { f.app.Generation++ }),
		"unreadable": wellFindings(func(f *webAppFindings) {
			f.unreadable = []string{"pods", "events", `Secret "db"`}
			f.config = []configFinding{{configUse: configUse{kind: kindSecret, name: "db"}}}
		}),
		"probe": rollingFindings("NotReady", "x", corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{
			Name: "app", State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
		}}}, func(f *webAppFindings) {
			f.logs[logTarget{"shop-3-a", "app", false}] = logTail{Lines: []string{"GET /healthz 500"}}
			f.events = []corev1.Event{warning("shop-3-a-uid", "Unhealthy", "Readiness probe failed: HTTP probe failed with statuscode: 500\r\n", time.Second, 1)}
		}),
	}
}

func TestWhy(t *testing.T) {
	for name, f := range whyCases() {
		t.Run(name, func(t *testing.T) {
			clitest.Golden(t, "why/"+name+".txt", func(out *bytes.Buffer) error { return printWhy(out, f.explain()) })
		})
	}
	clitest.Golden(t, "why/crash.json", func(out *bytes.Buffer) error {
		output := command.FormatJSON
		return output.Print(out, crashFindings().explain())
	})
}

// TestWhyExitState checks the state that decides the exit code.
func TestWhyExitState(t *testing.T) {
	for name, f := range whyCases() {
		well := name == "well" || name == "unreadable" || name == "overdue"
		if got := f.explain().State; (got == health.Healthy) != well {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestLogTarget(t *testing.T) {
	initEnded := clitest.Crashing(false)
	initEnded.InitContainerStatuses = []corev1.ContainerStatus{{Name: "setup", State: corev1.ContainerState{Terminated: clitest.Ended(2, "")}}}
	justEnded := corev1.PodStatus{ContainerStatuses: []corev1.ContainerStatus{{Name: "app", State: corev1.ContainerState{Terminated: clitest.Ended(1, "")}}}}
	cases := map[string]struct {
		status corev1.PodStatus
		want   logTarget
		none   bool
	}{
		"waits between two runs":        {status: clitest.Crashing(false), want: logTarget{"p", "app", true}},
		"runs again":                    {status: clitest.Crashing(true), want: logTarget{"p", "app", true}},
		"has just ended":                {status: justEnded, want: logTarget{"p", "app", false}},
		"an init container comes first": {status: initEnded, want: logTarget{"p", "setup", false}},
		"serves":                        {status: serving(), none: true},
		"has never run":                 {status: clitest.Waiting("ImagePullBackOff", ""), none: true},
		"not even scheduled":            {none: true},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			p := pod("p", "set", tc.status)
			got, ok := logTargetOf(&p)
			if got != tc.want || ok == tc.none {
				t.Errorf("got %+v, %v", got, ok)
			}
		})
	}
	want := []logTarget{{"shop-3-a", "app", true}}
	if diff := cmp.Diff(want, logTargets(crashFindings()), cmp.AllowUnexported(logTarget{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestWarnings(t *testing.T) {
	series := corev1.Event{
		Reason: "Series", InvolvedObject: corev1.ObjectReference{UID: "x"},
		Series: &corev1.EventSeries{Count: 7, LastObservedTime: metav1.NewMicroTime(clitest.Now.Add(-time.Minute))},
	}
	single := corev1.Event{Reason: "Single", InvolvedObject: corev1.ObjectReference{UID: "x"}, EventTime: metav1.NewMicroTime(clitest.Now.Add(-time.Second))}
	f := &findings{now: clitest.Now, events: []corev1.Event{
		warning("x", "A", `Error: pods "a-1"`, 30*time.Second, 2), warning("x", "A", `(combined from similar events): Error: pods "a-2"`, 31*time.Second, 1), series, single,
		warning("x", "B", "the fourth", 2*time.Minute, 1), warning("y", "C", "of another", time.Second, 1),
	}}
	var got []string
	for _, line := range warnings(f, "x") {
		got = append(got, strings.TrimSpace(line.Reason+" "+line.age))
	}
	if diff := cmp.Diff([]string{"Single 1s", "A 30s", "Series 60s"}, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestConfigUses(t *testing.T) {
	secret, configMap := &slipwayv1alpha1.LocalReference{Name: "s"}, &slipwayv1alpha1.LocalReference{Name: "c"}
	got := configUses(slipwayv1alpha1.WebAppSpec{
		EnvFrom:          []slipwayv1alpha1.EnvFromSource{{SecretRef: secret, Keys: []string{"k"}}, {ConfigMapRef: configMap, Optional: true}},
		Files:            []slipwayv1alpha1.FileSource{{ConfigMapRef: configMap}, {SecretRef: secret, Optional: true}},
		ImagePullSecrets: []slipwayv1alpha1.LocalReference{*secret},
	})
	want := []configUse{
		{kind: kindSecret, name: "s", keys: []string{"k"}, field: "spec.envFrom[0].secretRef"},
		{kind: kindConfigMap, name: "c", field: "spec.files[0].configMapRef"},
		{kind: kindSecret, name: "s", field: "spec.imagePullSecrets[0]"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(configUse{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A condition quotes the last output of a container, which can contain anything.
func TestWhySteersNoTerminal(t *testing.T) {
	const words = "pod \"shop-1\" ended: \x1b]0;title\x07\x1b[2Jgone\u009b1A\u202e"
	app := clitest.ReadyApp(clitest.RolledBack, clitest.Unready("CrashLoopBackOff", words), func(a *slipwayv1alpha1.WebApp) {
		a.Status.Image, a.Spec.Image, a.Status.Rollback.Message = "shop:\u009b1", "shop:\x1b2", words
		a.Spec.Storage = &slipwayv1alpha1.Storage{MountPath: "/\x1bdata"}
	})
	out := &bytes.Buffer{}
	if err := printWhy(out, (&webAppFindings{app: app, findings: findings{now: clitest.Now}}).explain()); err != nil {
		t.Fatal(err)
	}
	odd := func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }
	if strings.ContainsFunc(out.String(), odd) || !strings.Contains(out.String(), "shop") {
		t.Errorf("printed %q", out)
	}
}

func TestPrintable(t *testing.T) {
	lines, err := readLines(strings.NewReader("plain \x1b[31mred\x1b[0m\tück\r\n\x07bell\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"plain \ufffd[31mred\ufffd[0m ück", "\ufffdbell"}, lines); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
