package desired

import (
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/children"
)

// Kind is the kind that owns everything built here.
const Kind = "Restore"

// Steps are what the Job does.
var Steps = []mover.Step{mover.StepRestore}

// Inputs is all that the builder of the Job looks at.
type Inputs struct {
	// Restore is the Restore.
	Restore *slipwayv1alpha1.Restore
	// Place is where the repository itself is.
	Place mover.Place
	// RepositoryID is that of the repository, where it is known.
	RepositoryID string
	// Encryption and Credentials are Secrets.
	Encryption, Credentials string
	// Snapshot is the ID of the copy. Empty: the newest verified one.
	Snapshot string
	// Volume restricts that to the copies of a volume.
	Volume string
	// Image is that of slipway-backup.
	Image string
	// Attempt is which attempt it is, from 1.
	Attempt int32
	// Node is where a pod uses the volume. Empty: anywhere.
	Node string
	// Tolerations are those of the pod there.
	Tolerations []corev1.Toleration
	// Identity is who the pod runs as.
	Identity mover.Identity
	// Deadline is how long the Job may take.
	Deadline time.Duration
}

func owner(restore *slipwayv1alpha1.Restore) children.Owner {
	return children.Owner{Kind: Kind, Object: restore, Label: slipwayv1alpha1.LabelRestore}
}

// JobName returns the name of the Job of an attempt.
func JobName(restore *slipwayv1alpha1.Restore, attempt int32) string {
	return fmt.Sprintf("%s-restore-%d", restore.Name, attempt)
}

// Job returns the Job that writes the volume.
func Job(in Inputs) (*batchv1ac.JobApplyConfiguration, error) {
	spec := in.Restore.Spec
	restore := mover.Restore{
		Snapshot: in.Snapshot, Latest: in.Snapshot == "", Volume: in.Volume, Target: mover.VolumeFolder,
		Paths: paths(spec.Paths), Overwrite: spec.Overwrite, Attempt: string(in.Restore.UID),
	}
	if spec.AsOf != nil {
		restore.AsOf = spec.AsOf.Time
	}
	var resources *slipwayv1alpha1.ResourceRequirements
	if spec.Mover != nil {
		resources = spec.Mover.Resources
	}
	return mover.Job{
		Name: JobName(in.Restore, in.Attempt), Namespace: in.Restore.Namespace, Labels: owner(in.Restore).Labels(),
		Owner: owner(in.Restore).Reference(),
		Image: in.Image, Steps: Steps,
		Config: mover.Config{Repository: mover.Repository{ID: in.RepositoryID}, Restore: restore},
		Place:  in.Place, Encryption: in.Encryption, Credentials: in.Credentials,
		Claim: spec.Target.Claim, NewClaim: spec.Target.Create != nil, Node: in.Node, Tolerations: in.Tolerations, Mover: spec.Mover,
		Identity: in.Identity, Resources: resources, Deadline: in.Deadline,
	}.Build()
}

// Claim returns the volume to make, or nil where the spec asks for none. It has no owner: it stays when the Restore goes. An
// annotation tells which Restore has made it.
func Claim(restore *slipwayv1alpha1.Restore) *corev1ac.PersistentVolumeClaimApplyConfiguration {
	create := restore.Spec.Target.Create
	if create == nil {
		return nil
	}
	mode := corev1.ReadWriteOnce
	if create.AccessMode != "" {
		mode = corev1.PersistentVolumeAccessMode(create.AccessMode)
	}
	spec := corev1ac.PersistentVolumeClaimSpec().
		WithAccessModes(mode).
		WithResources(corev1ac.VolumeResourceRequirements().WithRequests(corev1.ResourceList{corev1.ResourceStorage: create.Size}))
	if create.StorageClassName != nil {
		spec.WithStorageClassName(*create.StorageClassName)
	}
	return corev1ac.PersistentVolumeClaim(restore.Spec.Target.Claim, restore.Namespace).
		WithLabels(owner(restore).Labels()).
		WithAnnotations(map[string]string{slipwayv1alpha1.AnnotationRestoreUID: string(restore.UID)}).
		WithSpec(spec)
}

func paths(list []slipwayv1alpha1.BackupPath) []string {
	var texts []string
	for _, path := range list {
		texts = append(texts, strings.TrimSuffix(string(path), "/"))
	}
	return texts
}
