//go:build apitest

package app

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/monitor/config"
	"github.com/slipway-dev/slipway/internal/monitor/web"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// sink takes bytes from anybody, and remembers them.
type sink struct {
	mutex sync.Mutex
	bytes bytes.Buffer
}

// Write implements io.Writer.
func (s *sink) Write(p []byte) (int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.bytes.Write(p)
}

func (s *sink) text() string {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.bytes.String()
}

// monitor is all of it, with a webhook called on-call.
type monitor struct {
	*client
	config   config.Config
	webhook  *sink
	requests *sink
	log      *sink
	stop     func()
}

func startMonitor(t *testing.T, folder string) *monitor {
	t.Helper()
	m := &monitor{webhook: &sink{}, requests: &sink{}, log: &sink{}}
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprintln(m.requests, r.URL, r.Header)
		_, _ = io.Copy(m.webhook, r.Body)
	}))
	t.Cleanup(hook.Close)
	key := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(key, []byte("key-of-the-webhook"), 0o600); err != nil {
		t.Fatal(err)
	}
	open := false
	m.config.Listen = config.Listen{
		MetricsAuthentication: &open,
		Metrics:               fmt.Sprintf("127.0.0.1:%d", environment.FreePort(t)), Probes: config.Off, API: fmt.Sprintf("127.0.0.1:%d", environment.FreePort(t)),
	}
	m.config.Store.Folder = folder
	m.config.Webhooks = []config.Webhook{{Name: "on-call", URL: hook.URL, SecretFile: key}}
	m.client = &client{t, m.config.Listen.API, administrator(t)}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	rules := &Rules{}
	go func() {
		ended <- Run(ctx, env.Config, Options{
			Config: m.config, Log: slog.New(slog.NewTextHandler(m.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			Extension: struct {
				*Answers
				*Rules
			}{&Answers{Rules: rules, Page: web.Files()}, rules},
		})
	}()
	m.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("the monitor ends with %v", err)
		}
	})
	t.Cleanup(m.stop)
	environment.Eventually(t, func() error {
		answer := api.Rules{}
		if err := m.ask("rules", &answer); err != nil {
			return err
		}
		if !answer.View.Complete {
			return fmt.Errorf("the view is %+v", answer.View)
		}
		return nil
	})
	return m
}

// makeRule makes a rule that goes with the test.
func makeRule(t *testing.T, name string, spec slipwayv1alpha1.MonitorRuleSpec) *slipwayv1alpha1.MonitorRule {
	t.Helper()
	rule := &slipwayv1alpha1.MonitorRule{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	if err := env.Client.Create(t.Context(), rule); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = env.Client.Delete(context.Background(), rule) })
	return rule
}

// says waits until the status of a rule is about what it is now, and is as wanted.
func says(t *testing.T, rule *slipwayv1alpha1.MonitorRule, ready metav1.ConditionStatus, reason string, more func(*slipwayv1alpha1.MonitorRuleStatus) bool) {
	t.Helper()
	environment.Eventually(t, func() error {
		if err := env.Client.Get(t.Context(), kube.ObjectKeyFromObject(rule), rule); err != nil {
			return err
		}
		c := meta.FindStatusCondition(rule.Status.Conditions, slipwayv1alpha1.ConditionReady)
		if rule.Status.ObservedGeneration != rule.Generation || c == nil || c.Status != ready || c.Reason != reason || more != nil && !more(&rule.Status) {
			return fmt.Errorf("the status of %s is %+v", rule.Name, rule.Status)
		}
		return nil
	})
}

// webApps are the kind of the objects of these tests, which no operator changes.
var webApps = []slipwayv1alpha1.MonitoredKind{{Group: slipwayv1alpha1.GroupName, Kind: "WebApp"}}

func TestTheStatusOfARuleIsTrue(t *testing.T) {
	m := startMonitor(t, t.TempDir())
	namespace := env.Namespace(t)
	bad := newApp(namespace, "bad")
	bad.Spec.Image = "example.com/bad:1"
	if err := env.Client.Create(t.Context(), bad); err != nil {
		t.Fatal(err)
	}
	in := []string{namespace}
	rule := makeRule(t, "status-is-true", slipwayv1alpha1.MonitorRuleSpec{
		Kinds: webApps, Namespaces: in, When: "object.spec.image.contains('/bad:')", Severity: "Critical",
		Outputs: &slipwayv1alpha1.MonitorOutputs{Webhooks: []string{"on-call"}},
	})
	firing := func(n int32) func(*slipwayv1alpha1.MonitorRuleStatus) bool {
		return func(s *slipwayv1alpha1.MonitorRuleStatus) bool { return s.Firing == n && len(s.Objects) == int(n) }
	}
	says(t, rule, metav1.ConditionTrue, slipwayv1alpha1.ReasonEvaluating, firing(1))
	if o := rule.Status.Objects[0]; o.Name != "bad" || o.Namespace != namespace || o.Kind != "WebApp" || rule.Status.LastFired == nil {
		t.Errorf("the status is %+v", rule.Status)
	}
	events := &eventsv1.EventList{}
	environment.Eventually(t, func() error {
		if err := env.Client.List(t.Context(), events, kube.InNamespace(namespace)); err != nil || len(events.Items) != 1 {
			return fmt.Errorf("%d Events (%w)", len(events.Items), err)
		}
		return nil
	})
	if e := events.Items[0]; e.Regarding.UID != bad.UID || e.ReportingController != "slipway.dev/monitor" || e.Type != "Warning" {
		t.Errorf("the Event is %+v", e)
	}
	answer := api.Rules{}
	if err := m.ask("rules", &answer); err != nil || len(answer.Alarms) != 1 || answer.Alarms[0].Name != "bad" || answer.Alarms[0].Severity != "Critical" {
		t.Errorf("the API says %+v (%v)", answer, err)
	}
	for _, one := range answer.Rules {
		if one.Name == rule.Name && one.Firing != 1 {
			t.Errorf("the API says %+v", one)
		}
	}
	environment.Eventually(t, func() error {
		if !strings.Contains(m.webhook.text(), `"name":"bad"`) || !strings.Contains(m.requests.text(), "Slipway-Signature:[v1=") {
			return fmt.Errorf("the webhook got %s %s", m.requests.text(), m.webhook.text())
		}
		return nil
	})
	for _, step := range []struct {
		change func(*slipwayv1alpha1.MonitorRuleSpec)
		status metav1.ConditionStatus
		reason string
		more   func(*slipwayv1alpha1.MonitorRuleStatus) bool
	}{
		{func(s *slipwayv1alpha1.MonitorRuleSpec) { s.When = "objekt.x" }, metav1.ConditionFalse, slipwayv1alpha1.ReasonExpressionInvalid, firing(0)},
		{func(s *slipwayv1alpha1.MonitorRuleSpec) { s.When, s.Outputs.Webhooks = "true", []string{"nobody"} }, metav1.ConditionFalse, slipwayv1alpha1.ReasonUnknownWebhook, firing(1)},
		{func(s *slipwayv1alpha1.MonitorRuleSpec) { s.When, s.Outputs = "object.status.none == 1", nil }, metav1.ConditionFalse, slipwayv1alpha1.ReasonExpressionFailed, func(s *slipwayv1alpha1.MonitorRuleStatus) bool {
			c := meta.FindStatusCondition(s.Conditions, slipwayv1alpha1.ConditionEvaluationFailed)
			return c != nil && strings.Contains(c.Message, namespace+"/bad") && s.Firing == 0
		}},
		{func(s *slipwayv1alpha1.MonitorRuleSpec) { s.When, s.Message = "true", "object.status.none + ''" }, metav1.ConditionFalse, slipwayv1alpha1.ReasonExpressionFailed, nil},
		{func(s *slipwayv1alpha1.MonitorRuleSpec) {
			s.Message, s.Kinds = "", []slipwayv1alpha1.MonitoredKind{webApps[0], {Group: slipwayv1alpha1.GroupName, Kind: "WebAp"}}
		}, metav1.ConditionFalse, slipwayv1alpha1.ReasonKindNotFound, firing(1)},
		{func(s *slipwayv1alpha1.MonitorRuleSpec) { s.Kinds = webApps }, metav1.ConditionTrue, slipwayv1alpha1.ReasonEvaluating, func(s *slipwayv1alpha1.MonitorRuleStatus) bool {
			return firing(1)(s) && meta.FindStatusCondition(s.Conditions, slipwayv1alpha1.ConditionEvaluationFailed) == nil
		}},
		{func(s *slipwayv1alpha1.MonitorRuleSpec) { s.Suspend = true }, metav1.ConditionFalse, slipwayv1alpha1.ReasonSuspended, firing(0)},
	} {
		before := rule.DeepCopy()
		step.change(&rule.Spec)
		if err := env.Client.Patch(t.Context(), rule, kube.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
		says(t, rule, step.status, step.reason, step.more)
		stalled := meta.IsStatusConditionTrue(rule.Status.Conditions, slipwayv1alpha1.ConditionStalled)
		if want := step.reason == slipwayv1alpha1.ReasonExpressionInvalid || step.reason == slipwayv1alpha1.ReasonUnknownWebhook; stalled != want {
			t.Errorf("%s: Stalled is %v", step.reason, stalled)
		}
	}
	version := rule.ResourceVersion
	environment.Quiet(t, 2*time.Second, func() string {
		_ = env.Client.Get(t.Context(), kube.ObjectKeyFromObject(rule), rule)
		return rule.ResourceVersion
	})
	if rule.ResourceVersion != version {
		t.Errorf("at rest the status is written: %+v", rule.Status)
	}
}
