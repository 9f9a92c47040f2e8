//go:build neighbours

package neighbours

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// manyApps is how many applications one tenant makes at once.
const manyApps = 150

// app makes an application without replicas: what is measured is the operator, not the node.
func (t *tenant) app(name string) {
	none := int32(0)
	t.Create(&slipwayv1alpha1.WebApp{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       slipwayv1alpha1.WebAppSpec{Image: t.Cluster.DemoImage, Port: 8080, Replicas: &none},
	})
}

// reported waits until the operator has told of an application.
func (t *tenant) reported(name string) {
	t.Helper()
	app := &slipwayv1alpha1.WebApp{}
	t.Eventually(func() error {
		if err := t.Get(name, app); err != nil {
			return err
		}
		if app.Status.ObservedGeneration != app.Generation || meta.FindStatusCondition(app.Status.Conditions, slipwayv1alpha1.ConditionReady) == nil {
			return fmt.Errorf("WebApp %s has no status yet", name)
		}
		return nil
	})
}

func TestManyAppsOfOneTenantDoNotDelayAnothers(t *testing.T) {
	quiet, greedy := newTenant(t, "quiet"), newTenant(t, "greedy")
	alone := median(5, func(i int) {
		quiet.app(name("alone", i))
		quiet.reported(name("alone", i))
	})
	for i := range manyApps {
		greedy.app(name("many", i))
	}
	beside := median(5, func(i int) {
		quiet.app(name("beside", i))
		quiet.reported(name("beside", i))
	})
	compare(quiet.Fixture, fmt.Sprintf("a new WebApp is told of beside %d of another tenant", manyApps), alone, beside)
	greedy.reported(name("many", manyApps-1))
}
