package why

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
	"unicode"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/testing/clitest"
)

// kin makes a relative of JSON fields. Its UID is its name.
func kin(apiVersion, kind, name string, fields map[string]any, children ...*relative) *relative {
	version, _ := schema.ParseGroupVersion(apiVersion)
	object := map[string]any{
		"apiVersion": apiVersion, "kind": kind,
		"metadata": map[string]any{"name": name, "namespace": "team-a", "uid": name, "generation": int64(1), "creationTimestamp": clitest.Ago(time.Hour).UTC().Format(time.RFC3339)},
	}
	for key, value := range fields {
		object[key] = value
	}
	return &relative{
		kind: command.KindInfo{GroupVersionResource: version.WithResource(strings.ToLower(kind) + "s"), Kind: kind, Namespaced: true}, namespace: "team-a", name: name, uid: types.UID(name),
		object: &unstructured.Unstructured{Object: object}, children: children,
	}
}

func withStatus(fields map[string]any) map[string]any { return map[string]any{"status": fields} }

func withConditions(conditions ...any) map[string]any {
	return withStatus(map[string]any{"conditions": conditions})
}

func state(conditionType, status, reason, message string) map[string]any {
	return map[string]any{"type": conditionType, "status": status, "reason": reason, "message": message}
}

// crashingPod is a pod whose container ends again and again.
func crashingPod(t *testing.T, name string) *relative {
	t.Helper()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "team-a", UID: types.UID(name), CreationTimestamp: clitest.Ago(time.Minute)},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "app"}}},
		Status:     clitest.Crashing(false),
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(pod)
	if err != nil {
		t.Fatal(err)
	}
	return kin("v1", "Pod", name, fields)
}

// database is a made-up custom resource with what is below it.
func database(t *testing.T) *family {
	gone := kin("example.com/v1", "Claim", "orders", nil)
	gone.object, gone.problem = nil, problemGone
	secret := kin("v1", "Secret", "db-password", nil)
	secret.object, secret.problem = nil, problemForbidden
	set := kin("apps/v1", "StatefulSet", "db", map[string]any{
		"spec": map[string]any{"replicas": int64(3)}, "status": map[string]any{"observedGeneration": int64(1), "readyReplicas": int64(1)},
	}, crashingPod(t, "db-0"), crashingPod(t, "db-1"))
	certificate := kin("cert-manager.io/v1", "Certificate", "db", withConditions(state("Ready", "True", "Ready", "up to date")))
	stuck := kin("example.com/v1", "User", "old", nil)
	stuck.object.SetDeletionTimestamp(new(clitest.Ago(time.Hour)))
	stuck.object.SetFinalizers([]string{"example.com/keep"})
	backups := kin("example.com/v1", "Schedule", "db", withStatus(map[string]any{"phase": "Ready"}),
		kin("example.com/v1", "Copy", "db-1", withStatus(map[string]any{"phase": "Failed", "message": "the bucket is gone"})))
	asked := kin("example.com/v1", "Database", "db", withConditions(state("Ready", "False", "Creating", "waits for 3 pods")),
		certificate, kin("v1", "ConfigMap", "db", nil), backups, secret, set, stuck)
	return &family{asked: asked, owners: []*relative{gone}, left: 2, unreadable: []string{"secrets"}, unanswered: []string{"the API group metrics.k8s.io/v1beta1"}}
}

func TestPrintTree(t *testing.T) {
	view := treeOf(database(t), clitest.Now)
	clitest.Golden(t, "tree/tree.txt", func(out *bytes.Buffer) error { return printTree(out, view, clitest.Now) })
	output := command.FormatYAML
	clitest.Golden(t, "tree/tree.yaml", func(out *bytes.Buffer) error { return output.Print(out, view) })
}

func TestWhyOfAnyKindFollowsTheTreeToTheCauses(t *testing.T) {
	f := &anyFindings{family: database(t), findings: findings{now: clitest.Now, unreadable: []string{"secrets"}, events: []corev1.Event{
		{InvolvedObject: corev1.ObjectReference{UID: "db-0"}, Reason: "BackOff", Message: "Back-off restarting", LastTimestamp: clitest.Ago(time.Minute), Count: 3},
		{InvolvedObject: corev1.ObjectReference{UID: "db"}, Reason: "Slow", Message: "pods take long", LastTimestamp: clitest.Ago(time.Minute), Count: 1},
	}}}
	targets := logTargets(f)
	if want := []logTarget{{pod: "db-0", container: "app", previous: true}}; cmp.Diff(want, targets, cmp.AllowUnexported(logTarget{})) != "" {
		t.Errorf("logs of %v, want %v", targets, want)
	}
	f.logs = map[logTarget]logTail{targets[0]: {Lines: []string{"no space left"}}}
	clitest.Golden(t, "tree/why.txt", func(out *bytes.Buffer) error { return printWhy(out, f.explain()) })
}

func TestWhyOfAnObjectThatSaysNothing(t *testing.T) {
	for name, tc := range map[string]struct {
		asked *relative
		want  string
	}{
		"nothing tells":       {kin("v1", "ConfigMap", "a", nil), "configmap/a: nothing tells how it does: HasNoStatus: nothing writes a status of a ConfigMap\n"},
		"healthy, in words":   {kin("example.com/v1", "Thing", "a", withConditions(state("Ready", "True", "Ok", "it serves"))), "thing/a is ready: it serves\nNothing is wrong.\n"},
		"healthy, by a phase": {kin("example.com/v1", "Thing", "a", withStatus(map[string]any{"phase": "Running"})), "thing/a is ready: status.phase is Running\nNothing is wrong.\n"},
		"a pod": {crashingPod(t, "a"), "pod/a is not ready: CrashLoopBackOff: container \"app\" ended with exit code 1: cannot reach the database\n" +
			"└─ last log lines of the previous run of container \"app\":\n     no space left\n"},
	} {
		t.Run(name, func(t *testing.T) {
			f := &anyFindings{family: &family{asked: tc.asked}, findings: findings{now: clitest.Now}}
			f.logs = map[logTarget]logTail{}
			for _, target := range logTargets(f) {
				f.logs[target] = logTail{Lines: []string{"no space left"}}
			}
			out := &bytes.Buffer{}
			if err := printWhy(out, f.explain()); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, out.String()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestATreeSteersNoTerminal(t *testing.T) {
	const words = "\x1b]0;title\x07\x1b[2Jgone\u009b1A\u202e"
	asked := kin("example.com/v1", "Thing", "shop", withConditions(state("Ready", "False", words, words)))
	asked.children = []*relative{kin("example.com/v1", "Part", words, withStatus(map[string]any{"phase": "Failed", "message": words}))}
	f := &family{asked: asked, unreadable: []string{words}, unanswered: []string{words}}
	out := &bytes.Buffer{}
	if err := printTree(out, treeOf(f, clitest.Now), clitest.Now); err != nil {
		t.Fatal(err)
	}
	if err := printWhy(out, (&anyFindings{family: f, findings: findings{now: clitest.Now, unreadable: f.unreadable}}).explain()); err != nil {
		t.Fatal(err)
	}
	if strings.ContainsFunc(out.String(), func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }) {
		t.Errorf("printed %q", out)
	}
}

// Every object that can be reached is in the tree once, whatever the owner references say: also with circles.
func TestATreeHasEveryObjectOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(15, 2))
	for range 300 {
		count := 1 + random.IntN(30)
		var all []command.Owned
		owners := map[types.UID][]types.UID{}
		for i := range count {
			uid := types.UID(fmt.Sprint(i))
			object := command.Owned{Info: command.KindInfo{Kind: "Thing"}, PartialObjectMetadata: metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Name: string(uid), UID: uid}}}
			for range 1 + random.IntN(2) {
				owner := types.UID(fmt.Sprint(random.IntN(count)))
				owners[uid] = append(owners[uid], owner)
				object.OwnerReferences = append(object.OwnerReferences, metav1.OwnerReference{UID: owner})
			}
			all = append(all, object)
		}
		want := map[types.UID]bool{"0": true}
		for grew := true; grew; {
			grew = false
			for uid, list := range owners {
				for _, owner := range list {
					if want[owner] && !want[uid] {
						want[uid], grew = true, true
					}
				}
			}
		}
		limit := 1 + random.IntN(30)
		f := &family{asked: &relative{uid: "0"}}
		below := f.grow(all, limit)
		if len(below)+f.left != len(want)-1 || len(below) > limit {
			t.Fatalf("%d objects below and %d left, want %d; limit %d", len(below), f.left, len(want)-1, limit)
		}
		seen := map[types.UID]bool{}
		for _, r := range below {
			if seen[r.uid] || !want[r.uid] || r.uid == "0" {
				t.Fatalf("%s is there twice, or should not be", r.uid)
			}
			seen[r.uid] = true
		}
	}
}

func TestFillTellsWhyAnObjectIsNotThere(t *testing.T) {
	resource := schema.GroupResource{Resource: "secrets"}
	other := &unstructured.Unstructured{Object: map[string]any{}}
	other.SetUID("b")
	for name, tc := range map[string]struct {
		object *unstructured.Unstructured
		err    error
		want   string
	}{
		"gone":      {err: apierrors.NewNotFound(resource, "a"), want: problemGone},
		"forbidden": {err: apierrors.NewForbidden(resource, "a", nil), want: problemForbidden},
		"replaced":  {object: other, want: problemReplaced},
		"broken":    {err: fmt.Errorf("conversion webhook:\x1b no answer"), want: "conversion webhook:\uFFFD no answer"},
	} {
		r := &relative{uid: "a"}
		if r.fill(tc.object, tc.err); r.problem != tc.want || r.object != nil {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// The status of our own kinds is judged in two places: by Go types for why, and by a profile for tree. Both agree.
func TestBothVerdictsOnAWebAppAgree(t *testing.T) {
	random := rand.New(rand.NewPCG(15, 1))
	pick := func(of ...string) string { return of[random.IntN(len(of))] }
	for range 2000 {
		app := &slipwayv1alpha1.WebApp{
			TypeMeta:   metav1.TypeMeta{APIVersion: slipwayv1alpha1.SchemeGroupVersion.String(), Kind: "WebApp"},
			ObjectMeta: metav1.ObjectMeta{Name: "shop", Generation: 2},
		}
		app.Status.ObservedGeneration = 1 + random.Int64N(2)
		clitest.SetCondition(app, clitest.Condition("Ready", random.IntN(2) == 0, pick("Ready", "Paused", "RolloutInProgress", "CrashLoopBackOff"), "words of Ready"))
		for _, other := range []string{"Available", "Degraded", "Progressing", "Stalled", "RolledBack"} {
			if random.IntN(2) == 0 {
				clitest.SetCondition(app, clitest.Condition(other, random.IntN(3) == 0, pick("AsExpected", "CrashLoopBackOff"), "words of "+other))
			}
		}
		fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(app)
		if err != nil {
			t.Fatal(err)
		}
		typed, any := command.Verdict(app, app.Generation), health.Evaluate(fields, health.Options{Now: clitest.Now})
		if typed.State != any.State || any.Reason != typed.Reason && typed.State != health.Healthy || any.Message != typed.Message && typed.Reason != health.ReasonNotObserved {
			t.Fatalf("typed %+v, by profile %+v:\n%+v", typed, any, app.Status)
		}
	}
}

// TestOneMoreObjectIsNoPlural looks at a line that counts what may be one.
func TestOneMoreObjectIsNoPlural(t *testing.T) {
	out := &bytes.Buffer{}
	if err := printTree(out, treeView{Left: 1}, clitest.Now); err != nil || !strings.Contains(out.String(), "Not shown: 1 more object (--limit)") {
		t.Errorf("%v: %s", err, out)
	}
}
