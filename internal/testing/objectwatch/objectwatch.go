// Package objectwatch gives a test every event of the objects of a kind.
package objectwatch

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	watchtools "k8s.io/client-go/tools/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// watchFunc opens a watch.
type watchFunc func(context.Context, metav1.ListOptions) (watch.Interface, error)

// WatchWithContext implements cache.WatcherWithContext.
func (f watchFunc) WatchWithContext(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return f(ctx, options)
}

// Follow calls pass for every event from now on, one at a time. list is an empty list of the kind. A watch that the API server ends,
// as it does with one that falls behind, goes on where it was, so no event is missed. stop ends the calls: none comes after it returned.
// ended is closed when no event comes any more: after stop, or when the API server does not know any more where the watch was.
func Follow(
	ctx context.Context, from client.WithWatch, list client.ObjectList, pass func(watch.Event), options ...client.ListOption,
) (stop func(), ended <-chan struct{}, err error) {
	if err := from.List(ctx, list, append([]client.ListOption{client.Limit(1)}, options...)...); err != nil {
		return nil, nil, fmt.Errorf("list %T: %w", list, err)
	}
	open := watchFunc(func(ctx context.Context, raw metav1.ListOptions) (watch.Interface, error) {
		// A list of its own: the client reads from it what to watch.
		return from.Watch(ctx, list.DeepCopyObject().(client.ObjectList),
			append([]client.ListOption{&client.ListOptions{Raw: &raw}}, options...)...)
	})
	ctx, cancel := context.WithCancel(ctx)
	watcher, err := watchtools.NewRetryWatcherWithContext(ctx, list.GetResourceVersion(), open)
	if err != nil {
		cancel()
		return nil, nil, fmt.Errorf("watch %T: %w", list, err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for e := range watcher.ResultChan() {
			if _, is := e.Object.(client.Object); is {
				pass(e)
			}
		}
	}()
	return func() { cancel(); watcher.Stop(); <-done }, done, nil
}
