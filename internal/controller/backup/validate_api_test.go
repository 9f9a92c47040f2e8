//go:build apitest

package backup_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// warnings are those of the API server.
type warnings struct {
	mu    sync.Mutex
	texts []string
}

// HandleWarningHeader keeps a warning.
func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.texts = append(w.texts, text)
}

func (w *warnings) take() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	all := strings.Join(w.texts, "\n")
	w.texts = nil
	return all
}

func TestTheWebhookRefusesWhatTheSchemaCannotSee(t *testing.T) {
	f := newFixture(t)
	port := environment.FreePort(t)
	env.Webhooks(t, f.namespace, port)
	// Nobody answers yet, and nothing is held up: what is wrong comes in.
	f.backup(func(b *slipwayv1alpha1.Backup) {
		b.Spec.Schedule, b.Spec.DeletionPolicy, b.Finalizers = "0 0 31 2 *", slipwayv1alpha1.DeletionDelete, []string{"example.com/held"}
	})
	env.StartOperatorWith(t, func(_ *rest.Config, options *environment.Options) {
		options.WebhookPort, options.WebhookHost = port, "127.0.0.1"
	})
	// A reconcile says what nobody was there to refuse.
	f.wait(func(b *slipwayv1alpha1.Backup) error {
		return has(b, slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, slipwayv1alpha1.ReasonInvalid)
	})

	heard := &warnings{}
	config := rest.CopyConfig(env.Config)
	config.WarningHandler = heard
	asking, err := client.New(config, client.Options{Scheme: env.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	create := func(change func(*slipwayv1alpha1.BackupSpec)) error {
		backup := &slipwayv1alpha1.Backup{
			ObjectMeta: metav1.ObjectMeta{Name: "another", Namespace: f.namespace},
			Spec:       slipwayv1alpha1.BackupSpec{Source: "shop-data", Destination: "s3://bucket", Schedule: "0 2 * * *"},
		}
		change(&backup.Spec)
		return asking.Create(t.Context(), backup, client.DryRunAll)
	}
	// As soon as the API server trusts the operator.
	environment.Eventually(t, func() error {
		if err := create(func(s *slipwayv1alpha1.BackupSpec) { s.Schedule = "no" }); !apierrors.IsInvalid(err) {
			return fmt.Errorf("the answer is %w", errors.Join(err, errors.New("not refused")))
		}
		return nil
	})
	heard.take()
	for name, tc := range map[string]struct {
		change       func(*slipwayv1alpha1.BackupSpec)
		says, warned string
	}{
		"all is well":    {func(*slipwayv1alpha1.BackupSpec) {}, "", ""},
		"six fields":     {func(s *slipwayv1alpha1.BackupSpec) { s.Schedule = "0 0 2 * * *" }, "spec.schedule: Invalid value: \"0 0 2 * * *\" is not a cron expression: it has 6 fields", ""},
		"a zone":         {func(s *slipwayv1alpha1.BackupSpec) { s.TimeZone = "Europe/Atlantis" }, "spec.timeZone: Invalid value: \"Europe/Atlantis\"", ""},
		"a period":       {func(s *slipwayv1alpha1.BackupSpec) { s.RetentionPolicy = "30d1d" }, "spec.retentionPolicy: Invalid value: \"30d1d\" has the unit d twice", ""},
		"its own claim":  {func(s *slipwayv1alpha1.BackupSpec) { s.Destination = "pvc://shop-data" }, "spec.destination: Invalid value: pvc://shop-data is on PersistentVolumeClaim", ""},
		"a step too far": {func(s *slipwayv1alpha1.BackupSpec) { s.Schedule = "*/61 * * * *" }, "", `spec.schedule: "*/61" fires once in each hour`},
		"very often":     {func(s *slipwayv1alpha1.BackupSpec) { s.Schedule = "*/5 * * * *" }, "", "so close together"},
	} {
		t.Run(name, func(t *testing.T) {
			err := create(tc.change)
			switch {
			case tc.says == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.says != "" && (!apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.says)):
				t.Errorf("the answer is %v, want one that says %q", err, tc.says)
			}
			if reported := heard.take(); (reported == "") != (tc.warned == "") || !strings.Contains(reported, tc.warned) {
				t.Errorf("warned of %q, want %q", reported, tc.warned)
			}
		})
	}
	// What was wrong before is in nobody's way, and neither is its end.
	bad := &slipwayv1alpha1.Backup{}
	change := func(how func()) {
		t.Helper()
		environment.Eventually(t, func() error {
			if err := f.get("shop", bad); err != nil {
				return err
			}
			how()
			return asking.Update(t.Context(), bad)
		})
	}
	change(func() { bad.Labels = map[string]string{"a": "b"} })
	change(func() { bad.Spec.Suspend = true })
	if err := asking.Delete(t.Context(), bad); err != nil {
		t.Fatal(err)
	}
	change(func() { bad.Finalizers = nil })
	environment.Eventually(t, func() error {
		if err := f.get("shop", bad); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the Backup is still there: %w", err)
		}
		return nil
	})
}
