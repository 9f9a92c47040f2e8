package monitorrule

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit"
	"github.com/slipway-dev/slipway/internal/kit/status"
	"github.com/slipway-dev/slipway/internal/monitor/rule"
)

// Engine evaluates rules.
type Engine interface {
	// Replace tells all rules there are, Put a rule, and Remove that one is gone.
	Replace(all []slipwayv1alpha1.MonitorRule)
	Put(m *slipwayv1alpha1.MonitorRule) []rule.Problem
	Remove(name string)
	// Status says how a rule does, and UnknownWebhooks which of some names are not configured.
	Status(uid types.UID) rule.Status
	UnknownWebhooks(names []string) []string
	// UnknownKinds says of which kinds the monitor knows nothing. There are more when their definitions come. With
	// an error it is what was known before.
	UnknownKinds(ctx context.Context, kinds []slipwayv1alpha1.MonitoredKind) ([]string, error)
	// Changed waits until the status of rules changes, and returns their names.
	Changed(ctx context.Context) ([]string, error)
}

// Options configures the controller.
type Options struct {
	// Engine evaluates the rules. Required.
	Engine Engine
	// Registry takes the metrics. Required.
	Registry prometheus.Registerer
	// CountsEvery is how often the status of a rule is written for nothing but numbers. Default: 10 s.
	CountsEvery time.Duration
	// Clock tells the time. Default: the system's.
	Clock clock.WithTicker
}

const countsEvery = 10 * time.Second

// Setup registers the controller with the manager.
func Setup(mgr ctrl.Manager, options Options) error {
	if options.Clock == nil {
		options.Clock = clock.RealClock{}
	}
	if options.CountsEvery <= 0 {
		options.CountsEvery = countsEvery
	}
	registerMetrics(options.Registry, mgr.GetCache())
	news := &news{
		engine: options.Engine, clock: options.Clock, every: options.CountsEvery, reports: make(chan event.GenericEvent),
		last: map[string]time.Time{},
	}
	if err := mgr.Add(news); err != nil {
		return fmt.Errorf("follow how rules do: %w", err)
	}
	if err := mgr.Add(manager.RunnableFunc(func(ctx context.Context) error { return reportAll(ctx, mgr, options.Engine) })); err != nil {
		return fmt.Errorf("tell all rules: %w", err)
	}
	reconciler := &Reconciler{engine: options.Engine, kit: kit.New(mgr, kit.Options{
		FieldManager: FieldManager, Clock: options.Clock, News: status.News{
			Bad: []string{slipwayv1alpha1.ConditionStalled, slipwayv1alpha1.ConditionEvaluationFailed},
		},
	})}
	// The monitor makes a manager anew when one has ended.
	again := true
	return ctrl.NewControllerManagedBy(mgr).
		Named("monitorrule").
		For(&slipwayv1alpha1.MonitorRule{}).
		WatchesRawSource(source.Channel(news.reports, &handler.EnqueueRequestForObject{})).
		WithOptions(controller.Options{SkipNameValidation: &again}).
		Complete(reconciler)
}

// reportAll reports all rules once the cache has them: before that nobody knows that one is gone.
func reportAll(ctx context.Context, mgr ctrl.Manager, engine Engine) error {
	list := &slipwayv1alpha1.MonitorRuleList{}
	if err := mgr.GetCache().List(ctx, list); err != nil { // waits for them
		return fmt.Errorf("list the rules: %w", err)
	}
	engine.Replace(list.Items)
	<-ctx.Done()
	return nil
}

// news tells the controller that the status of a rule has changed, each at most once in a while.
type news struct {
	engine  Engine
	clock   clock.WithTicker
	every   time.Duration
	reports chan event.GenericEvent
	// last is when a rule was last told. waiting are those that have to wait.
	last    map[string]time.Time
	waiting map[string]bool
}

// Start implements manager.Runnable.
func (n *news) Start(ctx context.Context) error {
	changed := make(chan []string)
	go func() {
		defer close(changed)
		for {
			names, err := n.engine.Changed(ctx)
			if err != nil {
				return
			}
			select {
			case changed <- names:
			case <-ctx.Done():
				return
			}
		}
	}()
	ticker := n.clock.NewTicker(n.every / 10)
	defer ticker.Stop()
	n.waiting = map[string]bool{}
	for {
		select {
		case <-ctx.Done():
			return nil
		case names, open := <-changed:
			if !open {
				return nil
			}
			for _, name := range names {
				n.waiting[name] = true
			}
		case <-ticker.C():
		}
		n.report(ctx)
	}
}

// report reports the rules that have waited long enough.
func (n *news) report(ctx context.Context) {
	now := n.clock.Now()
	for name, at := range n.last {
		if now.Sub(at) >= n.every && !n.waiting[name] {
			delete(n.last, name)
		}
	}
	for name := range n.waiting {
		if at, reported := n.last[name]; reported && now.Sub(at) < n.every {
			continue
		}
		select {
		case n.reports <- event.GenericEvent{Object: &slipwayv1alpha1.MonitorRule{ObjectMeta: metav1.ObjectMeta{Name: name}}}:
			n.last[name] = now
			delete(n.waiting, name)
		case <-ctx.Done():
			return
		}
	}
}
