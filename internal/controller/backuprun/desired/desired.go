package desired

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/backup/volumesnapshot"
	"github.com/slipway-dev/slipway/internal/children"
	slipwayac "github.com/slipway-dev/slipway/pkg/client/applyconfiguration/api/v1alpha1"
)

// Kind is the kind that owns everything built here.
const Kind = "BackupRun"

// AnnotationLive on a Job tells that pods could write to the volume when it was made. Whoever looks at the Job later cannot
// find out any more.
const AnnotationLive = "slipway.dev/live-source"

// Steps are what the Job does: the second one is another process, with a cache of its own.
var Steps = []mover.Step{mover.StepSnapshot, mover.StepVerify}

// Inputs is all that the builder of the Job looks at.
type Inputs struct {
	// Run is the BackupRun, and Backup what it is a run of.
	Run    *slipwayv1alpha1.BackupRun
	Backup *slipwayv1alpha1.Backup
	// Place is where repositories are.
	Place mover.Place
	// Image is that of slipway-backup.
	Image string
	// Volume is the index in status.volumes of the volume to back up, and Claim its name.
	Volume int
	Claim  string
	// Attempt is which attempt it is, from 1.
	Attempt int32
	// RepositoryID is that of the repository, empty before the first run of the Backup.
	RepositoryID string
	// Dump is the container whose output is kept, under the name that Claim has. Nil: a volume is.
	Dump *mover.DumpContainer
	// Node is where a pod uses the volume. Empty: anywhere.
	Node string
	// Live reports whether pods may write to the volume meanwhile.
	Live bool
	// Tolerations are those of the pod there.
	Tolerations []corev1.Toleration
	// Identity is who the pod runs as.
	Identity mover.Identity
	// Deadline is how long the Job may take.
	Deadline time.Duration
	// Snapshot is the VolumeSnapshot of the volume. With no UID the volume itself is read, and NoSnapshot may say why.
	Snapshot   *volumesnapshot.VolumeSnapshot
	NoSnapshot string
}

// Owned returns the owner of a run, and nothing else of it: its Backup.
func Owned(run *slipwayv1alpha1.BackupRun, backup *slipwayv1alpha1.Backup) *slipwayac.BackupRunApplyConfiguration {
	owner := children.Owner{Kind: "Backup", Object: backup, Label: slipwayv1alpha1.LabelBackup}
	return slipwayac.BackupRun(run.Name, run.Namespace).WithOwnerReferences(owner.Reference())
}

// JobName returns the name of the Job for a volume and an attempt.
func JobName(run *slipwayv1alpha1.BackupRun, volume int, attempt int32) string {
	return fmt.Sprintf("%s-%d-%d", run.Name, volume, attempt)
}

// Tag is what the copy of a volume is found by in the repository: it belongs to this run and to no other.
func Tag(run *slipwayv1alpha1.BackupRun, claim string) string {
	return mover.Tag(run.UID, claim)
}

// Mode is how closely copies are verified.
func Mode(backup *slipwayv1alpha1.Backup) slipwayv1alpha1.VerifyMode {
	if backup.Spec.Verify == nil || backup.Spec.Verify.Mode == "" {
		return slipwayv1alpha1.VerifySample
	}
	return backup.Spec.Verify.Mode
}

// readPercent is which share of the files is read back.
func readPercent(mode slipwayv1alpha1.VerifyMode) float64 {
	const all, sample = 100, 5
	if mode == slipwayv1alpha1.VerifyFull {
		return all
	}
	return sample
}

// Job returns the Job that copies a volume and verifies the copy.
func Job(in Inputs) (*batchv1ac.JobApplyConfiguration, error) {
	owner := children.Owner{Kind: Kind, Object: in.Run, Label: slipwayv1alpha1.LabelBackupRun}
	labels := owner.Labels()
	labels[slipwayv1alpha1.LabelBackup] = in.Backup.Name
	spec := in.Backup.Spec
	tag := Tag(in.Run, in.Claim)
	var resources *slipwayv1alpha1.ResourceRequirements
	if spec.Mover != nil {
		resources = spec.Mover.Resources
	}
	source := mover.VolumeFolder
	if in.Dump != nil {
		source = ""
	}
	job, err := mover.Job{
		Name: JobName(in.Run, in.Volume, in.Attempt), Namespace: in.Run.Namespace, Labels: labels, Owner: owner.Reference(),
		Image: in.Image, Steps: Steps,
		Config: mover.Config{
			Repository: mover.Repository{ID: in.RepositoryID, Create: in.RepositoryID == "", OldID: in.Backup.OwnsKey()},
			Snapshot: mover.Snapshot{
				Source: source, Run: tag, Volume: in.Claim, SourceTime: in.sourceTime(), Paths: paths(spec.Include), Exclude: spec.Exclude,
				AllowPartial: spec.AllowPartial, AllowEmpty: spec.AllowEmpty,
			},
			Verify: mover.Verify{Run: tag, ReadPercent: readPercent(Mode(in.Backup))},
		},
		Place: in.Place.Repository(in.Backup.Namespace, in.Backup.Name), Encryption: in.Backup.EncryptionSecret(),
		Credentials: in.Backup.CredentialsSecret(),
		Claim:       in.reads(), Dump: in.Dump, Node: in.Node, Tolerations: in.Tolerations, Mover: spec.Mover, Identity: in.Identity,
		Resources: resources,
		Deadline:  in.Deadline,
	}.Build()
	if err == nil {
		job.WithAnnotations(in.annotations())
	}
	return job, err
}

func paths(include []slipwayv1alpha1.BackupPath) []string {
	var texts []string
	for _, path := range include {
		texts = append(texts, strings.TrimSuffix(string(path), "/"))
	}
	return texts
}
