//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/livecluster"
)

// watched is a kind of its own, and who may read it.
type watched struct {
	*fixture
	group string
}

// forTheWholeCluster makes an object without a namespace, and deletes it when the test ends.
func (f *fixture) forTheWholeCluster(object client.Object) {
	f.Helper()
	if err := cluster.Create(f.Context(), object); err != nil {
		f.Fatalf("create %T %s: %v", object, object.GetName(), err)
	}
	f.Cleanup(func() {
		if err := cluster.Delete(context.Background(), object); client.IgnoreNotFound(err) != nil {
			f.Error(err)
		}
	})
}

func watchWidgets(t *testing.T) *watched {
	t.Helper()
	f := newFixture(t)
	w := &watched{f, f.Namespace + ".example.com"}
	w.forTheWholeCluster(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": w.kind()},
		"spec": map[string]any{
			"group": w.group, "scope": "Namespaced", "names": map[string]any{"plural": "widgets", "kind": "Widget"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": map[string]any{
				"type": "object", "properties": map[string]any{"spec": map[string]any{"type": "object", "properties": map[string]any{"size": map[string]any{"type": "integer"}}}},
			}}}},
		},
	}})
	return w
}

func (w *watched) kind() string { return "widgets." + w.group }

// reader makes a ServiceAccount that may read widgets in its namespace, or in all, and returns how it asks the monitor.
func (w *watched) reader(f *fixture, everywhere bool) (ask func(args ...string) (string, error)) {
	w.Helper()
	f.Create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "reader"}})
	rules := []rbacv1.PolicyRule{{APIGroups: []string{w.group}, Resources: []string{"widgets"}, Verbs: []string{"get", "list"}}}
	subjects := []rbacv1.Subject{{Kind: "ServiceAccount", Name: "reader", Namespace: f.Namespace}}
	if everywhere {
		name := metav1.ObjectMeta{Name: "reader-" + f.Namespace}
		w.forTheWholeCluster(&rbacv1.ClusterRole{ObjectMeta: name, Rules: rules})
		w.forTheWholeCluster(&rbacv1.ClusterRoleBinding{ObjectMeta: name, Subjects: subjects, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: name.Name}})
	} else {
		name := metav1.ObjectMeta{Name: "reader"}
		f.Create(&rbacv1.Role{ObjectMeta: name, Rules: rules}, &rbacv1.RoleBinding{ObjectMeta: name, Subjects: subjects, RoleRef: rbacv1.RoleRef{Kind: "Role", Name: "reader"}})
	}
	return func(args ...string) (string, error) {
		ctx, cancel := context.WithTimeout(w.Context(), 30*time.Second)
		defer cancel()
		args = append(append([]string{"slipway"}, args...), "--monitor-account", f.Namespace+"/reader")
		output, err := exec.CommandContext(ctx, cluster.Kubectl, args...).CombinedOutput()
		return string(output), err
	}
}

// says waits until an answer has all of these texts, and returns it.
func (w *watched) says(ask func(args ...string) (string, error), words []string, args ...string) (answer string) {
	w.Helper()
	w.Eventually(func() (err error) {
		if answer, err = ask(args...); err != nil {
			return fmt.Errorf("%v: %w: %s", args, err, answer)
		}
		for _, word := range words {
			if !strings.Contains(answer, word) {
				return fmt.Errorf("%v does not say %q: %s", args, word, answer)
			}
		}
		return nil
	})
	return answer
}

// write makes a widget, or changes its size, as somebody.
func (w *watched) write(namespace, name, who string, size int) {
	w.Helper()
	widget := &unstructured.Unstructured{}
	widget.SetGroupVersionKind(schema.GroupVersionKind{Group: w.group, Version: "v1", Kind: "Widget"})
	widget.SetNamespace(namespace)
	widget.SetName(name)
	widget.Object["spec"] = map[string]any{"size": int64(size)}
	w.Eventually(func() error {
		return cluster.Apply(w.Context(), client.ApplyConfigurationFromUnstructured(widget.DeepCopy()), client.FieldOwner(who), client.ForceOwnership)
	})
}

// monitorPod is the pod of the monitor, or an error while it is not ready.
func (w *watched) monitorPod() (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	if err := cluster.Get(w.Context(), types.NamespacedName{Namespace: livecluster.SystemNamespace, Name: "slipway-monitor-0"}, pod); err != nil {
		return nil, err
	}
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && pod.DeletionTimestamp.IsZero() {
			return pod, nil
		}
	}
	return nil, fmt.Errorf("the monitor is not ready: %+v", pod.Status)
}

func (w *watched) monitorReady() (pod *corev1.Pod) {
	w.Helper()
	w.Eventually(func() (err error) {
		pod, err = w.monitorPod()
		return err
	})
	return pod
}

// The test kills the monitor, so it is not parallel.
func TestMonitorTellsWhatChangedAndLosesNothing(t *testing.T) {
	w := watchWidgets(t)
	w.monitorReady()
	other := newFixture(t)
	ask, stranger := w.reader(w.fixture, true), w.reader(other, false)
	w.forTheWholeCluster(&slipwayv1alpha1.MonitorRule{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}, Spec: slipwayv1alpha1.MonitorRuleSpec{
		Kinds: []slipwayv1alpha1.MonitoredKind{{Group: w.group, Kind: "Widget"}}, Namespaces: []string{w.Namespace},
		When: "object.spec.size > 1", Message: "'it is too large: ' + string(object.spec.size)",
	}})

	// The kind is found and followed, though nobody has told the monitor of it.
	w.says(ask, []string{w.kind(), "Live"}, "coverage")

	// A change is recorded, with what changed and by whom.
	w.write(w.Namespace, "big", "alice", 1)
	w.write(w.Namespace, "big", "bob", 2)
	w.write(other.Namespace, "small", "carol", 1)
	what := []string{"Created widget/big in " + w.Namespace + " by alice", "Updated widget/big in " + w.Namespace + " by bob", "~ .spec.size: 1 -> 2"}
	w.says(ask, what, "history", w.kind()+"/big", "-n", w.Namespace, "--since", "1h", "--diff")
	w.says(ask, append(what, "widget/small in "+other.Namespace), "changes", "--kind", w.kind(), "--diff")

	// Who may not read the namespace sees nothing of it, and does see her own.
	for _, args := range [][]string{{"changes"}, {"changes", "--kind", w.kind(), "--diff"}} {
		answer := w.says(stranger, []string{"widget/small in " + other.Namespace}, append(args, "-n", other.Namespace)...)
		for _, more := range [][]string{args, append(args, "-n", w.Namespace)} {
			denied, err := stranger(more...)
			if answer += denied; strings.Contains(answer, "widget/big") || strings.Contains(answer, "bob") {
				t.Errorf("%v by somebody without rights says %s (%v)", more, answer, err)
			}
		}
	}
	denied, err := stranger("history", w.kind()+"/big", "-n", w.Namespace)
	if strings.Contains(denied, "bob") || err == nil && strings.Contains(denied, "Created") {
		t.Errorf("the history for somebody without rights is %s (%v)", denied, err)
	}

	// The rule raises an alarm, as an Event on the object.
	w.Eventually(func() error {
		events := &eventsv1.EventList{}
		if err := cluster.List(t.Context(), events, client.InNamespace(w.Namespace)); err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Reason == "AlarmRaised" && e.Regarding.Kind == "Widget" && e.Regarding.Name == "big" && strings.Contains(e.Note, "it is too large: 2") {
				return nil
			}
		}
		return fmt.Errorf("no Event says so: %+v", events.Items)
	})

	// Nothing is lost when it is killed while changes go on.
	w.loseNothing(ask)
}

// loseNothing kills the monitor, and changes a widget until another one runs.
func (w *watched) loseNothing(ask func(args ...string) (string, error)) {
	w.Helper()
	killed := w.monitorReady()
	if err := cluster.Delete(w.Context(), killed, client.GracePeriodSeconds(0)); err != nil {
		w.Fatal(err)
	}
	begin, size := time.Now(), 2
	w.Eventually(func() error {
		size++
		w.write(w.Namespace, "big", "dave", size)
		pod, err := w.monitorPod()
		if err == nil && pod.UID == killed.UID {
			err = fmt.Errorf("the monitor that was killed is ready")
		}
		return err
	})
	w.Measured("a monitor that was killed is ready again after %.1f s, %d changes later", time.Since(begin).Seconds(), size-2)
	w.says(ask, []string{fmt.Sprintf("-> %d", size)}, "changes", "--kind", w.kind(), "-n", w.Namespace, "--diff")

	output, err := ask("history", w.kind()+"/big", "-n", w.Namespace, "--since", "1h", "--limit", "1000", "-o", "json")
	if err != nil {
		w.Fatalf("%v: %s", err, output)
	}
	answer := struct {
		Changes []struct {
			Type   string
			InGap  bool
			Fields []struct{ Path, Old, New json.RawMessage }
		}
	}{}
	if err := json.Unmarshal([]byte(output), &answer); err != nil {
		w.Fatalf("%v: %s", err, output)
	}
	last := 1
	for _, c := range slices.Backward(answer.Changes) { // the newest comes first
		for _, field := range c.Fields {
			if string(field.Path) != `".spec.size"` {
				continue
			}
			var before, after int
			if err := json.Unmarshal(field.Old, &before); err != nil {
				w.Fatal(err)
			}
			if err := json.Unmarshal(field.New, &after); err != nil {
				w.Fatal(err)
			}
			if before != last || after != last+1 && !c.InGap {
				w.Errorf("after the size %d there is a change from %d to %d, in a gap: %t", last, before, after, c.InGap)
			}
			last = after
		}
	}
	if last != size {
		w.Errorf("the last size of the history is %d, want %d", last, size)
	}
}
