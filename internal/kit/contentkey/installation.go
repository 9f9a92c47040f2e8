package contentkey

import (
	"context"
	"crypto/rand"
	"fmt"
	"sync/atomic"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

const (
	// SecretName is the name of the Secret with the key.
	SecretName = "slipway-content-key"
	// DataKey is where the key is in it.
	DataKey = "key"
	// keyBytes is how long a key is.
	keyBytes = 32
)

// Keys are those of the namespaces.
type Keys interface {
	// For returns the key of a namespace. An error has a policy, see package outcome.
	For(ctx context.Context, namespace string) (Key, error)
}

// API is what is asked of the API server. It must not answer from a cache.
type API interface {
	Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error
	Create(ctx context.Context, object client.Object, options ...client.CreateOption) error
}

// Installation has the keys of an installation. The Secret is read when a key is needed for
// the first time, and not again.
type Installation struct {
	api       API
	namespace string

	// turn is held by the one who asks the API server. Those who wait for it give up when their
	// context ends, which they could not with a mutex.
	turn   chan struct{}
	master atomic.Pointer[[]byte]
}

// NewInstallation returns the keys of the installation whose operator is in that namespace.
func NewInstallation(api API, namespace string) *Installation {
	return &Installation{api: api, namespace: namespace, turn: make(chan struct{}, 1)}
}

// For returns the key of a namespace. The rights that it needs are those of the Role in
// config/rbac/contentkey.yaml: they are in the operator's own namespace, whichever that is.
func (i *Installation) For(ctx context.Context, namespace string) (Key, error) {
	if master := i.master.Load(); master != nil {
		return Derive(*master, namespace), nil
	}
	select {
	case i.turn <- struct{}{}:
		defer func() { <-i.turn }()
	case <-ctx.Done():
		return Key{}, outcome.Classify(i.what(), fmt.Errorf("wait for the key: %w", ctx.Err()))
	}
	if master := i.master.Load(); master != nil {
		return Derive(*master, namespace), nil
	}
	master, err := i.read(ctx)
	if apierrors.IsNotFound(err) {
		master, err = i.make(ctx)
	}
	if err != nil {
		return Key{}, outcome.Classify(i.what(), err)
	}
	i.master.Store(&master)
	return Derive(master, namespace), nil
}

// what is the Secret in messages.
func (i *Installation) what() string {
	return fmt.Sprintf("Secret %q in namespace %q, which keys the hashes of configuration,", SecretName, i.namespace)
}

func (i *Installation) read(ctx context.Context) ([]byte, error) {
	secret := &corev1.Secret{}
	if err := i.api.Get(ctx, types.NamespacedName{Namespace: i.namespace, Name: SecretName}, secret); err != nil {
		return nil, fmt.Errorf("read the key: %w", err)
	}
	master := secret.Data[DataKey]
	if len(master) != keyBytes {
		// Not replaced: what is there may be somebody's, and a mistake in restoring it.
		return nil, outcome.Blockedf(0, slipwayv1alpha1.ReasonInvalid,
			"%s has no %d bytes under %q: restore it, or delete it to have another one made", i.what(), keyBytes, DataKey)
	}
	return master, nil
}

// make makes the Secret. Where another operator was faster, its key counts.
func (i *Installation) make(ctx context.Context) ([]byte, error) {
	master := make([]byte, keyBytes)
	if _, err := rand.Read(master); err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	immutable := true
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: i.namespace,
			Name:      SecretName,
			Labels:    map[string]string{slipwayv1alpha1.LabelName: "slipway", "app.kubernetes.io/component": "operator"},
		},
		Immutable: &immutable,
		Data:      map[string][]byte{DataKey: master},
	}
	err := i.api.Create(ctx, secret)
	switch {
	case err == nil:
		return master, nil
	case apierrors.IsAlreadyExists(err):
		return i.read(ctx)
	case apierrors.IsNotFound(err):
		return nil, &outcome.Error{
			Kind: outcome.Transient, Reason: slipwayv1alpha1.ReasonAPIError,
			Message: i.what() + " cannot be made: the namespace does not exist", Err: err,
		}
	default:
		return nil, fmt.Errorf("store the key: %w", err)
	}
}
