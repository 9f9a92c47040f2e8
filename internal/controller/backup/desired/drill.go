package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/schedule"
)

// DrillOfSlot returns the name of the drill for a slot. It is always the same.
func DrillOfSlot(backup *slipwayv1alpha1.Backup, slot time.Time) string {
	return schedule.RunName(backup.Name+"-drill", slot)
}

// Request identifies the value of the annotation that asks for a drill. It is empty where there is none.
func Request(backup *slipwayv1alpha1.Backup) string {
	value := backup.Annotations[slipwayv1alpha1.AnnotationDrill]
	if value == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(value))
	return hex.EncodeToString(sum[:])[:10]
}

// DrillOfRequest returns the name of the drill that an annotation asks for.
func DrillOfRequest(backup *slipwayv1alpha1.Backup, request string) string {
	return backup.Name + "-drill-" + request
}

// DrillJobName returns the name of the Job of an attempt.
func DrillJobName(drill string, attempt int32) string { return fmt.Sprintf("%s-%d", drill, attempt) }

// DrillSteps are what the Job of a drill does.
func DrillSteps(drill *slipwayv1alpha1.BackupDrill) []mover.Step {
	steps := []mover.Step{mover.StepRestore, mover.StepCompare}
	if drill.Image != "" {
		steps = append(steps, mover.StepCommand)
	}
	return steps
}

// DrillInputs is all that the builder of a drill's Job looks at.
type DrillInputs struct {
	// Backup is the Backup, with spec.verify.drill.
	Backup *slipwayv1alpha1.Backup
	// Place is where repositories are.
	Place mover.Place
	// Image is that of slipway-backup.
	Image string
	// Drill is the name of the drill, Attempt which attempt it is, from 1, and Number its number among all Jobs of drills.
	Drill   string
	Attempt int32
	Number  int64
	// Run is the run whose copies are restored.
	Run *slipwayv1alpha1.BackupRun
	// NotBefore is how new the copies have to be.
	NotBefore time.Time
	// Claims are the claims of the source that there still are, by their names.
	Claims map[string]*corev1.PersistentVolumeClaim
	// Identity is who the pod runs as.
	Identity mover.Identity
	// Deadline is how long the Job may take.
	Deadline time.Duration
}

// DrillJob returns the Job of an attempt of a drill.
func DrillJob(in DrillInputs) (*batchv1ac.JobApplyConfiguration, error) {
	drill := in.Backup.Drill()
	labels := owner(in.Backup).Labels()
	labels[slipwayv1alpha1.LabelDrill] = strconv.FormatInt(in.Number, 10)
	job := mover.Job{
		Name: DrillJobName(in.Drill, in.Attempt), Namespace: in.Backup.Namespace, Labels: labels, Owner: owner(in.Backup).Reference(),
		Image: in.Image, Steps: DrillSteps(drill),
		Config: mover.Config{
			Repository: mover.Repository{ID: in.Backup.Status.RepositoryID, OldID: in.Backup.OwnsKey()},
			Drill: mover.Drill{
				Folder: mover.ScratchFolder, Volumes: drillVolumes(in.Run), NotBefore: in.NotBefore, AllowEmpty: in.Backup.Spec.AllowEmpty,
			},
		},
		Place: in.Place.Repository(in.Backup.Namespace, in.Backup.Name), Encryption: in.Backup.EncryptionSecret(),
		Credentials: in.Backup.CredentialsSecret(),
		Identity:    in.Identity, Deadline: in.Deadline, Scratch: scratch(drill, in.Run, in.Claims),
	}
	if in.Backup.Spec.Mover != nil {
		job.Resources = in.Backup.Spec.Mover.Resources
	}
	if drill.Image != "" {
		job.Command = &mover.Command{Image: drill.Image, Command: drill.Command, Resources: job.Resources}
	}
	return job.Build()
}

// drillVolumes is what status says of the copies of a run.
func drillVolumes(run *slipwayv1alpha1.BackupRun) []mover.DrillVolume {
	var volumes []mover.DrillVolume
	for _, v := range run.Status.Volumes {
		volume := mover.DrillVolume{Volume: v.Claim, Snapshot: v.SnapshotID, Run: mover.Tag(run.UID, v.Claim), Manifest: v.ManifestDigest}
		if v.SourceTime != nil {
			volume.SourceTime = v.SourceTime.UTC()
		}
		volumes = append(volumes, volume)
	}
	return volumes
}

// leastScratch is what the scratch has at least: a file system needs something for itself.
const leastScratch = 64 << 20

// scratch is the volume to restore to. It is as large as the volumes of the source. Of one that is gone it is known what its
// copy holds.
func scratch(
	drill *slipwayv1alpha1.BackupDrill, run *slipwayv1alpha1.BackupRun, claims map[string]*corev1.PersistentVolumeClaim,
) *mover.Scratch {
	of := &mover.Scratch{}
	total := resource.NewQuantity(0, resource.BinarySI)
	for _, v := range run.Status.Volumes {
		claim := claims[v.Claim]
		if claim == nil {
			const share = 5
			total.Add(*resource.NewQuantity(v.Bytes+v.Bytes/share, resource.BinarySI))
			continue
		}
		total.Add(claim.Spec.Resources.Requests[corev1.ResourceStorage])
		if of.Class == nil {
			of.Class = claim.Spec.StorageClassName
		}
	}
	if total.Value() < leastScratch {
		total = resource.NewQuantity(leastScratch, resource.BinarySI)
	}
	of.Size = *total
	asked := drill.Scratch
	if asked == nil {
		return of
	}
	of.EmptyDir = asked.Type == slipwayv1alpha1.ScratchEmptyDir
	if asked.Size != nil {
		of.Size = *asked.Size
	}
	if asked.StorageClassName != nil {
		of.Class = asked.StorageClassName
	}
	return of
}
