package kit

import (
	"context"
	"errors"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// filling is a cache of WebApps, as far as it is filled. A read waits for the rest.
type filling struct {
	cache.Cache
	synced         bool
	missing, fails error
}

type informer struct {
	cache.Informer
	synced bool
}

func (i informer) HasSynced() bool { return i.synced }

func (f filling) GetInformer(_ context.Context, _ client.Object, options ...cache.InformerGetOption) (cache.Informer, error) {
	asked := cache.InformerGetOptions{}
	for _, option := range options {
		option(&asked)
	}
	if !f.synced && (asked.BlockUntilSynced == nil || *asked.BlockUntilSynced) {
		return nil, errors.New("waited in vain")
	}
	return informer{synced: f.synced}, f.missing
}

func (f filling) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	if !f.synced {
		return errors.New("waited in vain")
	}
	into.(*slipwayv1alpha1.WebAppList).Items = make([]slipwayv1alpha1.WebApp, 2)
	return f.fails
}

func TestConditionsAreKnownWhenTheCacheIsFilled(t *testing.T) {
	failed := errors.New("no such index")
	tests := map[string]struct {
		cache filling
		known bool
		err   error
	}{
		"it is filled":        {filling{synced: true}, true, nil},
		"it is being filled":  {filling{}, false, nil},
		"there is none":       {filling{synced: true, missing: failed}, false, failed},
		"it cannot be listed": {filling{synced: true, fails: failed}, false, failed},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, known, err := cachedConditions(t.Context(), tc.cache, &slipwayv1alpha1.WebApp{}, &slipwayv1alpha1.WebAppList{})
			if known != tc.known || !errors.Is(err, tc.err) {
				t.Errorf("known: %v, error %v, want %v and %v", known, err, tc.known, tc.err)
			}
			if tc.known && len(got) != 2 {
				t.Errorf("%d objects, want 2", len(got))
			}
		})
	}
}
