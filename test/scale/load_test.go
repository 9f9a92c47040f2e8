//go:build scale

package scale

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
	"github.com/slipway-dev/slipway/internal/operator"
	"github.com/slipway-dev/slipway/internal/testing/requests"
)

// workers is how many requests are under way at a time: those that create WebApps, and
// apart from them those of the raw client. It is the controller's own number.
const workers = 10

// noDeadline is longer than a run. Most WebApps here have no pods, and when their deadline
// passes each gets another status: requests that would be counted where they do not belong.
const noDeadline = 24 * 60 * 60

// newApps returns n WebApps, spread over the namespaces.
func newApps(namespaces []string, n int, change ...func(*slipwayv1alpha1.WebApp)) []*slipwayv1alpha1.WebApp {
	apps := make([]*slipwayv1alpha1.WebApp, n)
	for i := range apps {
		apps[i] = &slipwayv1alpha1.WebApp{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("app-%05d", i), Namespace: namespaces[i%len(namespaces)]},
			Spec: slipwayv1alpha1.WebAppSpec{
				Image: "registry.example.com/shop:1", Port: 8080,
				Env:     map[string]slipwayv1alpha1.EnvValue{"LOG_LEVEL": "info", "REGION": "eu-1"},
				Rollout: &slipwayv1alpha1.Rollout{ProgressDeadlineSeconds: ptr.To[int32](noDeadline)},
			},
		}
		for _, c := range change {
			c(apps[i])
		}
	}
	return apps
}

// each calls do for every item, several at a time, and returns the errors.
func each[T any](items []T, do func(T) error) error {
	queue := make(chan T, len(items))
	for _, item := range items {
		queue <- item
	}
	close(queue)
	return drain(queue, do)
}

// drain calls do for everything that comes through the queue until it is closed.
func drain[T any](queue <-chan T, do func(T) error) error {
	var group sync.WaitGroup
	failed := make([]error, workers)
	for w := range workers {
		group.Go(func() {
			for item := range queue {
				if err := do(item); err != nil && failed[w] == nil {
					failed[w] = err
				}
			}
		})
	}
	group.Wait()
	return errors.Join(failed...)
}

// current reports whether the status of a WebApp speaks of its spec.
func current(e event) bool {
	app, ok := e.object.(*slipwayv1alpha1.WebApp)
	return ok && app.Generation > 0 && app.Status.ObservedGeneration == app.Generation
}

// allCurrent expects that n different WebApps are current.
func allCurrent(f *follower, n int) <-chan time.Time {
	seen := make(map[types.UID]bool, n)
	return f.expect(func(e event) bool {
		if current(e) {
			seen[e.object.GetUID()] = true
		}
		return len(seen) == n
	})
}

// converge creates the WebApps at once and returns how long it took from the first
// request until the status of all is current. With a raw client there is no operator
// and that client makes the children and the status.
func converge(t *testing.T, s *server, f *follower, apps []*slipwayv1alpha1.WebApp, raw *rawClient) time.Duration {
	t.Helper()
	done := allCurrent(f, len(apps))
	start := time.Now()
	created := make(chan *slipwayv1alpha1.WebApp, len(apps))
	rawDone := make(chan error, 1)
	go func() {
		if raw == nil {
			rawDone <- nil
			return
		}
		rawDone <- drain(created, func(app *slipwayv1alpha1.WebApp) error { return raw.write(t.Context(), app) })
	}()
	err := each(apps, func(app *slipwayv1alpha1.WebApp) error {
		if err := s.client.Create(t.Context(), app); err != nil {
			return err
		}
		created <- app
		return nil
	})
	close(created)
	if err := errors.Join(err, <-rawDone); err != nil {
		t.Fatalf("create WebApps: %v", err)
	}
	return receive(t, "the last status", done, 15*time.Minute).Sub(start)
}

// rawClient issues the writes of the operator and does nothing else: no cache, no
// look at what is there, no decision. It is what the operator's time is held against.
type rawClient struct {
	client  client.Client
	counter requests.Counter
}

func newRawClient(t *testing.T, s *server) *rawClient {
	t.Helper()
	raw := &rawClient{}
	config := rest.CopyConfig(s.config)
	raw.counter.Watch(config)
	direct, err := client.New(config, client.Options{Scheme: operator.Scheme()})
	if err != nil {
		t.Fatalf("make the raw client: %v", err)
	}
	raw.client = direct
	return raw
}

// write makes what the operator makes of a new WebApp, in the same order.
func (r *rawClient) write(ctx context.Context, app *slipwayv1alpha1.WebApp) error {
	revision := desired.RevisionOf(app.Spec, "")
	name, err := revision.Name(app)
	if err != nil {
		return err
	}
	if revision, err = revision.Applied(desired.NewTemplate(app, revision)); err != nil {
		return err
	}
	data, err := json.Marshal(revision)
	if err != nil {
		return err
	}
	if err := r.apply(ctx, app, desired.ControllerRevision(app, name, data, desired.DraftNumber), &appsv1.ControllerRevision{}); err != nil {
		return err
	}
	replicas := int32(1)
	deployment := desired.Deployment(desired.Inputs{App: app, Revision: revision, Replicas: &replicas})
	if err := r.apply(ctx, app, deployment, &appsv1.Deployment{}); err != nil {
		return err
	}
	if err := r.apply(ctx, app, desired.Service(app, app.Spec.Port), &corev1.Service{}); err != nil {
		return err
	}
	before := app.DeepCopy()
	app.Status = rawStatus(app)
	return r.client.Status().Patch(ctx, app, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
}

// named is an apply configuration.
type named interface{ GetName() *string }

// apply sends a configuration the cheapest way: the answer is decoded once.
func (r *rawClient) apply(ctx context.Context, app *slipwayv1alpha1.WebApp, configuration named, answer client.Object) error {
	raw, err := json.Marshal(configuration)
	if err != nil {
		return err
	}
	answer.SetNamespace(app.Namespace)
	answer.SetName(*configuration.GetName())
	return r.client.Patch(ctx, answer, client.RawPatch(types.ApplyPatchType, raw), client.FieldOwner(webapp.FieldManager))
}

// rawStatus is of the size of the operator's first status.
func rawStatus(app *slipwayv1alpha1.WebApp) slipwayv1alpha1.WebAppStatus {
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	revision := app.Name + "-0123456789"
	message := fmt.Sprintf("Deployment %q is rolling out revision %q", app.Name, revision)
	status := slipwayv1alpha1.WebAppStatus{
		ObservedGeneration: app.Generation,
		Selector:           slipwayv1alpha1.LabelWebApp + "=" + app.Name,
		ServiceURL:         desired.ServiceURL(app, app.Spec.Port),
		Image:              app.Spec.Image,
		Revision:           revision,
		Rollout:            &slipwayv1alpha1.RolloutStatus{Revision: revision, StartTime: now},
		Summary:            slipwayv1alpha1.WebAppSummary{Replicas: "0/1", Reason: slipwayv1alpha1.ReasonRolloutInProgress},
	}
	for _, conditionType := range []string{
		slipwayv1alpha1.ConditionReady, slipwayv1alpha1.ConditionAvailable,
		slipwayv1alpha1.ConditionProgressing, slipwayv1alpha1.ConditionDegraded,
	} {
		status.Conditions = append(status.Conditions, metav1.Condition{
			Type: conditionType, Status: metav1.ConditionFalse, ObservedGeneration: app.Generation, LastTransitionTime: now,
			Reason: slipwayv1alpha1.ReasonRolloutInProgress, Message: message,
		})
	}
	return status
}

// clear deletes everything in the namespaces. There is no garbage collector beside a
// bare API server.
func (s *server) clear(t *testing.T, namespaces []string) {
	t.Helper()
	err := each(namespaces, func(namespace string) error {
		for _, kind := range []client.Object{&slipwayv1alpha1.WebApp{}, &appsv1.Deployment{}, &corev1.Service{}, &appsv1.ControllerRevision{}} {
			if err := s.client.DeleteAllOf(t.Context(), kind, client.InNamespace(namespace)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatalf("clear the namespaces: %v", err)
	}
}
