package optional

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// oneCache is the cache of one kind.
type oneCache struct {
	cache  cache.Cache
	client client.Client
	// watching tells how many of its watches have begun.
	watching int
	// stop ends the cache when it is closed.
	stop chan struct{}
}

// Find starts the caches of the kinds that the cluster has. It may be called again after an error, and at any time. What has
// not been found is looked for again; it is named in the log once.
func (k *Kinds) Find() error {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	there, err := k.look()
	if err != nil || there == nil {
		return err
	}
	clients := map[schema.GroupVersionKind]client.Client{}
	for _, of := range there {
		if k.caches[of] == nil {
			made, err := k.makeCache(k.kinds[of])
			if err != nil {
				return err
			}
			k.caches[of] = made
		}
		clients[of] = k.caches[of].client
	}
	// All can be read before the first event of any: what belongs together is seen together.
	k.running.Store(&clients)
	for _, of := range there {
		if err := k.startWatches(k.kinds[of], k.caches[of]); err != nil {
			return err
		}
		k.retire(k.older[of])
	}
	return nil
}

// retire ends the cache of an older version.
func (k *Kinds) retire(older schema.GroupVersionKind) {
	if in := k.caches[older]; in != nil {
		close(in.stop)
		delete(k.caches, older)
	}
}

// look returns the kinds that the cluster has, nil while a required one is missing.
func (k *Kinds) look() ([]schema.GroupVersionKind, error) {
	var there []schema.GroupVersionKind
	lacking := false
	for of := range k.kinds {
		if k.isOlder(of) {
			continue
		}
		found, err := k.served(of)
		if err != nil {
			return nil, err
		}
		if found.Empty() {
			lacking = lacking || k.required[of]
			k.logOnce(of, "the cluster does not have a kind, which is looked for from now on")
			continue
		}
		may, err := k.mayRead(found)
		if err != nil {
			return nil, err
		}
		if !may {
			lacking = lacking || k.required[of]
			k.logOnce(of, "the operator has no right to list and watch a kind, which is tried again from now on")
			continue
		}
		there = append(there, found)
	}
	if lacking {
		return nil, nil
	}
	return there, nil
}

// served returns a kind if the cluster has it, else its older version if the cluster has that, else nothing.
func (k *Kinds) served(of schema.GroupVersionKind) (schema.GroupVersionKind, error) {
	none := schema.GroupVersionKind{}
	if k.caches[of] != nil {
		return of, nil
	}
	_, err := k.mgr.GetRESTMapper().RESTMapping(of.GroupKind(), of.Version)
	if err == nil {
		return of, nil
	}
	if !meta.IsNoMatchError(err) {
		return none, fmt.Errorf("look for the kind %s: %w", of.Kind, err)
	}
	older, has := k.older[of]
	if !has {
		return none, nil
	}
	if older, err = k.served(older); err == nil && !older.Empty() {
		k.logOnce(older, "the cluster has only an older version of a kind, which is read until it has the newer one")
	}
	return older, err
}

// mayRead reports whether a kind may be read. A watch that is forbidden would hold up the operator.
func (k *Kinds) mayRead(of schema.GroupVersionKind) (bool, error) {
	if !k.options.MayBeForbidden || k.caches[of] != nil {
		return true, nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(of.GroupVersion().WithKind(of.Kind + "List"))
	ctx := context.Background() //nolint:forbidigo // registering is not part of a request
	err := k.mgr.GetAPIReader().List(ctx, list, client.Limit(1))
	if apierrors.IsForbidden(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("try to list the kind %s: %w", of.Kind, err)
	}
	return true, nil
}

// logOnce says something of a kind, once.
func (k *Kinds) logOnce(of schema.GroupVersionKind, what string) {
	if k.logged[notice{of, what}] {
		return
	}
	k.logged[notice{of, what}] = true
	k.mgr.GetLogger().Info(what, "kind", of.Kind, "apiVersion", of.GroupVersion().String())
}

func (k *Kinds) makeCache(of *kind) (*oneCache, error) {
	cached, err := k.options.NewCache(k.mgr.GetConfig(), cache.Options{
		HTTPClient: k.mgr.GetHTTPClient(), Scheme: k.mgr.GetScheme(), Mapper: k.mgr.GetRESTMapper(),
		DefaultNamespaces: k.options.Budget.Namespaces, ReaderFailOnMissingInformer: true,
		ByObject: map[client.Object]cache.ByObject{of.object: of.budget},
	})
	if err != nil {
		return nil, fmt.Errorf("make the cache of %T: %w", of.object, err)
	}
	ctx := context.Background() //nolint:forbidigo // registering is not part of a request
	if _, err := cached.GetInformer(ctx, of.object, cache.BlockUntilSynced(false)); err != nil {
		return nil, fmt.Errorf("make the cache of %T: %w", of.object, err)
	}
	for name, values := range of.indexes {
		if err := cached.IndexField(ctx, of.object, name, values); err != nil {
			return nil, fmt.Errorf("index %T by %s: %w", of.object, name, err)
		}
	}
	readYourWrites := true
	made, err := client.New(k.mgr.GetConfig(), client.Options{
		HTTPClient: k.mgr.GetHTTPClient(), Scheme: k.mgr.GetScheme(), Mapper: k.mgr.GetRESTMapper(),
		Cache: &client.CacheOptions{Reader: cached, EnableReadYourWritesConsistency: &readYourWrites},
	})
	if err != nil {
		return nil, fmt.Errorf("make the client of %T: %w", of.object, err)
	}
	stop := make(chan struct{})
	if err := k.mgr.Add(everywhere{cached, stop}); err != nil {
		return nil, fmt.Errorf("start the cache of %T: %w", of.object, err)
	}
	return &oneCache{cache: cached, client: made, stop: stop}, nil
}

// startWatches begins those that have not begun.
func (k *Kinds) startWatches(of *kind, in *oneCache) error {
	for _, w := range of.watches[in.watching:] {
		if err := w.controller(source.Kind(in.cache, of.object, w.handler, w.predicates...)); err != nil {
			return fmt.Errorf("watch %T: %w", of.object, err)
		}
		in.watching++
	}
	return nil
}

// everywhere is a cache that runs on the standby too, as the manager's own does. A cache that waited for the lead would hold
// up the watches on it, which are warmed up before.
type everywhere struct {
	cache.Cache

	stop <-chan struct{}
}

// GetCache is how the manager knows a cache.
func (e everywhere) GetCache() cache.Cache { return e.Cache }

// Start runs the cache until the manager ends, or it is stopped.
func (e everywhere) Start(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		select {
		case <-ctx.Done():
		case <-e.stop:
		}
	}()
	return e.Cache.Start(ctx)
}
