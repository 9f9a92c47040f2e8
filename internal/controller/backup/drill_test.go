package backup

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/controller/backup/desired"
	"github.com/slipway-dev/slipway/internal/health"
)

// A stale cache must not have the Job of a newer drill deleted, and the log of one that failed stays.
func TestWhichJobsOfDrillsStay(t *testing.T) {
	type status = slipwayv1alpha1.BackupDrillStatus
	const running, completed, failed = slipwayv1alpha1.BackupRunning, slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.BackupFailed
	ended := []batchv1.JobCondition{{Type: batchv1.JobFailed, Status: corev1.ConditionTrue, Reason: "BackoffLimitExceeded"}}
	tests := map[string]struct {
		stored     *status
		number     string
		conditions []batchv1.JobCondition
		stays      bool
	}{
		"no status yet":                      {nil, "1", nil, true},
		"the status does not know it yet":    {&status{Phase: completed, Jobs: 3}, "4", nil, true},
		"the present one":                    {&status{Phase: running, Jobs: 3}, "3", nil, true},
		"the attempt before":                 {&status{Phase: running, Jobs: 3}, "2", ended, false},
		"it has passed, and that is told":    {&status{Phase: completed, Jobs: 3}, "3", nil, false},
		"it has failed, and that is told":    {&status{Phase: failed, Jobs: 3}, "3", ended, true},
		"it was given up, and still runs":    {&status{Phase: failed, Jobs: 3}, "3", nil, false},
		"it has failed, and another follows": {&status{Phase: running, Jobs: 4}, "3", ended, false},
		"a number that is none":              {&status{Phase: running, Jobs: 3}, "x", nil, false},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			s := &scope{backup: drilledAt()}
			s.backup.Status.Drill = tc.stored
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", UID: "u", Labels: map[string]string{slipwayv1alpha1.LabelDrill: tc.number}}}
			job.Status.Conditions = tc.conditions
			job.Spec.Template.Spec.Containers = []corev1.Container{{Name: "compare"}}
			if got := s.keepsDrill(job); got != tc.stays {
				t.Errorf("it stays: %v, want %v", got, tc.stays)
			}
		})
	}
	s := &scope{backup: nightly()}
	if s.keepsDrill(&batchv1.Job{}) {
		t.Error("it stays although there are no drills any more")
	}
}

// What two steps say has to agree, and to prove something.
func TestWhatADrillHasToSay(t *testing.T) {
	good := func() (restored, compared *mover.Result) {
		return &mover.Result{RepositoryID: "r", Drill: &mover.DrillResult{Volumes: 2, Files: 5}},
			&mover.Result{RepositoryID: "r", Drill: &mover.DrillResult{Volumes: 2, Files: 4, Bytes: 40, Entries: 6, Changed: 1}}
	}
	tests := map[string]struct {
		change func(restored, compared *mover.Result, s *scope)
		reason string
	}{
		"all of it":                       {func(_, _ *mover.Result, _ *scope) {}, slipwayv1alpha1.ReasonDrillPassed},
		"no restore":                      {func(r, _ *mover.Result, _ *scope) { r.Drill = nil }, slipwayv1alpha1.ReasonMoverFailed},
		"no comparison":                   {func(_, c *mover.Result, _ *scope) { c.Drill = nil }, slipwayv1alpha1.ReasonMoverFailed},
		"another repository":              {func(_, c *mover.Result, _ *scope) { c.RepositoryID = "x" }, slipwayv1alpha1.ReasonWrongRepository},
		"no repository":                   {func(r, c *mover.Result, _ *scope) { r.RepositoryID, c.RepositoryID = "", "" }, slipwayv1alpha1.ReasonWrongRepository},
		"not ours":                        {func(_, _ *mover.Result, s *scope) { s.repositoryID = "ours" }, slipwayv1alpha1.ReasonWrongRepository},
		"fewer volumes compared":          {func(_, c *mover.Result, _ *scope) { c.Drill.Volumes = 1 }, slipwayv1alpha1.ReasonMoverFailed},
		"fewer volumes than copies":       {func(r, c *mover.Result, _ *scope) { r.Drill.Volumes, c.Drill.Volumes = 1, 1 }, slipwayv1alpha1.ReasonMoverFailed},
		"no volume":                       {func(r, c *mover.Result, _ *scope) { r.Drill.Volumes, c.Drill.Volumes = 0, 0 }, slipwayv1alpha1.ReasonMoverFailed},
		"no file":                         {func(_, c *mover.Result, _ *scope) { c.Drill.Files = 0 }, slipwayv1alpha1.ReasonNothingCompared},
		"no file, though that is allowed": {func(_, c *mover.Result, s *scope) { c.Drill.Files, s.backup.Spec.AllowEmpty = 0, true }, slipwayv1alpha1.ReasonNothingCompared},
		"nothing there":                   {func(r, c *mover.Result, _ *scope) { r.Drill.Files, *c.Drill = 0, mover.DrillResult{Volumes: 2} }, slipwayv1alpha1.ReasonNothingCompared},
		"nothing there, as allowed": {func(r, c *mover.Result, s *scope) {
			r.Drill.Files, *c.Drill, s.backup.Spec.AllowEmpty = 0, mover.DrillResult{Volumes: 2}, true
		}, slipwayv1alpha1.ReasonDrillPassed},
		"links alone": {func(r, c *mover.Result, _ *scope) {
			r.Drill.Files, *c.Drill = 0, mover.DrillResult{Volumes: 2, Entries: 3}
		}, slipwayv1alpha1.ReasonDrillPassed},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			restored, compared := good()
			s := &scope{backup: drilledAt(), drill: &slipwayv1alpha1.BackupDrillStatus{Run: "shop-1", Attempt: 3}, repositoryID: "r"}
			tc.change(restored, compared, s)
			run := &slipwayv1alpha1.BackupRun{}
			run.Status.Volumes = make([]slipwayv1alpha1.BackupVolume, 2)
			seen := mover.Observation{Results: map[mover.Step]*mover.Result{mover.StepRestore: restored, mover.StepCompare: compared}}
			next := s.acceptDrill(s.drillProgress(), seen, run, at(3, 4, 0))
			passed := next.Phase == slipwayv1alpha1.BackupCompleted
			if next.Reason != tc.reason || passed != (tc.reason == slipwayv1alpha1.ReasonDrillPassed) || passed == (next.Phase == slipwayv1alpha1.BackupFailed) {
				t.Errorf("got %+v, want %s", next, tc.reason)
			}
			if passed && !strings.Contains(next.Message, `"shop-1"`) {
				t.Errorf("the message is %q", next.Message)
			}
		})
	}
}

// A copy has to be as new as status says, and as the schedule promises; of a suspended Backup only as status says.
func TestHowNewACopyHasToBe(t *testing.T) {
	s := &scope{backup: nightly()}
	s.backup.Status.LastBackupTime = &metav1.Time{Time: at(5, 2, 0)}
	s.plan.expected = at(4, 2, 0)
	if got := s.drillNotBefore(); !got.Equal(at(5, 2, 0)) {
		t.Errorf("got %v, want that of status", got)
	}
	s.plan.expected = at(6, 2, 0)
	if got := s.drillNotBefore(); !got.Equal(at(6, 2, 0)) {
		t.Errorf("got %v, want that of the schedule", got)
	}
	s.backup.Spec.Suspend = true
	if got := s.drillNotBefore(); !got.Equal(at(5, 2, 0)) {
		t.Errorf("got %v, want that of status: no run is promised", got)
	}
}

// The volumes of the source are not used: also one that a single pod may mount tells who its pods are.
func TestADrillRunsAsThePodsOfTheSource(t *testing.T) {
	user := int64(1000)
	pod := corev1.Pod{Spec: corev1.PodSpec{
		SecurityContext: &corev1.PodSecurityContext{RunAsUser: &user},
		Containers:      []corev1.Container{{Name: "app", VolumeMounts: []corev1.VolumeMount{{Name: "data"}}}},
		Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "b"},
		}}},
	}}
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Name: "b"}}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	run := &slipwayv1alpha1.BackupRun{}
	run.Status.Volumes = []slipwayv1alpha1.BackupVolume{{Claim: "gone"}, {Claim: "b"}}
	claims := map[string]*corev1.PersistentVolumeClaim{"b": claim}
	if got := identityOf(run, claims, []corev1.Pod{pod}); got.User != user {
		t.Errorf("got %+v", got)
	}
	if len(claim.Spec.AccessModes) != 1 {
		t.Error("the claim of the cache was changed")
	}
	if got := identityOf(run, nil, []corev1.Pod{pod}); got.User != 0 {
		t.Errorf("got %+v of volumes that are gone", got)
	}
}

// Of the user's command the exit code counts, and nothing that it writes.
func TestTheCommandOfADrill(t *testing.T) {
	said := `{"command":"command","ok":true,"drill":{"volumes":1,"files":9}}`
	steps := desired.DrillSteps(&slipwayv1alpha1.BackupDrill{Image: "x"})
	tests := map[string]struct {
		code         int32
		why, message string
		state        mover.State
		reason       string
	}{
		"0":                               {0, "Completed", "", mover.Succeeded, ""},
		"0, whatever it says":             {0, "Completed", `{"command":"compare","ok":false,"kind":"Corrupt"}`, mover.Succeeded, ""},
		"1":                               {1, "Error", "", mover.Failed, slipwayv1alpha1.ReasonDrillCommandFailed},
		"1, and it says that all is well": {1, "Error", said, mover.Failed, slipwayv1alpha1.ReasonDrillCommandFailed},
		"too much memory":                 {137, "OOMKilled", "", mover.Failed, slipwayv1alpha1.ReasonDrillCommandFailed},
		"killed":                          {137, "Error", said, mover.Failed, slipwayv1alpha1.ReasonPodLost},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Name: "j", UID: "u"}}
			pod := corev1.Pod{ObjectMeta: metav1.ObjectMeta{
				Labels:          map[string]string{batchv1.JobNameLabel: "j", batchv1.ControllerUidLabel: "u"},
				OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
			}}
			pod.Status.Phase = corev1.PodSucceeded
			if tc.code != 0 {
				pod.Status.Phase = corev1.PodFailed
			}
			for _, step := range []string{"restore", "compare"} {
				pod.Status.InitContainerStatuses = append(pod.Status.InitContainerStatuses, corev1.ContainerStatus{Name: step, State: corev1.ContainerState{
					Terminated: &corev1.ContainerStateTerminated{Message: `{"command":"` + step + `","ok":true}`},
				}})
			}
			pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "command", State: corev1.ContainerState{
				Terminated: &corev1.ContainerStateTerminated{ExitCode: tc.code, Reason: tc.why, Message: tc.message},
			}}}
			got := mover.Observe(job, []corev1.Pod{pod}, steps)
			trouble := got.Trouble
			if trouble == nil {
				trouble = &health.Trouble{}
			}
			if got.State != tc.state || trouble.Reason != tc.reason || got.Results[mover.StepCommand] != nil || strings.Contains(trouble.Message, "files") {
				t.Errorf("got %+v, %+v", got, trouble)
			}
		})
	}
}
