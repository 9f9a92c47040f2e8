package restore

import (
	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/backup/transfer"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// origin is where a copy is.
type origin struct {
	// place is where the repository is.
	place mover.Place
	// repositoryID is its ID, where that is known.
	repositoryID string
	// encryption and credentials are Secrets, and ofEncryption and ofCredentials the fields that name them.
	encryption, credentials     string
	ofEncryption, ofCredentials string
	// ofDestination is the field with the place.
	ofDestination string
	// snapshot is the ID of the copy. Empty: the newest verified one.
	snapshot string
	// volume restricts that to the copies of a volume. Empty: there is one volume.
	volume string
}

// find finds the copy.
func (s *scope) find() error {
	spec := s.restore.Spec
	s.origin = origin{snapshot: spec.Snapshot}
	if spec.Volume != nil {
		s.origin.volume = spec.Volume.Name
	}
	if spec.Repository != nil {
		return s.findRepository(spec.Repository)
	}
	switch {
	case spec.Run != nil && s.run.UID == "":
		return outcome.Waitingf(0, slipwayv1alpha1.ReasonRunNotFound, "there is no BackupRun %q (spec.run)", spec.Run.Name)
	case s.backup.UID == "" && spec.Backup != nil:
		return outcome.Waitingf(0, slipwayv1alpha1.ReasonBackupNotFound, "there is no Backup %q (spec.backup)", spec.Backup.Name)
	case s.backup.UID == "":
		return outcome.Waitingf(0, slipwayv1alpha1.ReasonBackupNotFound, "there is no Backup %q, of which BackupRun %q is a run (spec.run)",
			s.run.Spec.Backup, s.run.Name)
	}
	place, err := mover.ParseDestination(s.backup.Spec.Destination)
	if err != nil {
		return outcome.Invalidf(slipwayv1alpha1.ReasonInvalid, "spec.destination of Backup %q: %v", s.backup.Name, err)
	}
	s.origin.place = place.Repository(s.backup.Namespace, s.backup.Name)
	s.origin.repositoryID, s.origin.ofDestination = s.backup.Status.RepositoryID, "spec.destination of the Backup"
	s.origin.encryption, s.origin.ofEncryption = s.backup.EncryptionSecret(), "spec.encryption of the Backup"
	s.origin.credentials, s.origin.ofCredentials = s.backup.CredentialsSecret(), "spec.credentials of the Backup"
	if spec.Run != nil {
		return s.findRun()
	}
	return nil
}

// findRun finds the copy of a run.
func (s *scope) findRun() error {
	if s.run.Status.Phase == slipwayv1alpha1.BackupFailed {
		return outcome.Invalidf(slipwayv1alpha1.ReasonRunNotFound, "BackupRun %q failed, so it has no verified copy (spec.run)", s.run.Name)
	}
	var names []string
	for _, volume := range s.run.Status.Volumes {
		names = append(names, volume.Claim)
		if volume.Verified && (s.origin.volume == volume.Claim || (s.origin.volume == "" && len(s.run.Status.Volumes) == 1)) {
			s.origin.snapshot = volume.SnapshotID
			return nil
		}
	}
	switch {
	case s.run.Status.Phase != slipwayv1alpha1.BackupCompleted:
		return outcome.Waitingf(0, slipwayv1alpha1.ReasonRunNotFound, "BackupRun %q has not completed yet (spec.run)", s.run.Name)
	case s.origin.volume == "":
		return outcome.Invalidf(
			slipwayv1alpha1.ReasonInvalid, "spec.volume has to name one of the volumes %q of BackupRun %q", names, s.run.Name,
		)
	default:
		return outcome.Invalidf(
			slipwayv1alpha1.ReasonInvalid, "spec.volume: BackupRun %q has no volume %q, only %q", s.run.Name, s.origin.volume, names,
		)
	}
}

func (s *scope) findRepository(repository *slipwayv1alpha1.RestoreRepository) error {
	place, err := mover.ParseDestination(repository.Destination)
	if err != nil {
		return outcome.Invalidf(slipwayv1alpha1.ReasonInvalid, "spec.repository.destination: %v", err)
	}
	s.origin.place, s.origin.ofDestination = place, "spec.repository.destination"
	s.origin.encryption, s.origin.ofEncryption = repository.Encryption.Name, "spec.repository.encryption"
	s.origin.credentials, s.origin.ofCredentials = slipwayv1alpha1.DefaultCredentials, "spec.repository.credentials"
	if repository.Credentials != nil {
		s.origin.credentials = repository.Credentials.Name
	}
	return nil
}

// secrets are the Secrets that the pod mounts. The credentials come first: nobody but the user makes them.
func (o origin) secrets() []transfer.Reference {
	var list []transfer.Reference
	if o.place.Bucket != "" {
		list = append(list, transfer.Credentials(o.credentials, o.ofCredentials))
	}
	return append(list, transfer.Encryption(o.encryption, o.ofEncryption))
}
