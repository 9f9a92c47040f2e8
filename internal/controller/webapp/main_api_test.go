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
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/truth"
	"github.com/slipway-dev/slipway/internal/testing/workload"
)

var env *environment.Environment

func TestMain(m *testing.M) { environment.Main(m, &env) }

// fixture is one test's namespace with the operator at work.
type fixture struct {
	*testing.T
	namespace string
	cluster   *workload.Cluster
}

func newFixture(t *testing.T) *fixture {
	return &fixture{T: t, namespace: env.Namespace(t), cluster: &workload.Cluster{Client: env.Client}}
}

// app returns the smallest WebApp, changed as asked.
func (f *fixture) app(change ...func(*slipwayv1alpha1.WebApp)) *slipwayv1alpha1.WebApp {
	app := &slipwayv1alpha1.WebApp{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: f.namespace},
		Spec:       slipwayv1alpha1.WebAppSpec{Image: "registry.example.com/shop:1", Port: 8080},
	}
	for _, c := range change {
		c(app)
	}
	return app
}

func (f *fixture) create(object client.Object) {
	f.Helper()
	if err := env.Client.Create(f.Context(), object); err != nil {
		f.Fatalf("create %T: %v", object, err)
	}
}

func (f *fixture) delete(objects ...client.Object) {
	f.Helper()
	for _, object := range objects {
		if err := env.Client.Delete(f.Context(), object); err != nil {
			f.Fatalf("delete %T %q: %v", object, object.GetName(), err)
		}
	}
}

// update changes the latest version of an object.
func update[T client.Object](f *fixture, object T, change func(T)) {
	f.Helper()
	environment.Eventually(f, func() error {
		if err := env.Client.Get(f.Context(), client.ObjectKeyFromObject(object), object); err != nil {
			return err
		}
		change(object)
		return env.Client.Update(f.Context(), object)
	})
}

// get reads a child of that name into object.
func (f *fixture) get(name string, object client.Object) error {
	return env.Client.Get(f.Context(), types.NamespacedName{Namespace: f.namespace, Name: name}, object)
}

func (f *fixture) deployment() *appsv1.Deployment {
	f.Helper()
	deployment := &appsv1.Deployment{}
	environment.Eventually(f, func() error { return f.get("shop", deployment) })
	return deployment
}

// deployed waits until the Deployment is as the check wants it.
func (f *fixture) deployed(check func(*appsv1.Deployment) error) *appsv1.Deployment {
	f.Helper()
	deployment := &appsv1.Deployment{}
	environment.Eventually(f, func() error {
		if err := f.get("shop", deployment); err != nil {
			return err
		}
		return check(deployment)
	})
	return deployment
}

func runsImage(image string) func(*appsv1.Deployment) error {
	return func(d *appsv1.Deployment) error {
		if got := d.Spec.Template.Spec.Containers[0].Image; got != image {
			return fmt.Errorf("the Deployment runs image %q, want %q", got, image)
		}
		return nil
	}
}

// rollOut lets the cluster start what the Deployment asks for, and waits until the
// WebApp is ready, with a good revision where anything runs.
func (f *fixture) rollOut() {
	f.Helper()
	f.wait(func(app *slipwayv1alpha1.WebApp) error {
		if err := f.cluster.RollOut(f.Context(), f.namespace, "shop"); err != nil {
			return err
		}
		if app.Status.Rollout != nil {
			return fmt.Errorf("revision %q is not good yet", app.Status.Rollout.Revision)
		}
		return has(app, slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, "")
	})
}

// running makes a WebApp and rolls it out.
func (f *fixture) running(change ...func(*slipwayv1alpha1.WebApp)) *slipwayv1alpha1.WebApp {
	f.Helper()
	app := f.app(change...)
	f.create(app)
	f.deployment()
	f.rollOut()
	return app
}

// rollOutImage rolls out another image of a WebApp.
func (f *fixture) rollOutImage(app *slipwayv1alpha1.WebApp, image string) {
	f.Helper()
	update(f, app, func(a *slipwayv1alpha1.WebApp) { a.Spec.Image = image })
	f.deployed(runsImage(image))
	f.rollOut()
}

// wait waits until the WebApp's status speaks of its current spec and check is content.
func (f *fixture) wait(check func(*slipwayv1alpha1.WebApp) error) *slipwayv1alpha1.WebApp {
	f.Helper()
	app := &slipwayv1alpha1.WebApp{}
	environment.Eventually(f, func() error {
		if err := f.get("shop", app); err != nil {
			return err
		}
		if err := check(app); err != nil {
			return err
		}
		if app.Status.ObservedGeneration != app.Generation {
			return errors.New("status speaks of an older generation")
		}
		return nil
	})
	if err := truth.Check(app); err != nil {
		f.Errorf("the status is not true: %v\n%+v", err, app.Status)
	}
	return app
}

// waitFor waits for a condition.
func (f *fixture) waitFor(conditionType string, status metav1.ConditionStatus, reason string) *slipwayv1alpha1.WebApp {
	f.Helper()
	return f.wait(func(app *slipwayv1alpha1.WebApp) error { return has(app, conditionType, status, reason) })
}

// has tells whether a condition has the status and, unless empty, the reason.
func has(app *slipwayv1alpha1.WebApp, conditionType string, status metav1.ConditionStatus, reason string) error {
	c := meta.FindStatusCondition(app.Status.Conditions, conditionType)
	if c == nil {
		return fmt.Errorf("no condition %s in %+v", conditionType, app.Status)
	}
	if c.Status != status || (reason != "" && c.Reason != reason) {
		return fmt.Errorf("%s is %s %s (%s), want %s %s", conditionType, c.Status, c.Reason, c.Message, status, reason)
	}
	return nil
}

// settle waits until neither the Deployment nor the WebApp changes any more.
func (f *fixture) settle() *appsv1.Deployment {
	f.Helper()
	deployment := &appsv1.Deployment{}
	environment.Quiet(f, 500*time.Millisecond, func() string {
		app := &slipwayv1alpha1.WebApp{}
		if f.get("shop", deployment) != nil || f.get("shop", app) != nil {
			return ""
		}
		return deployment.ResourceVersion + "/" + app.ResourceVersion
	})
	return deployment
}

func (f *fixture) secret(name string, data map[string]string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace}, StringData: data}
}

func ptr[T any](value T) *T { return &value }
