package transfer

import (
	"context"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// remembered is of how many Secrets and ConfigMaps it is remembered whether they have what is asked for. Losing it costs a read.
const remembered = 16384

// Reference is a Secret, or a ConfigMap, that a pod needs: without it the pod would wait, and not say for what.
type Reference struct {
	// ConfigMap reports whether it is one, and no Secret.
	ConfigMap bool
	// Name is its name.
	Name string
	// Field is the field by which it is named.
	Field string
	// Keys are what it must have.
	Keys []string
	// Filled reports whether nothing of that may be empty.
	Filled bool
}

// kind is what it is called.
func (r Reference) kind() string {
	if r.ConfigMap {
		return "ConfigMap"
	}
	return "Secret"
}

// Credentials is the Secret of a bucket.
func Credentials(name, field string) Reference {
	return Reference{Name: name, Field: field, Keys: []string{"accessKeyID", "secretAccessKey"}, Filled: true}
}

// Encryption is the Secret with the password of a repository.
func Encryption(name, field string) Reference {
	return Reference{Name: name, Field: field, Keys: []string{"password"}, Filled: true}
}

// References looks for Secrets and ConfigMaps. The cache, which has no content, says whether one exists and at which version. Its
// keys are read past the cache, once for each version.
type References struct {
	cached, live client.Reader
	known        *lru.Cache
}

// NewReferences returns what looks for them.
func NewReferences(cached, live client.Reader) *References {
	return &References{cached: cached, live: live, known: lru.New(remembered)}
}

// Check is about the first one that is missing or lacks a key, always the same: a status that names now one and now another would
// be written for ever.
func (r *References) Check(ctx context.Context, namespace string, list []Reference) error {
	for _, wanted := range list {
		missing, err := r.look(ctx, namespace, wanted)
		if err != nil {
			return err
		}
		if missing != nil {
			return missing
		}
	}
	return nil
}

// CheckLive is Check without the cache, which may not show yet what was just made. It is asked before what is not taken back.
func (r *References) CheckLive(ctx context.Context, namespace string, list []Reference) error {
	return NewReferences(r.live, r.live).Check(ctx, namespace, list)
}

// Missing is about all that are missing or lack a key, in the order of the list.
func (r *References) Missing(ctx context.Context, namespace string, list []Reference) ([]*outcome.Error, error) {
	var all []*outcome.Error
	for _, wanted := range list {
		missing, err := r.look(ctx, namespace, wanted)
		if err != nil {
			return all, err
		}
		if missing != nil {
			all = append(all, missing)
		}
	}
	return all, nil
}

// asked is what is remembered of an object: of which object, and what it has to have.
type asked struct{ kind, namespace, name, keys string }

// answer is what was found in one version of it.
type answer struct {
	uid     types.UID
	version string
	lacks   string
}

func (r *References) look(ctx context.Context, namespace string, wanted Reference) (missing *outcome.Error, err error) {
	object := &metav1.PartialObjectMetadata{}
	object.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind(wanted.kind()))
	name := types.NamespacedName{Namespace: namespace, Name: wanted.Name}
	err = r.cached.Get(ctx, name, object)
	switch {
	case apierrors.IsNotFound(err):
		reason := slipwayv1alpha1.ReasonSecretNotFound
		if wanted.ConfigMap {
			reason = slipwayv1alpha1.ReasonConfigMapNotFound
		}
		return outcome.Waitingf(0, reason, "there is no %s %q (%s)", wanted.kind(), wanted.Name, wanted.Field), nil
	case err != nil:
		return nil, fmt.Errorf("read the %s %q: %w", wanted.kind(), wanted.Name, err)
	case len(wanted.Keys) == 0:
		return nil, nil
	}
	key := asked{wanted.kind(), namespace, wanted.Name, fmt.Sprint(wanted.Filled, strings.Join(wanted.Keys, "\x00"))}
	if before, ok := r.known.Get(key); ok && before.(answer).uid == object.UID && before.(answer).version == object.ResourceVersion {
		return wanted.lacking(before.(answer).lacks), nil
	}
	lacks, err := r.read(ctx, name, wanted)
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil // it is going: the cache tells so soon
	case err != nil:
		return nil, outcome.Classify(fmt.Sprintf("%s %q", wanted.kind(), wanted.Name), err)
	}
	r.known.Add(key, answer{uid: object.UID, version: object.ResourceVersion, lacks: lacks})
	return wanted.lacking(lacks), nil
}

// read returns the first key that an object lacks.
func (r *References) read(ctx context.Context, name types.NamespacedName, wanted Reference) (string, error) {
	sizes := map[string]int{}
	if wanted.ConfigMap {
		object := &corev1.ConfigMap{}
		if err := r.live.Get(ctx, name, object); err != nil {
			return "", err
		}
		for key, value := range object.Data {
			sizes[key] = len(value)
		}
		for key, value := range object.BinaryData {
			sizes[key] = len(value)
		}
	} else {
		object := &corev1.Secret{}
		if err := r.live.Get(ctx, name, object); err != nil {
			return "", err
		}
		for key, value := range object.Data {
			sizes[key] = len(value)
		}
	}
	for _, key := range wanted.Keys {
		if size, found := sizes[key]; !found || wanted.Filled && size == 0 {
			return key, nil
		}
	}
	return "", nil
}

func (r Reference) lacking(key string) *outcome.Error {
	if key == "" {
		return nil
	}
	empty := ""
	if r.Filled {
		empty = ", or it is empty"
	}
	return outcome.Waitingf(0, slipwayv1alpha1.ReasonKeyNotFound, "%s %q has no key %q%s (%s)", r.kind(), r.Name, key, empty, r.Field)
}
