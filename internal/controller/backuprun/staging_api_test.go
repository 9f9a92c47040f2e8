//go:build apitest

package backuprun_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/backup/volumesnapshot"
	"github.com/slipway-dev/slipway/internal/controller/backuprun/desired"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/property"
)

// driver is that of the volumes here. The tests play its part, and that of the snapshot controller.
const driver = "csi.test"

var installed sync.Once

// installSnapshots gives the cluster the kinds of external-snapshotter, and a default class of the driver.
func installSnapshots(t *testing.T) {
	t.Helper()
	installed.Do(func() { installSnapshotsInto(t, env) })
}

func installSnapshotsInto(t *testing.T, into *environment.Environment) {
	t.Helper()
	const folder = "config/crd/snapshot.storage.k8s.io_volumesnapshot"
	if err := into.InstallModuleOf(t.Context(), "hack/localkube/components/snapshotter", "github.com/kubernetes-csi/external-snapshotter/client/v8",
		folder+"s.yaml", folder+"classes.yaml", folder+"contents.yaml"); err != nil {
		t.Fatal(err)
	}
	class := &volumesnapshot.Class{
		ObjectMeta: metav1.ObjectMeta{Name: "csi-test", Annotations: map[string]string{"snapshot.storage.kubernetes.io/is-default-class": "true"}},
		Driver:     driver, DeletionPolicy: "Delete",
	}
	if err := into.Client.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
}

// csiClaim makes the claim csi-data, bound to a volume of a driver, with these access modes.
func (f *fixture) csiClaim(driver string, modes ...corev1.PersistentVolumeAccessMode) {
	f.Helper()
	class, size := "class-of-"+f.namespace, corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	f.create(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: driver})
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: "pv-of-" + f.namespace},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: size, AccessModes: modes, StorageClassName: class,
			PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver, VolumeHandle: "v"}},
		},
	}
	f.create(volume)
	f.create(&corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "csi-data", Namespace: f.namespace},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: modes, StorageClassName: &class, VolumeName: volume.Name, Resources: corev1.VolumeResourceRequirements{Requests: size},
		},
	})
}

// newCSIFixture is a fixture whose Backup is of a CSI volume.
func newCSIFixture(t *testing.T, policy slipwayv1alpha1.VolumeSnapshotPolicy, class string) *fixture {
	f := newFixture(t, func(b *slipwayv1alpha1.Backup) {
		b.Spec.Source = "csi-data"
		if policy != "" || class != "" {
			b.Spec.VolumeSnapshot = &slipwayv1alpha1.BackupVolumeSnapshot{Policy: policy, ClassName: class}
		}
	})
	f.csiClaim(driver, corev1.ReadWriteOnce)
	return f
}

// writer makes a pod that writes to the claim.
func (f *fixture) writer() {
	f.Helper()
	user := int64(1234)
	f.create(&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "db-0", Namespace: f.namespace},
		Spec: corev1.PodSpec{
			NodeName:        "node-7",
			SecurityContext: &corev1.PodSecurityContext{RunAsUser: &user},
			Containers:      []corev1.Container{{Name: "db", Image: "db:1", VolumeMounts: []corev1.VolumeMount{{Name: "data", MountPath: "/data"}}}},
			Volumes: []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "csi-data"},
			}}},
		},
	})
}

func (f *fixture) get(name string, into client.Object) error {
	return env.Client.Get(f.Context(), types.NamespacedName{Namespace: f.namespace, Name: name}, into)
}

// snapshot waits for a VolumeSnapshot.
func (f *fixture) snapshot(name string) *volumesnapshot.VolumeSnapshot {
	f.Helper()
	snapshot := &volumesnapshot.VolumeSnapshot{}
	environment.Eventually(f, func() error { return f.get(name, snapshot) })
	return snapshot
}

// says plays what the snapshot controller says of a VolumeSnapshot.
func (f *fixture) says(name, status string) {
	f.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":`+status+`}`))
	if err := env.Client.Status().Patch(f.Context(), f.snapshot(name), patch); err != nil {
		f.Fatal(err)
	}
}

const readySnapshot = `{"readyToUse": true, "creationTime": "2026-05-01T02:00:00Z", "restoreSize": "2Gi"}`

// nothingStaged waits until neither a VolumeSnapshot nor a claim of a volume made from one is there. A claim that is being
// deleted counts as gone: no controller is here that knows whether a pod uses it.
func (f *fixture) nothingStaged() {
	f.Helper()
	environment.Eventually(f, func() error {
		return f.staged()
	})
}

func (f *fixture) staged() error {
	claims := &corev1.PersistentVolumeClaimList{}
	if err := env.Client.List(f.Context(), claims, client.InNamespace(f.namespace)); err != nil {
		return err
	}
	for _, claim := range claims.Items {
		if claim.Name != "csi-data" && claim.Name != "shop-data" && claim.DeletionTimestamp.IsZero() {
			return fmt.Errorf("the claim %s is there", claim.Name)
		}
	}
	for attempt := int32(1); attempt <= mover.MaxAttempts; attempt++ {
		name := fmt.Sprintf("shop-now-0-%d", attempt)
		if err := f.get(name, &volumesnapshot.VolumeSnapshot{}); client.IgnoreNotFound(err) != nil || err == nil {
			return fmt.Errorf("the VolumeSnapshot %s is there (%w)", name, err)
		}
	}
	return nil
}

// noJob tells that no Job was made.
func (f *fixture) noJob() {
	f.Helper()
	jobs := &batchv1.JobList{}
	if err := env.Client.List(f.Context(), jobs, client.InNamespace(f.namespace)); err != nil || len(jobs.Items) != 0 {
		f.Errorf("there are %d Jobs (%v), want none", len(jobs.Items), err)
	}
}

func TestAVolumeIsReadFromASnapshotOfIt(t *testing.T) {
	installSnapshots(t)
	env.StartOperator(t, nil)
	f := newCSIFixture(t, "", "")
	f.writer()
	f.run("shop-now")

	snapshot := f.snapshot("shop-now-0-1")
	if !snapshot.IsOf("csi-data") || *snapshot.Spec.ClassName != "csi-test" || metav1.GetControllerOf(snapshot).Name != "shop-now" {
		t.Errorf("the snapshot is %+v", snapshot)
	}
	run := f.wait("shop-now", slipwayv1alpha1.BackupRunning, slipwayv1alpha1.ReasonTakingSnapshot)
	if run.Status.Volumes[0].ReadFrom != slipwayv1alpha1.ReadFromSnapshot {
		t.Errorf("the status does not tell what is read: %+v", run.Status.Volumes)
	}
	f.noJob()

	f.says("shop-now-0-1", readySnapshot)
	job := f.job("shop-now-0-1")
	staged := &corev1.PersistentVolumeClaim{}
	if err := f.get("shop-now-0-1", staged); err != nil {
		t.Fatal(err)
	}
	if size := staged.Spec.Resources.Requests.Storage(); !desired.IsOf(staged, "shop-now-0-1") || size.String() != "2Gi" || *staged.Spec.StorageClassName != "class-of-"+f.namespace {
		t.Errorf("the claim is %+v", staged.Spec)
	}
	pod := job.Spec.Template.Spec
	if pod.Affinity != nil || *pod.SecurityContext.RunAsUser != 1234 {
		t.Errorf("the pod is on %+v as %+v, want any node, and the user of the pod that uses the volume", pod.Affinity, pod.SecurityContext)
	}
	for _, volume := range pod.Volumes {
		if volume.PersistentVolumeClaim != nil && volume.PersistentVolumeClaim.ClaimName != "shop-now-0-1" {
			t.Errorf("the pod mounts %q", volume.PersistentVolumeClaim.ClaimName)
		}
	}

	if err := f.cluster.Work(t.Context(), job, mover.StepSnapshot); err != nil {
		t.Fatal(err)
	}
	f.wait("shop-now", slipwayv1alpha1.BackupRunning, slipwayv1alpha1.ReasonTransferring)
	if err := f.get("shop-now-0-1", &volumesnapshot.VolumeSnapshot{}); err != nil {
		t.Errorf("the snapshot has gone while it is read: %v", err)
	}
	// While the copy is verified, the volume is not needed any more.
	if err := f.cluster.Work(t.Context(), job, mover.StepVerify); err != nil {
		t.Fatal(err)
	}
	f.nothingStaged()
	if err := f.cluster.Move(t.Context(), job, nil); err != nil {
		t.Fatal(err)
	}
	run = f.wait("shop-now", slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonVerified)
	conditions := run.Status.Conditions
	if !meta.IsStatusConditionTrue(conditions, slipwayv1alpha1.ConditionCrashConsistent) || meta.FindStatusCondition(conditions, slipwayv1alpha1.ConditionLiveSource) != nil {
		t.Errorf("the conditions are %+v", conditions)
	}
	if at := run.Status.Volumes[0].SourceTime; at == nil || !at.Time.Equal(snapshot.CreationTimestamp.Time) {
		t.Errorf("the source is said to be of %v, want when the snapshot was asked for, %v", at, snapshot.CreationTimestamp)
	}
	if err := f.get("csi-data", &corev1.PersistentVolumeClaim{}); err != nil {
		t.Errorf("the volume itself: %v", err)
	}
}

// Only one pod may use such a volume, and one does. Its snapshot can be read all the same.
func TestAVolumeOfOnePodIsReadFromASnapshot(t *testing.T) {
	installSnapshots(t)
	env.StartOperator(t, nil)
	f := newFixture(t, func(b *slipwayv1alpha1.Backup) { b.Spec.Source = "csi-data" })
	f.csiClaim(driver, corev1.ReadWriteOncePod)
	f.writer()
	f.run("shop-now")
	f.says("shop-now-0-1", readySnapshot)
	f.job("shop-now-0-1")
}

func TestASnapshotThatFailsFailsTheAttempt(t *testing.T) {
	installSnapshots(t)
	env.StartOperator(t, nil)
	f := newCSIFixture(t, "", "")
	f.run("shop-now")
	f.says("shop-now-0-1", `{"readyToUse": false, "error": {"message": "the pool is full\u0007"}}`)
	run := f.wait("shop-now", slipwayv1alpha1.BackupPending, slipwayv1alpha1.ReasonRetrying)
	if run.Status.Attempt != 2 || !strings.Contains(run.Status.Message, slipwayv1alpha1.ReasonVolumeSnapshotFailed) || !strings.Contains(run.Status.Message, "the pool is full ") {
		t.Errorf("attempt %d: %q", run.Status.Attempt, run.Status.Message)
	}
	f.nothingStaged()
	f.noJob()
}

// After a pod that was lost, nothing of its attempt is left.
func TestAnAttemptThatFailsLeavesNothing(t *testing.T) {
	installSnapshots(t)
	env.StartOperator(t, nil)
	f := newCSIFixture(t, "", "")
	f.run("shop-now")
	f.says("shop-now-0-1", readySnapshot)
	if err := f.cluster.Move(t.Context(), f.job("shop-now-0-1"), func(mover.Step, *mover.Result) *mover.Result { return nil }); err != nil {
		t.Fatal(err)
	}
	f.wait("shop-now", slipwayv1alpha1.BackupPending, slipwayv1alpha1.ReasonRetrying)
	f.nothingStaged()
}

// The Job of a run that failed stays for its log, but not where its pod would hold a volume that was made from a snapshot.
func TestARunThatFailedHoldsNoVolume(t *testing.T) {
	installSnapshots(t)
	env.StartOperator(t, nil)
	f := newCSIFixture(t, "", "")
	f.run("shop-now")
	f.says("shop-now-0-1", readySnapshot)
	wrong := func(step mover.Step, result *mover.Result) *mover.Result {
		result.OK, result.Kind, result.Message = false, "WrongPassword", "words"
		return result
	}
	if err := f.cluster.Move(t.Context(), f.job("shop-now-0-1"), wrong); err != nil {
		t.Fatal(err)
	}
	f.wait("shop-now", slipwayv1alpha1.BackupFailed, slipwayv1alpha1.ReasonWrongPassword)
	f.nothingStaged()
	f.gone("shop-now-0-1")
}

func TestThePolicyOfSnapshots(t *testing.T) {
	installSnapshots(t)
	env.StartOperator(t, nil)
	tests := map[string]struct {
		policy slipwayv1alpha1.VolumeSnapshotPolicy
		class  string
		driver string
		// live is what LiveSource says, message what the run waits for.
		live, message string
	}{
		"never":                          {policy: slipwayv1alpha1.VolumeSnapshotNever, driver: driver, live: "spec.volumeSnapshot.policy is Never"},
		"no class of the driver":         {driver: "other.test", live: `no VolumeSnapshotClass of the driver "other.test"`},
		"no class, and required":         {policy: slipwayv1alpha1.VolumeSnapshotRequire, driver: "other.test", message: `no VolumeSnapshotClass of the driver "other.test"`},
		"a class that is not there":      {class: "nope", driver: driver, message: `there is no VolumeSnapshotClass "nope"`},
		"a class of another driver":      {class: "csi-test", driver: "other.test", message: `is of the driver "csi.test"`},
		"auto, and one that is the same": {policy: slipwayv1alpha1.VolumeSnapshotAuto, class: "csi-test", driver: driver},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(b *slipwayv1alpha1.Backup) {
				b.Spec.Source = "csi-data"
				b.Spec.VolumeSnapshot = &slipwayv1alpha1.BackupVolumeSnapshot{Policy: tc.policy, ClassName: tc.class}
			})
			f.csiClaim(tc.driver, corev1.ReadWriteOnce)
			f.writer()
			f.run("shop-now")
			switch {
			case tc.message != "":
				run := f.wait("shop-now", slipwayv1alpha1.BackupPending, slipwayv1alpha1.ReasonNoVolumeSnapshotClass)
				if !strings.Contains(run.Status.Message, tc.message) {
					t.Errorf("the message is %q", run.Status.Message)
				}
				f.noJob()
			case tc.live != "":
				f.job("shop-now-0-1")
				run := f.wait("shop-now", slipwayv1alpha1.BackupRunning, slipwayv1alpha1.ReasonTransferring)
				live := meta.FindStatusCondition(run.Status.Conditions, slipwayv1alpha1.ConditionLiveSource)
				if live == nil || !strings.Contains(live.Message, tc.live) || run.Status.Volumes[0].ReadFrom != slipwayv1alpha1.ReadFromVolume {
					t.Errorf("LiveSource is %+v, the volume %+v", live, run.Status.Volumes)
				}
				if err := f.staged(); err != nil {
					t.Error(err)
				}
			default:
				f.snapshot("shop-now-0-1")
			}
		})
	}
}

func TestTheSchemaOfVolumeSnapshots(t *testing.T) {
	for name, tc := range map[string]struct {
		spec slipwayv1alpha1.BackupVolumeSnapshot
		ok   bool
	}{
		"a class alone":        {slipwayv1alpha1.BackupVolumeSnapshot{ClassName: "snap.fast"}, true},
		"a class, and never":   {slipwayv1alpha1.BackupVolumeSnapshot{Policy: slipwayv1alpha1.VolumeSnapshotNever, ClassName: "snap"}, false},
		"no name of a class":   {slipwayv1alpha1.BackupVolumeSnapshot{ClassName: "../snap"}, false},
		"a policy of no sense": {slipwayv1alpha1.BackupVolumeSnapshot{Policy: "Always"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			backup := &slipwayv1alpha1.Backup{
				ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: env.Namespace(t)},
				Spec:       slipwayv1alpha1.BackupSpec{Source: "data", Destination: "s3://bucket", Suspend: true, VolumeSnapshot: &tc.spec},
			}
			if err := env.Client.Create(t.Context(), backup); (err == nil) != tc.ok {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Who may make VolumeSnapshots and claims in the namespace can take the names first, and can even say that the run owns them.
// Nothing else is read than the volume, and nothing is deleted that is not the run's.
func TestForeignObjectsOfThoseNamesAreNeitherReadNorDeleted(t *testing.T) {
	installSnapshots(t)
	operator := env.StartOperator(t, nil)
	claim := func(f *fixture) *corev1.PersistentVolumeClaim {
		return &corev1.PersistentVolumeClaim{
			ObjectMeta: metav1.ObjectMeta{Name: "shop-now-0-1", Namespace: f.namespace},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		}
	}
	t.Run("a VolumeSnapshot of nobody", func(t *testing.T) {
		f := newCSIFixture(t, "", "")
		other := "shop-data"
		f.create(&volumesnapshot.VolumeSnapshot{
			ObjectMeta: metav1.ObjectMeta{Name: "shop-now-0-1", Namespace: f.namespace},
			Spec:       volumesnapshot.Spec{Source: volumesnapshot.Source{ClaimName: &other}},
		})
		f.says("shop-now-0-1", readySnapshot)
		f.run("shop-now")
		f.wait("shop-now", slipwayv1alpha1.BackupRunning, slipwayv1alpha1.ReasonNameConflict)
		f.noJob()
	})
	t.Run("a claim of nobody", func(t *testing.T) {
		f := newCSIFixture(t, "", "")
		f.create(claim(f))
		f.run("shop-now")
		f.says("shop-now-0-1", readySnapshot)
		f.wait("shop-now", slipwayv1alpha1.BackupRunning, slipwayv1alpha1.ReasonNameConflict)
		f.noJob()
		found := &corev1.PersistentVolumeClaim{}
		if err := f.get("shop-now-0-1", found); err != nil || !found.DeletionTimestamp.IsZero() {
			t.Errorf("the claim that is not the run's is being deleted (%v)", err)
		}
	})
	operator.Stop(t)
	for name, make := range map[string]func(*fixture, metav1.OwnerReference){
		"a VolumeSnapshot of another volume, with the run as its owner": func(f *fixture, owner metav1.OwnerReference) {
			other := "shop-data"
			f.create(&volumesnapshot.VolumeSnapshot{
				ObjectMeta: metav1.ObjectMeta{Name: "shop-now-0-1", Namespace: f.namespace, OwnerReferences: []metav1.OwnerReference{owner}},
				Spec:       volumesnapshot.Spec{Source: volumesnapshot.Source{ClaimName: &other}},
			})
			f.says("shop-now-0-1", readySnapshot)
		},
		"a claim of another volume, with the run as its owner": func(f *fixture, owner metav1.OwnerReference) {
			foreign := claim(f)
			foreign.OwnerReferences = []metav1.OwnerReference{owner}
			f.create(foreign)
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newCSIFixture(t, "", "")
			run := f.run("shop-now")
			make(f, *metav1.NewControllerRef(run, slipwayv1alpha1.SchemeGroupVersion.WithKind("BackupRun")))
			env.StartOperator(t, nil)
			if strings.HasPrefix(name, "a claim") {
				f.says("shop-now-0-1", readySnapshot)
			}
			f.wait("shop-now", slipwayv1alpha1.BackupRunning, slipwayv1alpha1.ReasonNameConflict)
			f.noJob()
		})
	}
}

// A cluster that says nothing is not one without classes: the volume is not read as it is because of that.
func TestAnAPIServerThatFailsIsNoClusterWithoutClasses(t *testing.T) {
	installSnapshots(t)
	var broken atomic.Bool
	broken.Store(true)
	env.StartOperator(t, func(config *rest.Config) {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(req *http.Request) (*http.Response, error) {
				if broken.Load() && strings.HasPrefix(req.URL.Path, "/apis/snapshot.storage.k8s.io") {
					return nil, errors.New("connection reset")
				}
				return next.RoundTrip(req)
			})
		})
	})
	f := newCSIFixture(t, "", "")
	f.run("shop-now")
	f.wait("shop-now", slipwayv1alpha1.BackupPending, slipwayv1alpha1.ReasonAPIError)
	f.noJob()
	broken.Store(false)
	f.snapshot("shop-now-0-1")
}

type roundTripper func(*http.Request) (*http.Response, error)

func (r roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return r(req) }

// dies lets an operator write so often, and no more: its writes go nowhere, or their answers are lost.
func dies(after int64, answersLost bool, namespace string) func(*rest.Config) {
	var writes atomic.Int64
	return func(config *rest.Config) {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(req *http.Request) (*http.Response, error) {
				if req.Method == http.MethodGet || !strings.Contains(req.URL.Path, "/namespaces/"+namespace+"/") {
					return next.RoundTrip(req)
				}
				n := writes.Add(1)
				switch {
				case n <= after:
					return next.RoundTrip(req)
				case n == after+1 && answersLost:
					if response, err := next.RoundTrip(req); err == nil {
						_ = response.Body.Close()
					}
				}
				return nil, errors.New("the operator is dead")
			})
		})
	}
}

// Whatever write is the last one of an operator, the next one completes the run, and leaves nothing.
func TestNothingIsLeftByAnOperatorThatDiesAtAnyWrite(t *testing.T) {
	installSnapshots(t)
	const most = 12
	count, random := property.Inputs(t, 2*most, 4) // each takes seconds
	for _, which := range random(1).Perm(2 * most)[:count] {
		writes, lost := int64(which/2), which%2 == 1
		t.Run(fmt.Sprintf("after %d writes, answer of the next one lost: %v", writes, lost), func(t *testing.T) {
			f := newCSIFixture(t, "", "")
			f.writer()
			first := env.StartOperator(t, dies(writes, lost, f.namespace))
			f.run("shop-now")
			f.drive(t.Context(), time.Now().Add(1500*time.Millisecond))
			first.Stop(t)
			env.StartOperator(t, nil)
			f.drive(t.Context(), time.Now().Add(25*time.Second))
			f.wait("shop-now", slipwayv1alpha1.BackupCompleted, slipwayv1alpha1.ReasonVerified)
			f.nothingStaged()
		})
	}
}

// drive plays the snapshot controller and the pods of a run until it has ended, or until a time.
func (f *fixture) drive(ctx context.Context, until time.Time) {
	f.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for time.Now().Before(until) {
		run := &slipwayv1alpha1.BackupRun{}
		if err := f.get("shop-now", run); err == nil && run.Ended() {
			return
		}
		snapshot := &volumesnapshot.VolumeSnapshot{}
		if err := f.get("shop-now-0-1", snapshot); err == nil && !snapshot.Ready() {
			f.says("shop-now-0-1", readySnapshot)
		}
		job := &batchv1.Job{}
		if err := f.get("shop-now-0-1", job); err == nil && len(job.Status.Conditions) == 0 && job.DeletionTimestamp.IsZero() {
			if err := f.cluster.Move(ctx, job, nil); err != nil {
				f.Fatal(err)
			}
		}
		<-tick.C
	}
}

// A run that is deleted makes nothing any more, whatever it did. What it has made has it as its owner.
func TestARunThatIsDeletedMakesNothingAnyMore(t *testing.T) {
	installSnapshots(t)
	env.StartOperator(t, nil)
	phases := map[string]func(*fixture){
		"while the snapshot is taken": func(f *fixture) { f.snapshot("shop-now-0-1") },
		"while the snapshot is read": func(f *fixture) {
			f.says("shop-now-0-1", readySnapshot)
			f.job("shop-now-0-1")
		},
		"while the copy is verified": func(f *fixture) {
			f.says("shop-now-0-1", readySnapshot)
			if err := f.cluster.Work(f.Context(), f.job("shop-now-0-1"), mover.StepVerify); err != nil {
				f.Fatal(err)
			}
			f.nothingStaged()
		},
	}
	for name, reach := range phases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newCSIFixture(t, "", "")
			run := f.run("shop-now")
			reach(f)
			if err := env.Client.Delete(t.Context(), run); err != nil {
				t.Fatal(err)
			}
			// The garbage collector's part.
			for _, object := range []client.Object{&batchv1.Job{}, &corev1.PersistentVolumeClaim{}, &volumesnapshot.VolumeSnapshot{}} {
				if err := f.get("shop-now-0-1", object); err != nil {
					continue
				}
				if owner := metav1.GetControllerOf(object); owner == nil || owner.UID != run.UID {
					t.Errorf("%T is owned by %+v", object, owner)
				}
				if err := client.IgnoreNotFound(env.Client.Delete(t.Context(), object, client.PropagationPolicy(metav1.DeletePropagationBackground))); err != nil {
					t.Fatal(err)
				}
			}
			environment.Quiet(t, time.Second, func() string { return fmt.Sprint(f.staged()) })
			f.nothingStaged()
			f.noJob()
		})
	}
}

// The kinds may be installed at any time. An operator that runs finds them.
func TestKindsThatAppearLaterAreUsedWithoutARestart(t *testing.T) {
	other, err := environment.Start()
	if err != nil {
		t.Fatal(err)
	}
	shared := env
	env = other
	t.Cleanup(func() {
		env = shared
		if err := other.Stop(); err != nil {
			t.Error(err)
		}
	})
	env.StartOperator(t, nil)
	before := newCSIFixture(t, "", "")
	before.writer()
	before.run("shop-now")
	before.job("shop-now-0-1")
	run := before.wait("shop-now", slipwayv1alpha1.BackupRunning, slipwayv1alpha1.ReasonTransferring)
	live := meta.FindStatusCondition(run.Status.Conditions, slipwayv1alpha1.ConditionLiveSource)
	if live == nil || !strings.Contains(live.Message, "does not have the kind VolumeSnapshotClass") {
		t.Errorf("LiveSource is %+v", live)
	}
	waits := newCSIFixture(t, slipwayv1alpha1.VolumeSnapshotRequire, "")
	waits.run("shop-now")
	waits.wait("shop-now", slipwayv1alpha1.BackupPending, slipwayv1alpha1.ReasonNoVolumeSnapshotClass)
	installSnapshotsInto(t, env)
	waits.snapshot("shop-now-0-1")
}

// An operator that is limited to some namespaces has no rights outside of them, and asks for nothing there.
func TestAnOperatorOfSomeNamespacesTakesNoSnapshots(t *testing.T) {
	installSnapshots(t)
	f := newCSIFixture(t, "", "")
	var asked atomic.Int64
	env.StartOperator(t, func(config *rest.Config) {
		config.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return roundTripper(func(req *http.Request) (*http.Response, error) {
				if strings.Contains(req.URL.Path, "persistentvolumes/") || strings.Contains(req.URL.Path, "storageclasses") || strings.Contains(req.URL.Path, "volumesnapshotclasses") {
					asked.Add(1)
				}
				return next.RoundTrip(req)
			})
		})
	}, f.namespace)
	f.writer()
	f.run("shop-now")
	f.job("shop-now-0-1")
	run := f.wait("shop-now", slipwayv1alpha1.BackupRunning, slipwayv1alpha1.ReasonTransferring)
	if live := meta.FindStatusCondition(run.Status.Conditions, slipwayv1alpha1.ConditionLiveSource); live == nil || !strings.Contains(live.Message, "limited to some namespaces") {
		t.Errorf("LiveSource is %+v", live)
	}
	if asked.Load() != 0 {
		t.Errorf("it asked %d times for what is in no namespace", asked.Load())
	}
}
