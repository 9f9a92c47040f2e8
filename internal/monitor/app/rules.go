package app

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	eventsclient "k8s.io/client-go/kubernetes/typed/events/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	kube "sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/monitor/alarm"
	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/monitor/monitorrule"
	"github.com/slipway-dev/slipway/internal/monitor/recorder"
	monitorserver "github.com/slipway-dev/slipway/internal/monitor/server"
	"github.com/slipway-dev/slipway/internal/monitor/supervisor"
)

const (
	// firstRules is how long the rules may take to be read before anything is recorded. Without them it begins all the same.
	firstRules = 10 * time.Second
	// rulesPause is how long to wait before the rules are followed again, after that has failed.
	rulesPause = 15 * time.Second
	// settled is how long a kind must have been live before its timers fire: what happened before is known then.
	settled = 2 * time.Second
)

// Rules is the half of an Extension that evaluates rules, and tells of alarms. It says what there is to say about rules, too.
type Rules struct {
	alarms *alarm.Alarms
}

var _ monitorserver.Rules = (*Rules)(nil)

// Observer reads what was stored of rules, and the rules, as far as the API server gives them.
func (x *Rules) Observer(ctx context.Context, parts Parts) (recorder.Observer, error) {
	webhooks, err := alarm.Webhooks(parts.Config.Webhooks)
	if err != nil {
		return nil, err
	}
	access := rest.CopyConfig(parts.Access)
	access.QPS = -1
	events, err := eventsclient.NewForConfig(access)
	if err != nil {
		return nil, err
	}
	objects, err := metadata.NewForConfig(access)
	if err != nil {
		return nil, err
	}
	instance, _ := os.Hostname()
	x.alarms, err = alarm.New(ctx, alarm.Options{
		Store: parts.Store, Webhooks: webhooks, Events: events, Namespaces: objects.Resource(namespacesResource), Instance: instance,
		Clock: clock.RealClock{}, Log: parts.Log, Registry: parts.Registry,
	})
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	if err := x.readRules(ctx, access); err != nil {
		parts.Log.Warn("the rules are not read yet: what happens until then is shown to them later", "error", err.Error())
	}
	return x.alarms, nil
}

// readRules tells the rules that there are, so that they see what is recorded from the first change on.
func (x *Rules) readRules(ctx context.Context, access *rest.Config) error {
	ctx, cancel := context.WithTimeout(ctx, firstRules)
	defer cancel()
	direct, err := kube.New(access, kube.Options{Scheme: ruleScheme()})
	if err != nil {
		return err
	}
	list := &slipwayv1alpha1.MonitorRuleList{}
	if err := direct.List(ctx, list); err != nil {
		return err
	}
	x.alarms.Replace(list.Items)
	return nil
}

// Run follows the rules, delivers messages, and lets timers fire, until the context ends.
func (x *Rules) Run(ctx context.Context, parts Parts) error {
	var group sync.WaitGroup
	defer group.Wait()
	group.Go(func() { x.alarms.Run(ctx, parts.Recorder, covered(parts.CoverageOf, clock.RealClock{})) })
	group.Go(func() { x.followRules(ctx, parts) })
	return nil
}

// followRules runs the controller. While the definition of MonitorRules is not there, it is tried again.
func (x *Rules) followRules(ctx context.Context, parts Parts) {
	for ctx.Err() == nil {
		if err := x.control(ctx, parts); err != nil && ctx.Err() == nil {
			parts.Log.Error("rules are not followed: it is tried again", "error", err.Error())
		}
		timer := clock.RealClock{}.NewTimer(rulesPause)
		select {
		case <-ctx.Done():
		case <-timer.C():
		}
		timer.Stop()
	}
}

func (x *Rules) control(ctx context.Context, parts Parts) error {
	access := rest.CopyConfig(parts.Access)
	access.QPS = -1
	manager, err := ctrl.NewManager(access, ctrl.Options{
		Scheme: ruleScheme(), Metrics: server.Options{BindAddress: "0"}, HealthProbeBindAddress: "0", LeaderElection: false,
		Logger: logr.FromSlogHandler(parts.Log.Handler()),
	})
	if err != nil {
		return err
	}
	if err := monitorrule.Setup(manager, monitorrule.Options{Engine: x.alarms, Registry: parts.Registry}); err != nil {
		return err
	}
	return manager.Start(ctx)
}

func ruleScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, slipwayv1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			panic(err) // of a fixed list of types: never fails
		}
	}
	return scheme
}

// covered reports whether every change of a kind is seen as it happens, for long enough that what happened before is known.
func covered(
	coverageOf func(schema.GroupResource) (supervisor.KindCoverage, bool), clock clock.PassiveClock,
) func(schema.GroupResource) bool {
	return func(kind schema.GroupResource) bool {
		k, known := coverageOf(kind)
		return known && k.State == supervisor.Live && k.Lag < settled && clock.Since(k.Since) >= settled
	}
}

// Rules implements the Rules of the server.
func (x *Rules) Rules(ctx context.Context) ([]api.Rule, error) {
	if x.alarms == nil {
		return nil, nil
	}
	return x.alarms.Rules(ctx)
}

// Alarms implements the Rules of the server.
func (x *Rules) Alarms(ctx context.Context) ([]monitorserver.Alarm, error) {
	if x.alarms == nil {
		return nil, nil
	}
	return x.alarms.Alarms(ctx)
}
