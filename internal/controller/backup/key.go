package backup

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/backup/mover"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// keyPassword is the key of the password in the encryption Secret. Beside it is the ID of the repository, under a key that has the
// name of the Backup: several may share a password. Older releases had one key for all (mover.OldIDFile).
const keyPassword = "password"

// passwordBytes is the length of a password that is made: 256 bits.
const passwordBytes = 32

// unseen keeps the client from waiting until the cache shows what was written: the cache has no content of Secrets, and would
// never show it.
const unseen = client.DisableReadYourWritesConsistency

// keepKey sees to the Secret with the password: it makes one before the first run, and notes the ID of the repository in it
// after that.
func (r *Reconciler) keepKey(ctx context.Context, s *scope) error {
	name := s.backup.EncryptionSecret()
	exists, err := r.secretExists(ctx, s.backup.Namespace, name)
	if err != nil {
		return err
	}
	reported := s.reportedRepositoryID()
	switch {
	case !exists && s.repositoryID == "" && reported == "":
		return r.makeKey(ctx, s, name)
	case !exists:
		return outcome.Blockedf(0, slipwayv1alpha1.ReasonKeyMissing,
			"Secret %q (spec.encryption) is gone, and the copies can be read with its password alone: restore the Secret", name)
	case s.repositoryID == "" && reported != "":
		if err := r.pin(ctx, s, reported); err != nil {
			return err
		}
		s.repositoryID = reported
	}
	return nil
}

// knownRepositoryID is the ID of the repository, as far as the status or a run tells it.
func (s *scope) knownRepositoryID() string {
	if s.repositoryID != "" {
		return s.repositoryID
	}
	return s.reportedRepositoryID()
}

// reportedRepositoryID is what a run has reported of the repository.
func (s *scope) reportedRepositoryID() string {
	for i := range s.runs {
		if id := s.runs[i].Status.RepositoryID; id != "" {
			return id
		}
	}
	return ""
}

func (r *Reconciler) secretExists(ctx context.Context, namespace, name string) (bool, error) {
	secret := &metav1.PartialObjectMetadata{}
	secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	err := r.kit.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, secret)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read the Secret %q: %w", name, err)
	default:
		return true, nil
	}
}

// makeKey makes the Secret with a password, where the spec names none of its own. It has no owner: whoever deletes the Backup
// still needs it to restore.
func (r *Reconciler) makeKey(ctx context.Context, s *scope, name string) error {
	if s.backup.Spec.Encryption != nil {
		return outcome.Waitingf(0, slipwayv1alpha1.ReasonSecretNotFound, "there is no Secret %q (spec.encryption)", name)
	}
	if err := r.kit.Fresh.Confirm(ctx, s.backup); err != nil {
		return err
	}
	random := make([]byte, passwordBytes)
	if _, err := rand.Read(random); err != nil {
		return fmt.Errorf("make a password: %w", err)
	}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: s.backup.Namespace,
			Labels: map[string]string{
				slipwayv1alpha1.LabelManagedBy: slipwayv1alpha1.ManagedBySlipway, slipwayv1alpha1.LabelBackup: s.backup.Name,
			},
		},
		StringData: map[string]string{keyPassword: hex.EncodeToString(random)},
	}
	err := r.kit.Client.Create(ctx, secret, client.FieldOwner(FieldManager), unseen)
	if apierrors.IsAlreadyExists(err) {
		return nil // its owner was faster: a password of theirs is as good
	}
	if err != nil {
		return outcome.Classify(fmt.Sprintf("Secret %q", name), err)
	}
	r.kit.Warn(s.backup, slipwayv1alpha1.ReasonKeyMade, fmt.Sprintf(
		"a password was made in Secret %q: keep a copy of it outside of the cluster, because without it nobody can restore", name))
	return nil
}

// pin notes the ID of the repository beside the password, under the key of the Backup. One that is there already stays. The key
// of older releases goes where it has this ID: another one is that of another Backup.
func (r *Reconciler) pin(ctx context.Context, s *scope, id string) error {
	secret, err := r.readKey(ctx, s)
	if err != nil {
		return err
	}
	key := mover.IDFile(s.backup.Name)
	known, old := string(secret.Data[key]), string(secret.Data[mover.OldIDFile])
	if known == "" && s.backup.OwnsKey() {
		known = old
	}
	if known != "" && known != id {
		return outcome.Blockedf(0, slipwayv1alpha1.ReasonWrongRepository,
			"Secret %q (spec.encryption) is of another repository than the one at spec.destination: its %s differs", secret.Name, key)
	}
	changes := map[string]any{}
	if string(secret.Data[key]) != id {
		changes[key] = []byte(id)
	}
	if old == id {
		changes[mover.OldIDFile] = nil
	}
	return r.changeKey(ctx, secret, changes)
}

// unpin forgets the ID of a repository that was deleted: another one may be made with the password.
func (r *Reconciler) unpin(ctx context.Context, s *scope) error {
	secret, err := r.readKey(ctx, s)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	key := mover.IDFile(s.backup.Name)
	changes := map[string]any{}
	if _, found := secret.Data[key]; found {
		changes[key] = nil
	}
	if old := string(secret.Data[mover.OldIDFile]); old != "" &&
		(old == s.knownRepositoryID() || s.backup.OwnsKey() && s.knownRepositoryID() == "") {
		changes[mover.OldIDFile] = nil
	}
	return r.changeKey(ctx, secret, changes)
}

// readKey reads the Secret with the password from the API server: the cache has no content of Secrets.
func (r *Reconciler) readKey(ctx context.Context, s *scope) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	name := s.backup.EncryptionSecret()
	if err := r.kit.Live.Get(ctx, types.NamespacedName{Namespace: s.backup.Namespace, Name: name}, secret); err != nil {
		return nil, outcome.Classify(fmt.Sprintf("Secret %q", name), err)
	}
	return secret, nil
}

// refusedWrite reports whether the API server refuses what would be written to a Secret, as an admission webhook may. Another attempt
// changes nothing.
func refusedWrite(err error) bool {
	worst := outcome.Worst(err)
	return worst != nil && (worst.Reason == slipwayv1alpha1.ReasonInvalid || worst.Reason == slipwayv1alpha1.ReasonForbidden)
}

// changeKey sets keys of a Secret as it was read, or removes them. Several Backups may do so at the same time. One that is
// immutable stays as it is: the status has the ID, too.
func (r *Reconciler) changeKey(ctx context.Context, secret *corev1.Secret, changes map[string]any) error {
	if len(changes) == 0 || (secret.Immutable != nil && *secret.Immutable) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": secret.ResourceVersion}, "data": changes})
	if err != nil {
		return fmt.Errorf("write the ID of the repository: %w", err)
	}
	target := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: secret.Name, Namespace: secret.Namespace}}
	if err := r.kit.Client.Patch(
		ctx, target, client.RawPatch(types.MergePatchType, patch), client.FieldOwner(FieldManager), unseen,
	); err != nil {
		return outcome.Classify(fmt.Sprintf("Secret %q", secret.Name), err)
	}
	return nil
}
