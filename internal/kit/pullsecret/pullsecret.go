// Package pullsecret looks for the Secrets that images are pulled with. Pods start without one that does not exist: often the
// node has the image, or everybody may pull it. So it takes nothing from what serves, and a condition of its own tells it.
package pullsecret

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
	"github.com/slipway-dev/slipway/internal/kit/status"
)

// Looked is what was found of the Secrets that a spec names.
type Looked struct {
	// Seen are the Secrets as the cache has them, without a version where there is none.
	Seen []client.Object
	// missing names those that do not exist. Empty: all do.
	missing string
}

// Look looks for Secrets through a cache of metadata. field is the list in the spec, and whose says whose spec it is, empty: that of
// the object itself.
func Look(
	ctx context.Context, cached client.Reader, namespace string, names []slipwayv1alpha1.LocalReference, field, whose string,
) (Looked, error) {
	looked := Looked{}
	var missing []string
	for i, ref := range names {
		secret := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: ref.Name}}
		secret.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
		looked.Seen = append(looked.Seen, secret)
		err := cached.Get(ctx, client.ObjectKeyFromObject(secret), secret)
		switch {
		case apierrors.IsNotFound(err):
			missing = append(missing, fmt.Sprintf("Secret %q does not exist (%s[%d]%s)", ref.Name, field, i, whose))
		case err != nil:
			return looked, fmt.Errorf("read Secret %q: %w", ref.Name, err)
		}
	}
	looked.missing = strings.Join(missing, "; ")
	return looked, nil
}

// Missing names those that do not exist. Empty: all do.
func (l Looked) Missing() string { return l.missing }

// Condition is stated under a name while a Secret is missing, and only then.
func (l Looked) Condition(name string) []metav1.Condition {
	if l.missing == "" {
		return nil
	}
	return []metav1.Condition{status.True(name, slipwayv1alpha1.ReasonSecretNotFound, l.missing+": images are pulled without it")}
}

// Explain adds to what is wrong with an image that a Secret to pull it is missing.
func (l Looked) Explain(trouble *health.Trouble) *health.Trouble {
	if trouble == nil || l.missing == "" {
		return trouble
	}
	switch trouble.Reason {
	case slipwayv1alpha1.ReasonImagePullDenied, slipwayv1alpha1.ReasonImageNotFound, slipwayv1alpha1.ReasonImagePullBackOff:
		return &health.Trouble{Reason: trouble.Reason, Message: trouble.Message + "; " + l.missing}
	default:
		return trouble
	}
}

// Names are the names of Secrets, for an index.
func Names(refs []slipwayv1alpha1.LocalReference) []string {
	var names []string
	for _, ref := range refs {
		names = append(names, ref.Name)
	}
	return names
}

// ComesOrGoes lets through what tells whether a Secret exists: its content does not matter.
func ComesOrGoes() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(event.UpdateEvent) bool { return false }}
}
