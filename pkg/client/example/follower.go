package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/pkg/client/clientset/versioned"
	"github.com/slipway-dev/slipway/pkg/client/informers/externalversions"
	listers "github.com/slipway-dev/slipway/pkg/client/listers/api/v1alpha1"
)

// follower prints what becomes of WebApps.
type follower struct {
	factory  externalversions.SharedInformerFactory
	informer cache.SharedIndexInformer
	lister   listers.WebAppLister
	// queue holds namespace/name. It merges changes that come faster than they are
	// worked off, and delays what failed.
	queue workqueue.TypedRateLimitingInterface[cache.ObjectName]
	out   io.Writer
	// printed is the last line about each WebApp. Only the worker uses it.
	printed map[cache.ObjectName]string
}

func newFollower(clientset versioned.Interface, namespace string, out io.Writer) *follower {
	// No resync: the watch reports every change, and repeating old ones tells nothing.
	factory := externalversions.NewSharedInformerFactoryWithOptions(clientset, 0, externalversions.WithNamespace(namespace))
	apps := factory.Slipway().V1alpha1().WebApps()
	return &follower{
		factory:  factory,
		informer: apps.Informer(),
		lister:   apps.Lister(),
		queue: workqueue.NewTypedRateLimitingQueueWithConfig(
			workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName](),
			workqueue.TypedRateLimitingQueueConfig[cache.ObjectName]{Name: "webapps"}),
		out:     out,
		printed: map[cache.ObjectName]string{},
	}
}

// run follows WebApps until the context ends.
func (f *follower) run(ctx context.Context) error {
	if _, err := f.informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    f.enqueue,
		UpdateFunc: func(_, object any) { f.enqueue(object) },
		DeleteFunc: f.enqueue,
	}); err != nil {
		return fmt.Errorf("follow WebApps: %w", err)
	}
	f.factory.StartWithContext(ctx)
	defer f.factory.Shutdown()
	if !cache.WaitForCacheSync(ctx.Done(), f.informer.HasSynced) {
		return errors.New("the first list of WebApps was interrupted")
	}

	var worker sync.WaitGroup
	worker.Go(func() {
		for f.next() {
		}
	})
	<-ctx.Done()
	f.queue.ShutDown()
	worker.Wait()
	return nil
}

// enqueue remembers that something about an object changed. What changed is seen
// when the object is read, so a missed or repeated event does no harm.
func (f *follower) enqueue(object any) {
	name, err := cache.DeletionHandlingObjectToName(object)
	if err != nil {
		utilruntime.HandleError(err)
		return
	}
	f.queue.Add(name)
}

// next works off one name. It returns false when the queue is shut down.
func (f *follower) next() bool {
	name, shutdown := f.queue.Get()
	if shutdown {
		return false
	}
	defer f.queue.Done(name)
	if err := f.show(name); err != nil {
		utilruntime.HandleError(fmt.Errorf("WebApp %s: %w", name, err))
		f.queue.AddRateLimited(name)
		return true
	}
	f.queue.Forget(name)
	return true
}

// show prints the state of one WebApp when it differs from what was printed last.
func (f *follower) show(name cache.ObjectName) error {
	line := ""
	app, err := f.lister.WebApps(name.Namespace).Get(name.Name)
	switch {
	case apierrors.IsNotFound(err):
		line = "gone"
	case err != nil:
		return fmt.Errorf("read from the cache: %w", err)
	default:
		line = describe(app)
	}
	if f.printed[name] == line {
		return nil
	}
	if _, err := fmt.Fprintf(f.out, "%s: %s\n", name, line); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	f.printed[name] = line
	if app == nil {
		delete(f.printed, name)
	}
	return nil
}

func describe(app *slipwayv1alpha1.WebApp) string {
	ready := meta.FindStatusCondition(app.Status.Conditions, slipwayv1alpha1.ConditionReady)
	if ready == nil || app.Status.ObservedGeneration < app.Generation {
		return "waits for the operator, wants " + app.Spec.Image
	}
	return fmt.Sprintf("%s, %d/%d replicas of %s", ready.Reason, app.Status.ReadyReplicas, app.Status.Replicas, app.Status.Image)
}
