//go:build e2e

package e2e

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/livecluster"
)

func TestAChangedKeyReachesThePodsAndNothingElseRestartsThem(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	// The demo shows the variable GREETING and the file /etc/demo/greeting.
	f.Create(
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "used"}, StringData: map[string]string{"GREETING": "one", "OTHER": "x"}},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "files"}, Data: map[string]string{"greeting": "eins", "other": "x"}},
	)
	f.Create(f.app(replicas(2), envFrom("used", "GREETING"), greetingFile()))
	f.ready()
	f.answers(f.serviceURL()+"/config", "env: one", "file: eins")

	t.Run("unused keys and 300 other objects", func(t *testing.T) {
		f := f.in(t)
		before := f.deployment().Generation
		f.setSecret("used", "OTHER", "y")
		f.setConfigMap("files", "other", "y")
		for i := range 150 {
			f.Create(secret(fmt.Sprintf("s-%d", i), "GREETING", "no"),
				&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("c-%d", i)}, Data: map[string]string{"greeting": "no"}})
		}
		f.forceReconcile()
		if after := f.deployment().Generation; after != before {
			t.Errorf("the Deployment went from generation %d to %d", before, after)
		}
	})

	t.Run("a used key of the Secret", func(t *testing.T) {
		f := f.in(t)
		load := f.traffic(f.serviceURL())
		f.setSecret("used", "GREETING", "two")
		f.showsEverywhere("env: two", "file: eins")
		load.Stop("a restart because of a Secret")
	})

	t.Run("a used key of the ConfigMap", func(t *testing.T) {
		f := f.in(t)
		load := f.traffic(f.serviceURL())
		f.setConfigMap("files", "greeting", "zwei")
		f.showsEverywhere("env: two", "file: zwei")
		load.Stop("a restart because of a ConfigMap")
	})

	if got := livecluster.Restarts(f.pods()); got != 0 {
		t.Errorf("containers restarted in place %d times", got)
	}
}

func TestAnApplicationStartsByItselfWhenItsSecretComes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Create(f.app(envFrom("late")))
	f.wait(has(slipwayv1alpha1.ConditionDegraded, slipwayv1alpha1.ReasonSecretNotFound, `Secret "late"`))
	if pods := f.pods(); len(pods) != 0 {
		t.Errorf("%d pods were started without the Secret", len(pods))
	}
	f.Create(secret("late", "GREETING", "at last"))
	f.ready()
	f.answers(f.serviceURL()+"/config", "env: at last")
	f.forceReconcile()
	if d := f.deployment(); d.Generation != 1 || livecluster.Restarts(f.pods()) != 0 {
		t.Errorf("the Deployment has generation %d and its pods restarted %d times, want 1 and 0", d.Generation, livecluster.Restarts(f.pods()))
	}
}

func TestPodsOutliveTheirSecret(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.Create(secret("db", "GREETING", "kept"))
	f.Create(f.app(envFrom("db")))
	f.ready()
	before, pod := f.deployment(), f.thePod()
	load := f.traffic(f.serviceURL())

	f.Delete(secretIn(f, "db"))
	f.wait(has(slipwayv1alpha1.ConditionDegraded, slipwayv1alpha1.ReasonSecretNotFound, `Secret "db"`, "spec.envFrom[0].secretRef"),
		is(slipwayv1alpha1.ConditionAvailable, metav1.ConditionTrue, ""))
	f.forceReconcile()
	load.Stop("a deleted Secret")

	f.Create(secret("db", "GREETING", "kept"))
	f.ready()
	if after := f.thePod(); after.UID != pod.UID || livecluster.Restarts([]corev1.Pod{*after}) != 0 {
		t.Errorf("pod %q was replaced by %q, or restarted", pod.Name, after.Name)
	}
	if after := f.deployment(); after.Generation != before.Generation {
		t.Errorf("the Deployment went from generation %d to %d", before.Generation, after.Generation)
	}
}

func (f *fixture) setSecret(name, key, value string) {
	f.Helper()
	update(f, secretIn(f, name), func(s *corev1.Secret) { s.StringData = map[string]string{key: value} })
}

func (f *fixture) setConfigMap(name, key, value string) {
	f.Helper()
	configMap := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.Namespace}}
	update(f, configMap, func(c *corev1.ConfigMap) { c.Data[key] = value })
}

// showsEverywhere waits until the application is ready and every pod of it shows the
// configuration. While a rollout ends, the pods are others at each look.
func (f *fixture) showsEverywhere(parts ...string) {
	f.Helper()
	f.answers(f.serviceURL()+"/config", parts...)
	f.ready()
	client := livecluster.NewHTTPClient()
	f.Eventually(func() error {
		for _, pod := range f.pods() {
			if err := f.answer(client, livecluster.Address(pod.Status.PodIP, 8080)+"/config", parts...); err != nil {
				return err
			}
		}
		return nil
	})
}

func greetingFile() func(*slipwayv1alpha1.WebApp) {
	return spec(func(s *slipwayv1alpha1.WebAppSpec) {
		s.Files = []slipwayv1alpha1.FileSource{{
			MountPath: "/etc/demo", Keys: []string{"greeting"},
			ConfigMapRef: &slipwayv1alpha1.LocalReference{Name: "files"},
		}}
	})
}

func secret(name, key, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{key: value}}
}

func secretIn(f *fixture, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.Namespace}}
}
