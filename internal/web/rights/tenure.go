package rights

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/cache"

	"github.com/slipway-dev/slipway/internal/web/failure"
)

const (
	// NamespaceFor is how long it counts which namespace has a name. So long at most, a right in one that is gone is taken for a right
	// in the one that has the name now.
	NamespaceFor = 2 * time.Second
	// rememberedNamespaces bounds how many are kept.
	rememberedNamespaces = 10_000
)

// Tenure is a namespace as it is now. A namespace that was deleted and made again under the same name is another one, with another
// UID: nothing of the one before belongs to it.
type Tenure struct {
	UID types.UID
	// Created is its creationTimestamp, in whole seconds.
	Created time.Time
	// ResourceVersion is that of the namespace when it was read, so it is not older than its creation.
	ResourceVersion string
}

// Share is how much of a kind in a namespace may be seen. The zero value is nothing.
type Share struct {
	// All is everything, of whatever namespace that had the name.
	All bool
	// Of is what belongs to the namespace as it is now.
	Of *Tenure
}

// Namespaces reads the metadata of namespaces. The metadata client of client-go does.
type Namespaces interface {
	Get(ctx context.Context, name string, options metav1.GetOptions, subresources ...string) (*metav1.PartialObjectMetadata, error)
}

// namespaces knows which namespace has a name now. They are read, not watched: a watch may be behind without knowing it.
type namespaces struct {
	read  Namespaces
	known *cache.LRUExpireCache
}

func newNamespaces(o *Options) *namespaces {
	return &namespaces{read: o.Namespaces, known: cache.NewLRUExpireCacheWithClock(rememberedNamespaces, o.Clock)}
}

// remembered returns what get returned a moment ago.
func (n *namespaces) remembered(name string) (*Tenure, bool) {
	found, ok := n.known.Get(name)
	if !ok {
		return nil, false
	}
	return found.(*Tenure), true
}

// get reads the namespace that has a name, nil if there is none.
func (n *namespaces) get(ctx context.Context, name string) (*Tenure, error) {
	read, err := n.read.Get(ctx, name, metav1.GetOptions{})
	var found *Tenure
	switch {
	case err == nil:
		found = &Tenure{UID: read.UID, Created: read.CreationTimestamp.Time, ResourceVersion: read.ResourceVersion}
	case apierrors.IsNotFound(err):
	case ctx.Err() != nil:
		return nil, ctx.Err()
	default:
		return nil, failure.New(failure.Unavailable, "the API server could not be asked which namespace you may see")
	}
	n.known.Add(name, found, NamespaceFor)
	return found, nil
}
