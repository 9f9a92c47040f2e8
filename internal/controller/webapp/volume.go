package webapp

import (
	"errors"
	"fmt"
	"regexp"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// lacksVolume finds what the scheduler says of a claim that is not bound. Each is an item of its list, and no name that the list
// may hold, of a taint or a resource for example, has a space.
var lacksVolume = regexp.MustCompile(`[:,] (?:pod has|\d+) (?:unbound immediate PersistentVolumeClaims|node\(s\) didn't find available persistent volumes to bind)(?:[.,]|$)`)

// withVolume names the volume when that is what keeps a pod from being scheduled.
func (s *scope) withVolume(verdict health.Verdict) *health.Trouble {
	pending := s.claim.UID != "" && s.claim.Status.Phase != corev1.ClaimBound
	if verdict.Reason == slipwayv1alpha1.ReasonUnschedulable && pending && lacksVolume.MatchString(verdict.Message) {
		return &health.Trouble{
			Reason: slipwayv1alpha1.ReasonVolumePending,
			Message: fmt.Sprintf(
				"PersistentVolumeClaim %q%s is not bound (spec.storage): %s", s.claim.Name, ofClass(s.claim), verdict.Message,
			),
		}
	}
	return &health.Trouble{Reason: verdict.Reason, Message: verdict.Message}
}

// ofClass names the class that a volume was asked of, which may not exist.
func ofClass(claim *corev1.PersistentVolumeClaim) string {
	if claim.Spec.StorageClassName == nil {
		return ""
	}
	return fmt.Sprintf(" of StorageClass %q", *claim.Spec.StorageClassName)
}

// volumeSize is what the volume was granted of what it was asked for, or nil. A claim
// that grows asks for more than there is; one may also get more than it asked for.
func (s *scope) volumeSize() *resource.Quantity {
	size, bound := s.claim.Status.Capacity[corev1.ResourceStorage]
	if s.app.Spec.Storage == nil || !bound {
		return nil
	}
	if asked := s.claim.Spec.Resources.Requests[corev1.ResourceStorage]; asked.Cmp(size) < 0 {
		size = asked
	}
	return &size
}

// classError says of a volume that is of another class than the spec asks for that it stays in its class. Any other error stays
// as it is. ours reports whether a WebApp of this name once stated the class; otherwise nobody asks to change it.
func (s *scope) classError(err error, ours bool) error {
	answer := &outcome.Error{}
	has, wants := s.claim.Spec.StorageClassName, s.app.Spec.Storage.StorageClassName
	if !errors.As(err, &answer) || !answer.Stalls() || has == nil || wants == nil && !ours || wants != nil && *wants == *has {
		return err
	}
	asked := "is not set"
	if wants != nil {
		asked = fmt.Sprintf("is %q", *wants)
	}
	return outcome.Blockedf(volumeRecheck, slipwayv1alpha1.ReasonInvalid,
		"PersistentVolumeClaim %q is of StorageClass %q and stays so, and spec.storage.storageClassName %s: set it to %q, or delete the "+
			"claim with what is in it",
		s.claim.Name, *has, asked, *has)
}

// volumeRecheck is when to look again: a claim that goes has no owner that is told.
const volumeRecheck = 10 * time.Second

// resizeError says of a volume that is refused another size which field asks for it, and
// that it is the user's turn. Any other error stays as it is.
func (s *scope) resizeError(err error) error {
	answer := &outcome.Error{}
	if !errors.As(err, &answer) || (answer.Reason != slipwayv1alpha1.ReasonForbidden && answer.Reason != slipwayv1alpha1.ReasonInvalid) {
		return err
	}
	has, wants := s.claim.Spec.Resources.Requests[corev1.ResourceStorage], s.app.Spec.Storage.Size
	verb := "grow"
	switch has.Cmp(wants) {
	case 0:
		return err
	case 1:
		verb = "shrink"
	}
	what := fmt.Sprintf(
		"PersistentVolumeClaim %q cannot %s from %s to %s (spec.storage.size)", s.claim.Name, verb, has.String(), wants.String(),
	)
	if s.claim.Status.Phase == corev1.ClaimPending {
		return outcome.Waitingf(0, slipwayv1alpha1.ReasonVolumePending,
			"%s before it is bound: it holds no data, and is recreated when it is deleted", what)
	}
	return &outcome.Error{
		Kind: outcome.Blocked, Reason: slipwayv1alpha1.ReasonVolumeResizeRefused, Message: what + ": " + outcome.Answer(err),
		Err: err,
	}
}
