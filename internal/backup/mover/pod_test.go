package mover

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	metav1ac "k8s.io/client-go/applyconfigurations/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// podOf is the pod of a Job, changed as asked.
func podOf(t *testing.T, change func(*Job)) *corev1ac.PodSpecApplyConfiguration {
	t.Helper()
	j := Job{
		Name: "shop", Namespace: "team", Owner: metav1ac.OwnerReference(), Image: "mover:1", Steps: []Step{StepRestore},
		Place: Place{Bucket: "bucket"}, Claim: "data",
	}
	change(&j)
	built, err := j.Build()
	if err != nil {
		t.Fatal(err)
	}
	return built.Spec.Template.Spec
}

func TestAPodHasWhatAUserSays(t *testing.T) {
	pod := podOf(t, func(j *Job) {
		j.Mover = &slipwayv1alpha1.BackupMover{ImagePullSecrets: []slipwayv1alpha1.LocalReference{{Name: "registry"}}, PriorityClassName: "low"}
	})
	if len(pod.ImagePullSecrets) != 1 || *pod.ImagePullSecrets[0].Name != "registry" || *pod.PriorityClassName != "low" {
		t.Errorf("pull secrets %v, priority %v", pod.ImagePullSecrets, pod.PriorityClassName)
	}
	if pod := podOf(t, func(*Job) {}); pod.ImagePullSecrets != nil || pod.PriorityClassName != nil || pod.Tolerations != nil {
		t.Errorf("nobody asked for %+v", pod)
	}
}

// An fsGroup changes what files belong to. Only a volume that nobody has used yet may have one.
func TestOnlyANewClaimHasAnFSGroup(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*Job)
		want   int64 // 0: none
	}{
		"a claim that was there": {func(*Job) {}, 0},
		"a source":               {func(j *Job) { j.Steps = []Step{StepSnapshot, StepVerify} }, 0},
		"a new claim":            {func(j *Job) { j.NewClaim = true }, NobodyUser},
		"of a user":              {func(j *Job) { j.NewClaim, j.Identity = true, Identity{User: 1000} }, 1000},
		"of a group":             {func(j *Job) { j.NewClaim, j.Identity = true, Identity{User: 1000, Group: 2000} }, 2000},
		"root needs none":        {func(j *Job) { j.NewClaim, j.Identity = true, Identity{Root: true} }, 0},
	} {
		t.Run(name, func(t *testing.T) {
			security := podOf(t, tc.change).SecurityContext
			switch {
			case tc.want == 0 && security.FSGroup != nil:
				t.Errorf("the fsGroup is %d", *security.FSGroup)
			case tc.want != 0 && (security.FSGroup == nil || *security.FSGroup != tc.want || *security.FSGroupChangePolicy != corev1.FSGroupChangeOnRootMismatch):
				t.Errorf("the security context is %+v, want the fsGroup %d", security, tc.want)
			}
		})
	}
}

// The pod of a Job has to be able to follow the one that uses the volume.
func TestAPodFollowsTheOneThatUsesTheVolume(t *testing.T) {
	seconds := int64(300)
	database := corev1.Toleration{Key: "only", Operator: corev1.TolerationOpEqual, Value: "databases", Effect: corev1.TaintEffectNoSchedule}
	gone := corev1.Toleration{Key: corev1.TaintNodeUnreachable, Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoExecute, TolerationSeconds: &seconds}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "data"},
		Spec:       corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}},
	}
	using := corev1.Pod{Spec: corev1.PodSpec{
		NodeName: "node-1", Tolerations: []corev1.Toleration{gone, database},
		Volumes: []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}}},
	}}
	use, trouble := UseOf(claim, []corev1.Pod{using})
	if trouble != nil || use.Node != "node-1" {
		t.Fatalf("use %+v, %v", use, trouble)
	}
	if diff := cmp.Diff([]corev1.Toleration{database}, use.Tolerations); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	got := podOf(t, func(j *Job) { j.Node, j.Tolerations = use.Node, use.Tolerations }).Tolerations
	if len(got) != 1 || *got[0].Key != "only" || *got[0].Value != "databases" || *got[0].Operator != corev1.TolerationOpEqual || got[0].TolerationSeconds != nil {
		t.Errorf("the pod tolerates %+v", got)
	}
	// From anywhere, no node has to be tolerated.
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteMany}
	if use, _ := UseOf(claim, []corev1.Pod{using}); use.Node != "" || use.Tolerations != nil {
		t.Errorf("use %+v", use)
	}
}

// Whoever may write to a volume makes it live, and nobody else does: hooks run in just these pods, too.
func TestAVolumeIsLiveWhileAPodMayWriteToIt(t *testing.T) {
	const data = "data"
	user := int64(1000)
	pod := func(change ...func(*corev1.Pod)) corev1.Pod {
		p := corev1.Pod{Spec: corev1.PodSpec{
			NodeName: "node-1", SecurityContext: &corev1.PodSecurityContext{RunAsUser: &user},
			Containers: []corev1.Container{{Name: "db", VolumeMounts: []corev1.VolumeMount{{Name: data}}}},
			Volumes: []corev1.Volume{{Name: data, VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: data},
			}}},
		}}
		for _, c := range change {
			c(&p)
		}
		return p
	}
	reads := func(p *corev1.Pod) { p.Spec.Containers[0].VolumeMounts[0].ReadOnly = true }
	labelled := func(label string) func(*corev1.Pod) {
		return func(p *corev1.Pod) { p.Labels = map[string]string{label: "x"} }
	}
	used := Use{Node: "node-1", Identity: Identity{User: user}}
	live := used
	live.Live = true
	tests := map[string]struct {
		pod  corev1.Pod
		want Use
	}{
		"it writes":              {pod(), live},
		"it has ended":           {pod(func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }), Use{}},
		"its claim is read-only": {pod(func(p *corev1.Pod) { p.Spec.Volumes[0].PersistentVolumeClaim.ReadOnly = true }), used},
		"its mount is read-only": {pod(reads), used},
		"it mounts it nowhere":   {pod(func(p *corev1.Pod) { p.Spec.Containers[0].VolumeMounts = nil }), used},
		"its init container writes": {pod(reads, func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{VolumeMounts: []corev1.VolumeMount{{Name: data}}}}
		}), live},
		"it has the bare device": {pod(reads, func(p *corev1.Pod) { p.Spec.Containers[0].VolumeDevices = []corev1.VolumeDevice{{Name: data}} }), live},
		"it writes by another volume of it": {pod(reads, func(p *corev1.Pod) {
			p.Spec.Volumes = append(p.Spec.Volumes, p.Spec.Volumes[0])
			p.Spec.Volumes[1].Name = "again"
			p.Spec.Containers[0].VolumeMounts = append(p.Spec.Containers[0].VolumeMounts, corev1.VolumeMount{Name: "again"})
		}), live},
		"it takes a copy":                     {pod(reads, labelled(slipwayv1alpha1.LabelBackupRun)), Use{}},
		"it says that it takes a copy":        {pod(labelled(slipwayv1alpha1.LabelBackupRun)), Use{Node: "node-1", Live: true}},
		"it restores into the volume":         {pod(labelled(slipwayv1alpha1.LabelRestore)), Use{Node: "node-1", Live: true}},
		"it restored into the volume, before": {pod(labelled(slipwayv1alpha1.LabelRestore), func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), Use{}},
	}
	claim := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: data},
		Spec:       corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, trouble := UseOf(claim, []corev1.Pod{tc.pod})
			if diff := cmp.Diff(tc.want, got); diff != "" || trouble != nil {
				t.Errorf("%v, -want +got:\n%s", trouble, diff)
			}
		})
	}
}

func TestAPlaceOnTheSourceIsRefused(t *testing.T) {
	err := CheckOwnClaim(Place{Claim: "data", Path: "copies"}, "logs", "data")
	if err == nil || !strings.Contains(err.Error(), "spec.source") {
		t.Errorf("got %v", err)
	}
	for _, place := range []Place{{Claim: "copies"}, {Bucket: "data"}, {}} {
		if err := CheckOwnClaim(place, "data", ""); err != nil {
			t.Errorf("%+v is refused: %v", place, err)
		}
	}
}

// A Job that has its repository in a claim, or a drill, restores to no claim of that name.
func TestWhichPodsRestoreToAClaim(t *testing.T) {
	spec := func(steps []Step, place Place, claim string) *corev1.PodSpec {
		t.Helper()
		raw, err := json.Marshal(podOf(t, func(j *Job) { j.Steps, j.Place, j.Claim = steps, place, claim }))
		if err != nil {
			t.Fatal(err)
		}
		pod := &corev1.PodSpec{}
		if err := json.Unmarshal(raw, pod); err != nil {
			t.Fatal(err)
		}
		return pod
	}
	tests := map[string]struct {
		pod  *corev1.PodSpec
		want bool
	}{
		"a restore to it":                   {spec([]Step{StepRestore}, Place{Bucket: "b"}, "data"), true},
		"a restore to another one":          {spec([]Step{StepRestore}, Place{Bucket: "b"}, "other"), false},
		"a restore from a repository in it": {spec([]Step{StepRestore}, Place{Claim: "data"}, "other"), false},
		"a copy of it":                      {spec([]Step{StepSnapshot, StepVerify}, Place{Bucket: "b"}, "data"), false},
		"a drill, which has a scratch":      {spec([]Step{StepRestore, StepCompare}, Place{Claim: "data"}, ""), false},
		"nothing":                           {&corev1.PodSpec{}, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if got := RestoresTo(tc.pod, "data"); got != tc.want {
				t.Errorf("got %v, want %v", got, tc.want)
			}
		})
	}
}
