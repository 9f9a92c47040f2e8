//go:build apitest

package going_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/kit/status"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

var env *environment.Environment

func TestMain(m *testing.M) { environment.Main(m, &env) }

// goal is how soon a status tells that its namespace is being deleted, and atMost what a machine may take that does much else.
const goal, atMost = 2 * time.Second, 6 * time.Second

// Nobody empties the namespaces here: that is how a namespace is as long as a pod in it takes to end. Every object tells, though
// nothing of it changes and nothing is made for it, and is quiet afterwards.
func TestEveryKindTellsThatItsNamespaceIsGoing(t *testing.T) {
	env.StartOperator(t, nil)
	namespace := env.Namespace(t)
	at := metav1.ObjectMeta{Name: "shop", Namespace: namespace}
	objects := []status.Object{
		&slipwayv1alpha1.WebApp{ObjectMeta: at, Spec: slipwayv1alpha1.WebAppSpec{Image: "registry.example.com/shop:1", Port: 8080}},
		&slipwayv1alpha1.APIGateway{ObjectMeta: at},
		&slipwayv1alpha1.Backup{ObjectMeta: at, Spec: slipwayv1alpha1.BackupSpec{Source: "shop-data", Destination: "s3://bucket"}},
		&slipwayv1alpha1.BackupRun{ObjectMeta: at, Spec: slipwayv1alpha1.BackupRunSpec{Backup: "shop"}},
		&slipwayv1alpha1.Restore{ObjectMeta: at, Spec: slipwayv1alpha1.RestoreSpec{
			Run: &slipwayv1alpha1.LocalReference{Name: "none"}, Target: slipwayv1alpha1.RestoreTarget{Claim: "shop-data"},
		}},
	}
	for _, object := range objects {
		if err := env.Client.Create(t.Context(), object); err != nil {
			t.Fatalf("create %T: %v", object, err)
		}
	}
	for _, object := range objects {
		environment.Eventually(t, func() error {
			if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				return err
			}
			if len(object.GetConditions()) == 0 {
				return fmt.Errorf("%T says nothing yet", object)
			}
			return nil
		})
	}

	begun := time.Now()
	if err := env.Client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	reported := map[status.Object]time.Duration{}
	environment.Eventually(t, func() error {
		var missing []error
		for _, object := range objects {
			if _, ok := reported[object]; ok {
				continue
			}
			if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				return err
			}
			ready := meta.FindStatusCondition(object.GetConditions(), slipwayv1alpha1.ConditionReady)
			if ready == nil || ready.Status != metav1.ConditionFalse || ready.Reason != slipwayv1alpha1.ReasonNamespaceTerminating ||
				!strings.Contains(ready.Message, namespace) {
				missing = append(missing, fmt.Errorf("%T says %+v", object, ready))
				continue
			}
			reported[object] = time.Since(begun)
		}
		return errors.Join(missing...)
	})
	for object, took := range reported {
		t.Logf("%T told after %v", object, took.Round(time.Millisecond))
		if took > atMost {
			t.Errorf("%T told after %v, want %v", object, took, goal)
		}
	}
	environment.Quiet(t, time.Second, func() (versions string) {
		for _, object := range objects {
			if err := env.Client.Get(t.Context(), client.ObjectKeyFromObject(object), object); err != nil {
				t.Fatal(err)
			}
			versions += object.GetResourceVersion() + " "
		}
		return versions
	})
}
