package hook_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/hook"
)

const permits = `[{"container":"db","command":["/freeze"]},{"container":"db","command":["/thaw"]}]`

func named(name string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Name, p.UID = name, types.UID("uid-of-"+name) }
}

func spec(change ...func(*slipwayv1alpha1.BackupHooks)) *slipwayv1alpha1.BackupHooks {
	h := &slipwayv1alpha1.BackupHooks{
		Before: &slipwayv1alpha1.BackupBeforeHook{BackupHook: slipwayv1alpha1.BackupHook{Command: []string{"/freeze"}}},
		After:  &slipwayv1alpha1.BackupHook{Command: []string{"/thaw"}},
	}
	for _, c := range change {
		c(h)
	}
	return h
}

func TestHooksRunInEveryRunningPodThatMayWrite(t *testing.T) {
	tests := map[string]struct {
		pods    []corev1.Pod
		change  func(*slipwayv1alpha1.BackupHooks)
		want    []string
		refused string
	}{
		"none":                                 {},
		"several, by name":                     {pods: []corev1.Pod{pod(permits, named("b")), pod(permits, named("a"))}, want: []string{"a", "b"}},
		"one that has ended":                   {pods: []corev1.Pod{pod("", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed })}},
		"one that is not running yet":          {pods: []corev1.Pod{pod("", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending })}},
		"one that is going":                    {pods: []corev1.Pod{pod("", func(p *corev1.Pod) { p.DeletionTimestamp = &metav1.Time{Time: start} })}},
		"one that only reads":                  {pods: []corev1.Pod{pod("", func(p *corev1.Pod) { p.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = true })}},
		"one with another claim":               {pods: []corev1.Pod{pod("", func(p *corev1.Pod) { p.Spec.Volumes[0].PersistentVolumeClaim.ClaimName = "data-db-1" })}},
		"one that takes a snapshot":            {pods: []corev1.Pod{pod("", owned("Job", true), labelled(slipwayv1alpha1.LabelBackupRun), mounts(corev1.VolumeMount{Name: "data", ReadOnly: true}))}},
		"one that says it takes a snapshot":    {pods: []corev1.Pod{pod("", owned("Job", true), labelled(slipwayv1alpha1.LabelBackupRun))}, refused: "have no annotation"},
		"one that mounts it nowhere":           {pods: []corev1.Pod{pod("", mounts(corev1.VolumeMount{Name: "other"}))}},
		"one that mounts it both ways":         {pods: []corev1.Pod{pod("", mounts(corev1.VolumeMount{Name: "data", ReadOnly: true}, corev1.VolumeMount{Name: "data"}))}, refused: "have no annotation"},
		"one whose init container writes":      {pods: []corev1.Pod{pod("", mounts(), func(p *corev1.Pod) { p.Spec.InitContainers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data"}} })}, refused: "have no annotation"},
		"one with a debugger that writes":      {pods: []corev1.Pod{pod("", mounts(), func(p *corev1.Pod) { p.Spec.EphemeralContainers[0].VolumeMounts = []corev1.VolumeMount{{Name: "data"}} })}, refused: "have no annotation"},
		"one with the bare device":             {pods: []corev1.Pod{pod("", mounts(), func(p *corev1.Pod) { p.Spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: "data"}} })}, refused: "have no annotation"},
		"another pod of the claim may not":     {pods: []corev1.Pod{pod(permits, named("a")), pod("", named("b"))}, refused: "have no annotation"},
		"another pod of the claim alone may":   {pods: []corev1.Pod{pod("", named("a")), pod(permits, named("b"))}, refused: "have no annotation"},
		"it could be held and not released":    {pods: []corev1.Pod{pod(`[{"container":"db","command":["/freeze"]}]`)}, refused: hook.FieldAfter},
		"it could be released and not held":    {pods: []corev1.Pod{pod(`[{"container":"db","command":["/thaw"]}]`)}, refused: hook.FieldBefore},
		"a container that there is not":        {pods: []corev1.Pod{pod(permits)}, change: func(h *slipwayv1alpha1.BackupHooks) { h.After.Container = "none" }, refused: `no container "none"`},
		"an ephemeral container":               {pods: []corev1.Pod{pod(strings.ReplaceAll(permits, `"db"`, `"debug"`))}, change: func(h *slipwayv1alpha1.BackupHooks) { h.Before.Container = "debug" }, refused: `no container "debug"`},
		"an init container":                    {pods: []corev1.Pod{pod(strings.ReplaceAll(permits, `"db"`, `"init"`))}, change: func(h *slipwayv1alpha1.BackupHooks) { h.Before.Container = "init" }, refused: `no container "init"`},
		"only a hook before, only that counts": {pods: []corev1.Pod{pod(`[{"container":"db","command":["/freeze"]}]`)}, change: func(h *slipwayv1alpha1.BackupHooks) { h.After = nil }, want: []string{"db-0"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			hooks := spec()
			if tc.change != nil {
				tc.change(hooks)
			}
			targets, refused := hook.Targets(tc.pods, "data-db-0", hooks)
			var names []string
			for _, target := range targets {
				names = append(names, target.Pod)
			}
			if diff := cmp.Diff(tc.want, names); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if (refused != nil) != (tc.refused != "") || refused != nil && !strings.Contains(refused.Message, tc.refused) {
				t.Errorf("refused: %+v, want %q", refused, tc.refused)
			}
		})
	}
}

func owned(kind string, controller bool) func(*corev1.Pod) {
	return func(p *corev1.Pod) {
		p.OwnerReferences = []metav1.OwnerReference{{Kind: kind, Name: "owner-5c9f", Controller: &controller}}
	}
}

// mounts is all that the containers of a pod mount.
func mounts(m ...corev1.VolumeMount) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Containers[1].VolumeMounts = m }
}

func labelled(label string) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Labels = map[string]string{label: "5c9f"} }
}

func TestThereIsABoundOfPods(t *testing.T) {
	var pods []corev1.Pod
	for i := range slipwayv1alpha1.MaxHookPods {
		pods = append(pods, pod(permits, named(fmt.Sprintf("db-%02d", i))))
	}
	if targets, trouble := hook.Targets(pods, "data-db-0", spec()); len(targets) != len(pods) || trouble != nil {
		t.Errorf("%d of %d pods: %+v", len(targets), len(pods), trouble)
	}
	pods = append(pods, pod(permits, named("one-more")))
	if targets, trouble := hook.Targets(pods, "data-db-0", spec()); targets != nil && trouble == nil || trouble.Reason != slipwayv1alpha1.ReasonInvalid {
		t.Errorf("%d pods: %+v", len(targets), trouble)
	}
}

func TestTheContainerOfAHook(t *testing.T) {
	p := pod(permits)
	for name, tc := range map[string]struct{ named, claim, want string }{
		"the first that mounts the volume":          {"", "data-db-0", "db"},
		"the first where none mounts it":            {"", "other", "sidecar"},
		"the named one":                             {"sidecar", "data-db-0", "sidecar"},
		"one that there is not":                     {"none", "data-db-0", ""},
		"an ephemeral one is none":                  {"debug", "data-db-0", ""},
		"an init container is none":                 {"init", "data-db-0", ""},
		"the default is not for a name that is one": {"DB", "data-db-0", ""},
	} {
		t.Run(name, func(t *testing.T) {
			if got := hook.Container(&p, tc.named, tc.claim); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestAWorkloadIsNamedWithoutWhatIsRandom(t *testing.T) {
	for name, tc := range map[string]struct {
		change []func(*corev1.Pod)
		want   string
	}{
		"a StatefulSet":                     {nil, `StatefulSet "db"`},
		"a Deployment":                      {[]func(*corev1.Pod){owned("ReplicaSet", true), labelled("pod-template-hash")}, `Deployment "owner"`},
		"a ReplicaSet":                      {[]func(*corev1.Pod){owned("ReplicaSet", true)}, `ReplicaSet "owner-5c9f"`},
		"nothing":                           {[]func(*corev1.Pod){func(p *corev1.Pod) { p.OwnerReferences = nil }}, `Pod "db-0"`},
		"an owner that does not control it": {[]func(*corev1.Pod){owned("Job", false)}, `Pod "db-0"`},
	} {
		t.Run(name, func(t *testing.T) {
			p := pod(permits, tc.change...)
			if got := hook.Workload(&p); got != tc.want {
				t.Errorf("got %s, want %s", got, tc.want)
			}
		})
	}
}
