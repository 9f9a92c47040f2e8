//go:build apitest

package webapp_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// usesPassword makes a WebApp use one key of the Secret db, and all of the ConfigMap files.
func usesPassword(a *slipwayv1alpha1.WebApp) {
	a.Spec.EnvFrom = []slipwayv1alpha1.EnvFromSource{{SecretRef: &slipwayv1alpha1.LocalReference{Name: "db"}, Keys: []string{"PASSWORD"}}}
	a.Spec.Files = []slipwayv1alpha1.FileSource{{ConfigMapRef: &slipwayv1alpha1.LocalReference{Name: "files"}, MountPath: "/etc/shop"}}
}

func (f *fixture) configMap(data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "files", Namespace: f.namespace}, Data: data}
}

func configHash(d *appsv1.Deployment) string {
	return d.Spec.Template.Annotations[slipwayv1alpha1.AnnotationConfigHash]
}

func (f *fixture) withConfig() *slipwayv1alpha1.WebApp {
	f.Helper()
	f.create(f.secret("db", map[string]string{"PASSWORD": "one", "USER": "u"}))
	f.create(f.configMap(map[string]string{"shop.conf": "a"}))
	return f.running(usesPassword)
}

func TestPodsRestartWhenAKeyTheyUseChanges(t *testing.T) {
	env.StartOperator(t, nil)
	changes := map[string]struct {
		change   func(*fixture)
		restarts bool
	}{
		"used key of a Secret": {func(f *fixture) {
			update(f, f.secret("db", nil), func(s *corev1.Secret) { s.Data["PASSWORD"] = []byte("two") })
		}, true},
		"other key of a Secret": {func(f *fixture) {
			update(f, f.secret("db", nil), func(s *corev1.Secret) { s.Data["USER"] = []byte("two") })
		}, false},
		"new key of a ConfigMap used whole": {func(f *fixture) {
			update(f, f.configMap(nil), func(m *corev1.ConfigMap) { m.Data["more.conf"] = "b" })
		}, true},
		"label of a Secret": {func(f *fixture) {
			update(f, f.secret("db", nil), func(s *corev1.Secret) { s.Labels = map[string]string{"a": "b"} })
		}, false},
		"1,000 changes of others": {func(f *fixture) {
			other := f.secret("other", map[string]string{"PASSWORD": "x"})
			f.create(other)
			for i := range 1000 {
				update(f, other, func(s *corev1.Secret) { s.Data["PASSWORD"] = fmt.Append(nil, i) })
			}
		}, false},
		"deletion": {func(f *fixture) {
			f.delete(f.secret("db", nil))
			f.waitFor(slipwayv1alpha1.ConditionDegraded, metav1.ConditionTrue, slipwayv1alpha1.ReasonSecretNotFound)
		}, false},
		"deletion and the same again": {func(f *fixture) {
			f.delete(f.secret("db", nil))
			f.waitFor(slipwayv1alpha1.ConditionDegraded, metav1.ConditionTrue, slipwayv1alpha1.ReasonSecretNotFound)
			f.create(f.secret("db", map[string]string{"PASSWORD": "one"}))
			f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, "")
		}, false},
	}
	for name, tc := range changes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.withConfig()
			before := f.settle()
			tc.change(f)
			if tc.restarts {
				f.deployed(func(d *appsv1.Deployment) error {
					if configHash(d) == configHash(before) {
						return fmt.Errorf("the pod template has not changed")
					}
					return nil
				})
				f.rollOut()
				return
			}
			after := f.settle()
			if err := equal(before.Spec.Template, after.Spec.Template); err != nil {
				t.Errorf("the pods were restarted: %v", err)
			}
		})
	}
}

func TestMissingConfigIsNamedAndStartsWithoutHelpWhenItComes(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.create(f.app(usesPassword))

	message := func(reason string) string {
		app := f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, reason)
		return meta.FindStatusCondition(app.Status.Conditions, "Ready").Message
	}
	if got, want := message(slipwayv1alpha1.ReasonSecretNotFound), `Secret "db" does not exist (spec.envFrom[0].secretRef)`; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
	f.create(f.secret("db", map[string]string{"USER": "u"}))
	if got, want := message(slipwayv1alpha1.ReasonKeyNotFound), `Secret "db" has no key "PASSWORD" (spec.envFrom[0].secretRef)`; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
	update(f, f.secret("db", nil), func(s *corev1.Secret) { s.Data["PASSWORD"] = []byte("one") })
	if got, want := message(slipwayv1alpha1.ReasonConfigMapNotFound), `ConfigMap "files" does not exist (spec.files[0].configMapRef)`; got != want {
		t.Errorf("message %q, want %q", got, want)
	}
	if err := f.get("shop", &appsv1.Deployment{}); err == nil {
		t.Error("pods were started without their config")
	}
	f.create(f.configMap(map[string]string{"shop.conf": "a"}))
	before := f.deployment()
	f.rollOut()
	if err := equal(before.Spec.Template, f.settle().Spec.Template); err != nil {
		t.Errorf("the pods were started twice: %v", err)
	}
}

func TestOptionalConfigMayBeMissing(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.create(f.app(usesPassword, func(a *slipwayv1alpha1.WebApp) {
		a.Spec.EnvFrom[0].Optional, a.Spec.Files[0].Optional = true, true
	}))
	before := f.deployment()
	f.rollOut()
	f.create(f.secret("db", map[string]string{"PASSWORD": "one"}))
	f.deployed(func(d *appsv1.Deployment) error {
		if configHash(d) == configHash(before) {
			return fmt.Errorf("the pods did not pick up the late Secret")
		}
		return nil
	})
}

// That a key is missing is not forgotten when the operator restarts: what was made without
// it, and needs it now, waits for it.
func TestAMissingKeyIsRememberedByARestartedOperator(t *testing.T) {
	f := newFixture(t)
	first := env.StartOperator(t, nil, f.namespace)
	f.create(f.secret("db", map[string]string{"USER": "u"}))
	app := f.running(func(a *slipwayv1alpha1.WebApp) {
		a.Spec.EnvFrom = []slipwayv1alpha1.EnvFromSource{{
			SecretRef: &slipwayv1alpha1.LocalReference{Name: "db"}, Keys: []string{"PASSWORD", "USER"}, Optional: true,
		}}
	})
	before := f.settle()
	first.Stop(t)
	second := env.StartOperator(t, nil, f.namespace)
	update(f, app, func(a *slipwayv1alpha1.WebApp) { a.Spec.EnvFrom[0].Optional = false })
	missing := func() {
		t.Helper()
		waiting := f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, slipwayv1alpha1.ReasonKeyNotFound)
		if got, want := meta.FindStatusCondition(waiting.Status.Conditions, "Ready").Message, `Secret "db" has no key "PASSWORD" (spec.envFrom[0].secretRef)`; got != want {
			t.Errorf("message %q, want %q", got, want)
		}
		if err := equal(before.Spec.Template, f.settle().Spec.Template); err != nil {
			t.Errorf("pods were started without the key: %v", err)
		}
	}
	missing()
	second.Stop(t)
	third := env.StartOperator(t, nil, f.namespace)
	defer third.Stop(t)
	missing()
	update(f, f.secret("db", nil), func(s *corev1.Secret) { s.Data["PASSWORD"] = []byte("one") })
	f.deployed(func(d *appsv1.Deployment) error {
		if configHash(d) == configHash(before) {
			return fmt.Errorf("the pod template has not changed")
		}
		return nil
	})
}

// A new image that needs a missing Secret does not disturb the pods that run.
func TestAChangeWaitsForItsConfig(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	app := f.running()
	update(f, app, func(a *slipwayv1alpha1.WebApp) {
		a.Spec.Image = "registry.example.com/shop:2"
		a.Spec.EnvFrom = []slipwayv1alpha1.EnvFromSource{{SecretRef: &slipwayv1alpha1.LocalReference{Name: "db"}}}
	})
	f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, slipwayv1alpha1.ReasonSecretNotFound)
	if err := runsImage(goodImage)(f.settle()); err != nil {
		t.Error(err)
	}
	f.create(f.secret("db", map[string]string{"A": "1"}))
	f.deployed(runsImage("registry.example.com/shop:2"))
	f.rollOut()
}

// A configuration that breaks the pods is undone as far as it can be: the pods that
// have not restarted yet go on.
func TestAConfigThatBreaksThePodsIsRolledBack(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.withConfig()
	before := f.settle()
	update(f, f.secret("db", nil), func(s *corev1.Secret) { s.Data["PASSWORD"] = []byte("wrong") })
	f.deployed(func(d *appsv1.Deployment) error {
		if configHash(d) == configHash(before) {
			return fmt.Errorf("the pod template has not changed")
		}
		return nil
	})
	f.stick(waitingContainer("InvalidImageName", ""))
	f.deployed(func(d *appsv1.Deployment) error { return equal(configHash(before), configHash(d)) })
	f.waitFor(slipwayv1alpha1.ConditionRolledBack, metav1.ConditionTrue, "")
	update(f, f.secret("db", nil), func(s *corev1.Secret) { s.Data["PASSWORD"] = []byte("right") })
	environment.Eventually(t, func() error { return f.cluster.RollOut(t.Context(), f.namespace, "shop") })
	f.rollOut()
}

// Pods would start with the earlier content, which the nodes keep, and nobody would know.
func TestAnImmutableConfigMapThatIsMadeAgainWithOtherContentIsTold(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	env.StartOperator(t, nil, f.namespace)
	immutable := func(content string) *corev1.ConfigMap {
		m := f.configMap(map[string]string{"shop.conf": content})
		m.Immutable = ptr(true)
		return m
	}
	f.create(f.secret("db", map[string]string{"PASSWORD": "one"}))
	f.create(immutable("a"))
	app := f.running(usesPassword)
	pod, before := f.podOf(app.Spec.Image), f.settle()
	f.delete(f.configMap(nil))
	// Times of objects have seconds. One that is made in the second of the pod may be the one that the pod has.
	environment.Eventually(t, func() error {
		if second := time.Now().Truncate(time.Second); !second.After(pod.CreationTimestamp.Time) {
			return errors.New("it would be as old as the pod")
		}
		return nil
	})
	f.create(immutable("b"))
	f.says("Ready", metav1.ConditionFalse, slipwayv1alpha1.ReasonImmutableReplaced, `ConfigMap "files" (spec.files[0].configMapRef) is immutable and was made again`)
	if after := f.settle(); configHash(after) != configHash(before) {
		t.Error("pods were restarted")
	}
	// Nothing runs any more, and nothing is kept.
	update(f, app, func(a *slipwayv1alpha1.WebApp) { a.Spec.Replicas = ptr[int32](0) })
	f.deployed(func(d *appsv1.Deployment) error {
		if *d.Spec.Replicas != 0 {
			return errors.New("it is not scaled down")
		}
		return nil
	})
	f.rollOut0()
	f.deployed(func(d *appsv1.Deployment) error {
		if configHash(d) == configHash(before) {
			return errors.New("the content is still the earlier one")
		}
		return nil
	})
}

// rollOut0 lets the cluster end all pods.
func (f *fixture) rollOut0() {
	f.Helper()
	environment.Eventually(f, func() error { return f.cluster.RollOut(f.Context(), f.namespace, "shop") })
}
