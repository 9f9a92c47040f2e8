package apply

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// freshMemory bounds how many objects a Freshness remembers: entries of about 200 bytes.
const freshMemory = 65536

// Freshness keeps a stale cache from deciding what is written. The operator that led before
// may have acted on more than the cache of this one shows yet.
//
// Each object is compared with the API server once, before something is written because of
// it. What the cache shows later can only be newer. Nothing is read where nothing is written.
//
// A version that was written since this operator leads needs no comparison: the earlier leader
// has seen nothing newer. The operator's own first write of a kind is such a version, and so
// is every later one. So nothing is read for objects that are made or changed after that.
//
// Each kind has such a version of its own, because the versions of two kinds do not compare:
// each kind may be kept in its own etcd (--etcd-servers-overrides), which counts for itself.
// The operator never writes some kinds, such as Secrets: there, each object is compared.
//
// No reconcile waits until all caches have reached those versions. Every write in the cluster
// counts them up, and the cache of a kind that nobody changes hears of it once a minute.
type Freshness struct {
	client client.Client
	live   client.Reader
	// known are objects by UID. True: the cache has shown it as it was. False: it is in
	// doubt, at whatever version. Forgetting the former costs a live read.
	known *lru.Cache

	mu sync.RWMutex // guards begin
	// begin are the resource versions that this operator wrote first, by kind.
	begin map[schema.GroupKind]int64
}

// NewFreshness returns a Freshness that trusts nothing yet. live reads past the cache.
func NewFreshness(cached client.Client, live client.Reader) *Freshness {
	return &Freshness{client: cached, live: live, known: lru.New(freshMemory), begin: map[schema.GroupKind]int64{}}
}

// Wrote takes an object at a version that the operator's own request has made. A create makes
// one. An update makes one when it is locked to the version before, and changes something. An
// update without a lock proves nothing: where it changes nothing, the API server answers with
// the version of the last writer, and that may be the earlier leader.
func (f *Freshness) Wrote(object client.Object) {
	kind, version, ok := f.versionOf(object)
	if !ok {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.begin[kind] == 0 {
		f.begin[kind] = version
	}
}

// Saw takes an object that the API server has just answered with. The cache must not show an
// older version of it. It never does for the answer to a write: reads wait for it.
func (f *Freshness) Saw(object client.Object) {
	if !f.isNew(object) {
		f.known.Add(object.GetUID(), true)
	}
}

// isNew reports whether the cache shows an object as nobody from before has seen it.
func (f *Freshness) isNew(object client.Object) bool {
	kind, version, ok := f.versionOf(object)
	f.mu.RLock()
	defer f.mu.RUnlock()
	begin := f.begin[kind]
	return ok && begin > 0 && version >= begin
}

// versionOf returns the version of an object as a number. It compares with those of the same
// kind alone.
func (f *Freshness) versionOf(object client.Object) (kind schema.GroupKind, version int64, ok bool) {
	is, err := f.client.GroupVersionKindFor(object)
	if err != nil {
		return kind, 0, false
	}
	version, err = strconv.ParseInt(object.GetResourceVersion(), 10, 64)
	return is.GroupKind(), version, err == nil
}

// Invalidate puts objects in doubt: each is compared with the API server before it is
// trusted again. One without a UID does not exist for the cache, and is left out.
func (f *Freshness) Invalidate(objects ...client.Object) {
	for _, object := range objects {
		if object.GetUID() != "" {
			f.known.Add(object.GetUID(), false)
		}
	}
}

// Confirm returns an error while the cache does not show the objects as they are. One
// without a UID does not exist for the cache: it is compared every time.
func (f *Freshness) Confirm(ctx context.Context, objects ...client.Object) error {
	for _, object := range objects {
		if err := f.confirm(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

func (f *Freshness) confirm(ctx context.Context, object client.Object) error {
	if object.GetUID() == "" {
		return f.compare(ctx, object)
	}
	fresh, known := f.known.Get(object.GetUID())
	if known && fresh.(bool) || !known && f.isNew(object) {
		return nil
	}
	if err := f.compare(ctx, object); err != nil {
		return err
	}
	f.known.Add(object.GetUID(), true)
	return nil
}

// compare returns an error when the cache does not show an object as the API server has
// it.
func (f *Freshness) compare(ctx context.Context, cached client.Object) error {
	kind, err := f.client.GroupVersionKindFor(cached)
	if err != nil {
		return err
	}
	live := &metav1.PartialObjectMetadata{}
	live.SetGroupVersionKind(kind)
	subject := fmt.Sprintf("%s %q", kind.Kind, cached.GetName())
	if err := f.live.Get(ctx, client.ObjectKeyFromObject(cached), live); client.IgnoreNotFound(err) != nil {
		return outcome.Classify(subject, err)
	}
	if live.ResourceVersion != cached.GetResourceVersion() {
		return outcome.StaleCache(subject)
	}
	return nil
}

type usedKey struct{}

// Using says what else is made into the children, as the cache shows it, such as a Secret.
// It is confirmed before a write, like the owner: each kind may be stale for itself.
func Using(ctx context.Context, objects ...client.Object) context.Context {
	return context.WithValue(ctx, usedKey{}, objects)
}

// confirm returns an error while the cache does not show the owner, and what is used, as
// they are. live compares the owner even where it once was fresh.
func (a *Applier) confirm(ctx context.Context, owner client.Object, live bool) error {
	if a.Fresh == nil {
		return nil
	}
	if live {
		a.Fresh.Invalidate(owner)
	}
	if err := a.Fresh.Confirm(ctx, owner); err != nil {
		return err
	}
	used, _ := ctx.Value(usedKey{}).([]client.Object)
	return a.Fresh.Confirm(ctx, used...)
}

// failed returns the error of a write about a child. One that the API server has not
// refused may have been made all the same, and the cache may not show it yet. If the owner
// then asks for what it asked for before, nothing is left to write, and status would call
// an object ready that is another one by now. So both are in doubt.
func (a *Applier) failed(err error, owner, child client.Object) error {
	var answer apierrors.APIStatus
	refused := errors.As(err, &answer) && answer.Status().Code >= 400 && answer.Status().Code < 500
	if err != nil && !refused && a.Fresh != nil {
		a.Fresh.Invalidate(owner, child)
	}
	return err
}
