package desired

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	batchv1ac "k8s.io/client-go/applyconfigurations/batch/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/children"
	"github.com/slipway-dev/slipway/internal/schedule"
	slipwayac "github.com/slipway-dev/slipway/pkg/client/applyconfiguration/api/v1alpha1"
)

// Kind is the kind that owns everything built here.
const Kind = "Backup"

// defaultMayExpire is how many copies of a volume may be removed at once where no annotation says otherwise.
const defaultMayExpire = 10

func owner(backup *slipwayv1alpha1.Backup) children.Owner {
	return children.Owner{Kind: Kind, Object: backup, Label: slipwayv1alpha1.LabelBackup}
}

// Run returns the run for a slot.
func Run(backup *slipwayv1alpha1.Backup, slot time.Time) *slipwayac.BackupRunApplyConfiguration {
	return slipwayac.BackupRun(schedule.RunName(backup.Name, slot), backup.Namespace).
		WithLabels(owner(backup).Labels()).
		WithOwnerReferences(owner(backup).Reference()).
		WithSpec(slipwayac.BackupRunSpec().WithBackup(backup.Name).WithSlot(metav1.NewTime(slot)))
}

// Rules identifies the rules of retention of a Backup. It is empty where everything is kept.
func Rules(backup *slipwayv1alpha1.Backup) string {
	rules := Retention(backup)
	if rules == nil {
		return ""
	}
	raw, err := json.Marshal(rules)
	if err != nil {
		return ""
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])[:10]
}

// Retention returns the rules of a Backup for slipway-backup, or nil where everything is kept.
func Retention(backup *slipwayv1alpha1.Backup) *mover.Retention {
	spec := backup.Spec
	rules := mover.Retention{TimeZone: spec.TimeZone, Limit: defaultMayExpire, Within: spec.RetentionPolicy}
	switch r := spec.Retention; {
	case r != nil:
		rules.Last, rules.Hourly, rules.Daily = int(r.Last), int(r.Hourly), int(r.Daily)
		rules.Weekly, rules.Monthly, rules.Yearly = int(r.Weekly), int(r.Monthly), int(r.Yearly)
	case spec.RetentionPolicy == "":
		return nil
	}
	if n, err := strconv.Atoi(backup.Annotations[slipwayv1alpha1.AnnotationMayExpire]); err == nil && n > rules.Limit {
		rules.Limit = n
	}
	return &rules
}

// KeepName returns the name of the Job that removes old copies after a run, by the present rules.
func KeepName(backup *slipwayv1alpha1.Backup, run string) string {
	sum := sha256.Sum256([]byte(run + "/" + Rules(backup)))
	return fmt.Sprintf("%s-keep-%s", backup.Name, hex.EncodeToString(sum[:])[:8])
}

// DeleteName returns the name of the Job that deletes the repository, of an attempt from 1.
func DeleteName(backup *slipwayv1alpha1.Backup, attempt int) string {
	if attempt <= 1 {
		return backup.Name + "-delete"
	}
	return fmt.Sprintf("%s-delete-%d", backup.Name, attempt)
}

// IsKeep reports whether a Job has the name of one that removes old copies.
func IsKeep(backup *slipwayv1alpha1.Backup, job string) bool {
	return strings.HasPrefix(job, backup.Name+"-keep-")
}

// KeepSteps are what the Job does that removes old copies.
func KeepSteps(backup *slipwayv1alpha1.Backup, maintain bool) []mover.Step {
	var steps []mover.Step
	if maintain {
		steps = append(steps, mover.StepMaintain)
	}
	if Retention(backup) != nil {
		steps = append(steps, mover.StepExpire)
	}
	return steps
}

// Inputs is all that the builders of Jobs look at.
type Inputs struct {
	// Backup is the Backup.
	Backup *slipwayv1alpha1.Backup
	// Place is where repositories are.
	Place mover.Place
	// Image is that of slipway-backup.
	Image string
	// Name is that of the Job.
	Name string
	// Steps are what it does.
	Steps []mover.Step
	// Deadline is how long it may take.
	Deadline time.Duration
	// RepositoryID is that of the repository, empty where nobody knows it.
	RepositoryID string
	// MadeSince protects a repository that is older from being deleted. Zero: none is protected.
	MadeSince time.Time
}

// Job returns a Job that works on the repository, and on no volume.
func Job(in Inputs) (*batchv1ac.JobApplyConfiguration, error) {
	labels := owner(in.Backup).Labels()
	labels[slipwayv1alpha1.LabelRetentionRules] = Rules(in.Backup)
	var resources *slipwayv1alpha1.ResourceRequirements
	if in.Backup.Spec.Mover != nil {
		resources = in.Backup.Spec.Mover.Resources
	}
	return mover.Job{
		Name: in.Name, Namespace: in.Backup.Namespace, Labels: labels, Owner: owner(in.Backup).Reference(),
		Image: in.Image, Steps: in.Steps,
		Config: mover.Config{
			Repository: mover.Repository{ID: in.RepositoryID, OldID: in.Backup.OwnsKey()},
			Expire:     mover.Expire{Retention: Retention(in.Backup)},
			Delete:     mover.Delete{MadeSince: in.MadeSince.UTC()},
		},
		Place: in.Place.Repository(in.Backup.Namespace, in.Backup.Name), Encryption: in.Backup.EncryptionSecret(),
		Credentials: in.Backup.CredentialsSecret(),
		Mover:       in.Backup.Spec.Mover, Resources: resources, Deadline: in.Deadline,
	}.Build()
}
