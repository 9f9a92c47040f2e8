//go:build apitest && csicontrollers

package backuprun_test

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/backup/volumesnapshot"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

const realDriver = "csi.localkube.slipway.dev"

// controllers are the real ones of CSI, and those of Kubernetes that have a say in when volumes and snapshots go: all but the
// kubelet, whose part the test plays. CSI_PROGRAMS names the folder with the programs.
type controllers struct{ folder string }

func startControllers(t *testing.T) *controllers {
	t.Helper()
	programs := os.Getenv("CSI_PROGRAMS")
	if programs == "" {
		t.Fatal("CSI_PROGRAMS names no folder: run the test with make test-csi-controllers")
	}
	c := &controllers{folder: t.TempDir()}
	kubeconfig := filepath.Join(c.folder, "kubeconfig")
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: env.Config.Host, CertificateAuthorityData: env.Config.CAData}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: env.Config.CertData, ClientKeyData: env.Config.KeyData}
	config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "x"
	if err := clientcmd.WriteToFile(*config, kubeconfig); err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(c.folder, "csi.sock")
	t.Cleanup(func() {
		if out, err := exec.Command("umount", c.path("")).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	c.start(t, filepath.Join(programs, "csi"), "--socket="+socket, "--root="+c.path(""), "--image="+filepath.Join(c.folder, "image"), "--node=node")
	c.start(t, filepath.Join(programs, "snapshot-controller"), "--kubeconfig="+kubeconfig, "--http-endpoint=")
	c.start(t, filepath.Join(programs, "csi-snapshotter"), "--kubeconfig="+kubeconfig, "--csi-address="+socket)
	c.start(t, filepath.Join(programs, "csi-provisioner"), "--kubeconfig="+kubeconfig, "--csi-address="+socket)
	c.start(t, filepath.Join(programs, "kube-controller-manager"), "--kubeconfig="+kubeconfig, "--leader-elect=false", "--secure-port=0",
		"--use-service-account-credentials=false", "--controllers=persistentvolume-binder-controller,persistentvolumeclaim-protection-controller,"+
			"persistentvolume-protection-controller,garbage-collector-controller")
	return c
}

// start runs a program until the end of the test. Its log is in the folder, and shown when the test fails.
func (c *controllers) start(t *testing.T, program string, arguments ...string) {
	t.Helper()
	path := filepath.Join(c.folder, filepath.Base(program)+".log")
	log, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	command := exec.Command(program, arguments...)
	command.Stdout, command.Stderr = log, log
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = command.Process.Kill()
		_ = command.Wait()
		if raw, _ := os.ReadFile(path); t.Failed() {
			t.Logf("%s: ...%s", filepath.Base(program), raw[max(0, len(raw)-3000):])
		}
	})
}

// path is a path in the file system of the driver.
func (c *controllers) path(elements ...string) string {
	return filepath.Join(append([]string{c.folder, "root"}, elements...)...)
}

// sourceClaim makes the claim csi-data, and returns the folder of its volume.
func (c *controllers) sourceClaim(f *fixture) string {
	f.Helper()
	class := "real-of-" + f.namespace
	f.create(&storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: realDriver})
	f.create(&corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: "csi-data", Namespace: f.namespace},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}, StorageClassName: &class,
			Resources: corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("64Mi")}},
		},
	})
	return c.folderOf(f, "csi-data")
}

// folderOf waits until a claim is bound, and returns the folder of its volume.
func (c *controllers) folderOf(f *fixture, name string) string {
	f.Helper()
	volume := &corev1.PersistentVolume{}
	environment.Eventually(f, func() error {
		claim := &corev1.PersistentVolumeClaim{}
		if err := f.get(name, claim); err != nil {
			return err
		}
		if claim.Status.Phase != corev1.ClaimBound {
			return fmt.Errorf("the claim %s is %s", name, claim.Status.Phase)
		}
		return env.Client.Get(f.Context(), client.ObjectKey{Name: claim.Spec.VolumeName}, volume)
	})
	return c.path("volumes", volume.Spec.CSI.VolumeHandle)
}

// writeInTurn appends numbers to two files in turn, each when the one before is on the disk, until the test ends.
func writeInTurn(t *testing.T, folder string) {
	t.Helper()
	end, ended := make(chan struct{}), make(chan error, 1)
	go func() { ended <- appendInTurn(folder, end) }()
	t.Cleanup(func() {
		close(end)
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func appendInTurn(folder string, end <-chan struct{}) error {
	var files [2]*os.File
	for i, name := range []string{"first", "second"} {
		file, err := os.OpenFile(filepath.Join(folder, name), os.O_CREATE|os.O_WRONLY|os.O_SYNC, 0o600)
		if err != nil {
			return err
		}
		defer file.Close()
		files[i] = file
	}
	for n := 0; ; n++ {
		for _, file := range files {
			if _, err := fmt.Fprintln(file, n); err != nil {
				return err
			}
		}
		select {
		case <-end:
			return nil
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// ofOneMoment returns how many numbers there are, and an error where they are not of one moment.
func ofOneMoment(folder string) (int, error) {
	var counts [2]int
	for i, name := range []string{"first", "second"} {
		file, err := os.Open(filepath.Join(folder, name))
		if err != nil {
			return 0, err
		}
		defer file.Close()
		for scanner := bufio.NewScanner(file); scanner.Scan(); counts[i]++ {
			if scanner.Text() != strconv.Itoa(counts[i]) {
				return 0, fmt.Errorf("line %d of %s is %q", counts[i], name, scanner.Text())
			}
		}
	}
	if counts[0] != counts[1] && counts[0] != counts[1]+1 {
		return 0, fmt.Errorf("%d and %d numbers", counts[0], counts[1])
	}
	return counts[0], nil
}

// pod makes the pod of a Job on a node, as the kubelet has it that starts it.
func (f *fixture) podOf(job *batchv1.Job) error {
	labels := map[string]string{batchv1.JobNameLabel: job.Name, batchv1.ControllerUidLabel: string(job.UID)}
	for name, value := range job.Spec.Template.Labels {
		labels[name] = value
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: job.Name + "-" + string(job.UID[:8]), Namespace: job.Namespace, Labels: labels,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))},
		},
		Spec: *job.Spec.Template.Spec.DeepCopy(),
	}
	pod.Spec.NodeName = "node"
	return client.IgnoreAlreadyExists(env.Client.Create(f.Context(), pod))
}

// left tells what runs have left behind, in the cluster and in the driver.
func (c *controllers) left(f *fixture) error {
	if err := f.staged(); err != nil {
		return err
	}
	contents := &unstructured.UnstructuredList{}
	contents.SetGroupVersionKind(schema.GroupVersionKind{Group: volumesnapshot.GroupVersion.Group, Version: "v1", Kind: "VolumeSnapshotContentList"})
	claims, volumes := &corev1.PersistentVolumeClaimList{}, &corev1.PersistentVolumeList{}
	if err := errors.Join(
		env.Client.List(f.Context(), contents),
		env.Client.List(f.Context(), claims, client.InNamespace(f.namespace), client.HasLabels{slipwayv1alpha1.LabelBackupRun}),
		env.Client.List(f.Context(), volumes),
	); err != nil {
		return err
	}
	real := 0
	for i := range volumes.Items {
		if csi := volumes.Items[i].Spec.CSI; csi != nil && csi.Driver == realDriver {
			real++
		}
	}
	made, err := os.ReadDir(c.path("volumes"))
	if err != nil {
		return err
	}
	taken, err := os.ReadDir(c.path("snapshots"))
	if err != nil {
		return err
	}
	if len(contents.Items) != 0 || len(claims.Items) != 0 || real != 1 || len(made) != 1 || len(taken) != 0 {
		return fmt.Errorf("%d VolumeSnapshotContents, %d claims of runs, %d PersistentVolumes; in the driver %d volumes and %d snapshots",
			len(contents.Items), len(claims.Items), real, len(made), len(taken))
	}
	return nil
}

func realFixture(t *testing.T) (*controllers, *fixture) {
	t.Helper()
	installSnapshots(t)
	c := startControllers(t)
	class := &volumesnapshot.Class{
		ObjectMeta: metav1.ObjectMeta{Name: "real", Annotations: map[string]string{"snapshot.storage.kubernetes.io/is-default-class": "true"}},
		Driver:     realDriver, DeletionPolicy: "Delete",
	}
	if err := env.Client.Create(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	f := newFixture(t, func(b *slipwayv1alpha1.Backup) { b.Spec.Source = "csi-data" })
	writeInTurn(t, c.sourceClaim(f))
	return c, f
}

// The ways in which a run is killed.
var ways = []string{"the mover is killed", "the pod is deleted", "the Job is deleted", "the run is deleted", "the operator ends"}

// Runs are killed in every way, at random moments. What the pod of a Job reads is of one moment, though the volume is written
// to all the time. In the end there is nothing left in the cluster and in the driver, and a run that nobody kills completes.
func TestKilledRunsLeaveNothingToTheRealControllers(t *testing.T) {
	kills, err := strconv.Atoi(os.Getenv("KILLS"))
	if err != nil {
		t.Fatalf("KILLS: %v", err)
	}
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("SEED"); text != "" {
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatalf("SEED: %v", err)
		}
	}
	c, f := realFixture(t)
	random := rand.New(rand.NewPCG(seed, 0))
	operator := env.StartOperator(t, nil)
	counts, read, completed, last := map[string]int{}, 0, 0, 0
	for n := range kills {
		run := f.run("shop-now")
		way := ways[random.IntN(len(ways))]
		at := time.Now().Add(time.Duration(random.IntN(3000)) * time.Millisecond)
		killed, ended := false, false
		looked := map[string]bool{}
		giveUp := time.Now().Add(2 * time.Minute)
		for !ended {
			if time.Now().After(giveUp) {
				t.Fatalf("run %d (SEED=%d, %s) has not ended: %+v", n, seed, way, run.Status)
			}
			if err := f.get(run.Name, run); err != nil {
				break // deleted
			}
			ended = run.Ended()
			name := fmt.Sprintf("shop-now-0-%d", max(1, run.Status.Attempt))
			job := &batchv1.Job{}
			if f.get(name, job) == nil && job.DeletionTimestamp.IsZero() && len(job.Status.Conditions) == 0 {
				if err := f.podOf(job); err != nil {
					t.Fatal(err)
				}
				if !looked[string(job.UID)] {
					looked[string(job.UID)] = true
					numbers, err := ofOneMoment(c.folderOf(f, name))
					if err != nil || numbers < last {
						t.Fatalf("run %d reads %d numbers, the one before %d: %v", n, numbers, last, err)
					}
					last = numbers
					read++
				}
			}
			if !killed && time.Now().After(at) {
				killed = true
				counts[way]++
				operator = f.killRun(way, name, run, operator)
				if way != "the run is deleted" && random.IntN(4) != 0 {
					f.deleteRun(run.Name)
				}
			}
			if f.get(name, job) == nil && job.DeletionTimestamp.IsZero() && len(job.Status.Conditions) == 0 && looked[string(job.UID)] && random.IntN(8) == 0 {
				if err := f.cluster.Move(t.Context(), job, nil); err != nil && !ended {
					t.Logf("run %d: %v", n, err)
				}
			}
			f.forgetPods()
			<-time.After(50 * time.Millisecond)
		}
		if run.Status.Phase == slipwayv1alpha1.BackupCompleted {
			completed++
		}
		f.deleteRun(run.Name)
		environment.Eventually(t, func() error {
			f.forgetPods()
			if err := f.get(run.Name, &slipwayv1alpha1.BackupRun{}); client.IgnoreNotFound(err) != nil || err == nil {
				return fmt.Errorf("the run is there (%w)", err)
			}
			if err := c.left(f); err != nil {
				return fmt.Errorf("run %d (SEED=%d, %s): %w", n, seed, way, err)
			}
			return nil
		})
	}
	t.Logf("measured: SEED=%d: %d runs killed (%v), %d volumes of snapshots read, all of one moment, %d completed, nothing left", seed, kills, counts, read, completed)
	if read == 0 {
		t.Error("no run came as far as reading a snapshot, which proves little")
	}
}

// killRun kills a run. Whatever is to be killed may not be there yet, or any more.
func (f *fixture) killRun(way, name string, run *slipwayv1alpha1.BackupRun, operator *environment.Operator) *environment.Operator {
	f.Helper()
	job := &batchv1.Job{}
	there := f.get(name, job) == nil && job.DeletionTimestamp.IsZero()
	switch {
	case way == "the run is deleted":
		f.deleteRun(run.Name)
	case way == "the operator ends":
		operator.Stop(f)
		return env.StartOperator(f, nil)
	case !there:
	case way == "the mover is killed" && len(job.Status.Conditions) == 0:
		if err := f.cluster.Move(f.Context(), job, func(mover.Step, *mover.Result) *mover.Result { return nil }); err != nil {
			f.Logf("kill: %v", err)
		}
	case way == "the pod is deleted":
		_ = env.Client.DeleteAllOf(f.Context(), &corev1.Pod{}, client.InNamespace(f.namespace), client.MatchingLabels{batchv1.JobNameLabel: name}, client.GracePeriodSeconds(0))
	case way == "the Job is deleted":
		_ = env.Client.Delete(f.Context(), job, client.PropagationPolicy(metav1.DeletePropagationBackground))
	}
	return operator
}

// forgetPods ends the pods that are being deleted, as the kubelet does.
func (f *fixture) forgetPods() {
	f.Helper()
	pods := &corev1.PodList{}
	if err := env.Client.List(f.Context(), pods, client.InNamespace(f.namespace)); err != nil {
		f.Fatal(err)
	}
	for i := range pods.Items {
		if !pods.Items[i].DeletionTimestamp.IsZero() {
			_ = env.Client.Delete(f.Context(), &pods.Items[i], client.GracePeriodSeconds(0))
		}
	}
}
