//go:build csi

package csi

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// number reads a number from the environment.
func number(t *testing.T, name string, fallback uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// atOnce is how many Backups have a run killed at a time.
const atOnce = 4

// Runs are killed at random moments, in every way that there is. No snapshot is left, nor a volume that was made from one, and
// each run that nobody deletes completes.
func TestKilledRunsLeaveNothing(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	kills, seed := number(t, "KILLS", 100), number(t, "SEED", uint64(time.Now().UnixNano()))
	t.Logf("SEED=%d KILLS=%d", seed, kills)
	f.Patience = 5 * time.Minute
	f.Claim("repository", "", claimSize)
	for i := range atOnce {
		claim := fmt.Sprintf("data-%d", i)
		f.Claim(claim, className, claimSize)
		f.writer(claim)
		f.backup(claim, claim, slipwayv1alpha1.VolumeSnapshotRequire)
	}
	var counts [ways]atomic.Int64
	var completed atomic.Int64
	var killers sync.WaitGroup
	for i := range atOnce {
		killers.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			for n := uint64(i); n < kills && !t.Failed(); n += atOnce {
				name := fmt.Sprintf("run-%d", n)
				done, way, err := f.kill(fmt.Sprintf("data-%d", i), name, random)
				if err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
				counts[way].Add(1)
				if done {
					completed.Add(1)
				}
			}
		})
	}
	killers.Wait()
	f.nothingIsLeft()
	var reported []string
	for way := range counts {
		reported = append(reported, fmt.Sprintf("%d %s", counts[way].Load(), wayNames[way]))
	}
	f.Measured("%d runs killed (%s): %d of them completed, and nothing is left", kills, strings.Join(reported, ", "), completed.Load())
}

// The ways in which a run is killed.
const (
	killMover = iota
	deletePod
	deleteJob
	deleteRun
	killOperator
	ways
)

var wayNames = [ways]string{"mover killed", "pod deleted", "Job deleted", "run deleted", "operator killed"}

// kill makes a run and kills it in one way at a random moment. Most are then deleted, wherever they are; the others have to
// complete.
func (f *fixture) kill(backup, name string, random *rand.Rand) (completed bool, way int, err error) {
	run := &slipwayv1alpha1.BackupRun{Spec: slipwayv1alpha1.BackupRunSpec{Backup: backup}}
	run.Name, run.Namespace = name, f.Namespace
	if err := cluster.Create(f.Context(), run); err != nil {
		return false, 0, err
	}
	way = random.IntN(ways)
	wait(f.Context(), time.Duration(random.IntN(6000))*time.Millisecond)
	if err := f.act(way, name); err != nil {
		return false, way, err
	}
	if way != deleteRun && random.IntN(4) == 0 {
		return true, way, f.completes(name)
	}
	wait(f.Context(), time.Duration(random.IntN(2000))*time.Millisecond)
	return false, way, client.IgnoreNotFound(cluster.Delete(f.Context(), run))
}

func wait(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

func (f *fixture) completes(name string) error {
	deadline := time.Now().Add(f.Patience)
	run := &slipwayv1alpha1.BackupRun{}
	for ; time.Now().Before(deadline); wait(f.Context(), 200*time.Millisecond) {
		if err := f.Get(name, run); err != nil {
			return err
		}
		switch run.Status.Phase {
		case slipwayv1alpha1.BackupCompleted:
			return nil
		case slipwayv1alpha1.BackupFailed:
			return fmt.Errorf("it failed (%s: %s)", run.Status.Reason, run.Status.Message)
		}
	}
	return fmt.Errorf("it is still %s (%s: %s)", run.Status.Phase, run.Status.Reason, run.Status.Message)
}

// act kills a run in one way. There may be nothing to kill yet, or any more.
func (f *fixture) act(way int, run string) error {
	pods := &corev1.PodList{}
	if err := cluster.List(f.Context(), pods, client.InNamespace(f.Namespace), client.MatchingLabels{slipwayv1alpha1.LabelBackupRun: run}); err != nil {
		return err
	}
	jobs := &batchv1.JobList{}
	if err := cluster.List(f.Context(), jobs, client.InNamespace(f.Namespace), client.MatchingLabels{slipwayv1alpha1.LabelBackupRun: run}); err != nil {
		return err
	}
	var errs []error
	switch way {
	case killMover:
		for i := range pods.Items {
			errs = append(errs, killProcesses(&pods.Items[i]))
		}
	case deletePod:
		for i := range pods.Items {
			errs = append(errs, client.IgnoreNotFound(cluster.Delete(f.Context(), &pods.Items[i], client.GracePeriodSeconds(0))))
		}
	case deleteJob:
		for i := range jobs.Items {
			errs = append(errs, client.IgnoreNotFound(cluster.Delete(f.Context(), &jobs.Items[i], client.PropagationPolicy(metav1.DeletePropagationBackground))))
		}
	case deleteRun:
		object := &slipwayv1alpha1.BackupRun{}
		object.Name, object.Namespace = run, f.Namespace
		errs = append(errs, client.IgnoreNotFound(cluster.Delete(f.Context(), object)))
	case killOperator:
		leader, err := cluster.Leader(f.Context())
		if err != nil {
			return nil // one that was killed before has not come back
		}
		// Its process may have ended by itself meanwhile.
		_ = cluster.KillOperator(leader)
	}
	return errors.Join(errs...)
}

// killProcesses ends the processes of slipway-backup in a pod with SIGKILL.
func killProcesses(pod *corev1.Pod) error {
	folders, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		return err
	}
	for _, folder := range folders {
		cgroups, _ := os.ReadFile(filepath.Join(folder, "cgroup"))
		arguments, _ := os.ReadFile(filepath.Join(folder, "cmdline"))
		if !strings.Contains(string(cgroups), "pod"+string(pod.UID)) || !strings.Contains(string(arguments), "--config") {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(folder))
		if err != nil {
			return err
		}
		if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
	return nil
}
