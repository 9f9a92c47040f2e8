//go:build apitest

package webapp_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// A volume that was kept is found again, and stays in its class.
func TestARetainedVolumeOfAnotherClassIsToldInASentence(t *testing.T) {
	env.StartOperator(t, nil)
	for name, asks := range map[string]struct{ class, words string }{
		"no class":      {"", "spec.storage.storageClassName is not set"},
		"another class": {"other", `spec.storage.storageClassName is "other"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			class := f.class()
			app := f.app(withVolume("1Gi", class.Name))
			f.create(app)
			f.claim("1Gi")
			f.bind("1Gi")
			f.rollOut()
			f.orphan(app)
			f.create(f.app(func(a *slipwayv1alpha1.WebApp) {
				withVolume("1Gi", asks.class)(a)
				if asks.class == "" {
					a.Spec.Storage.StorageClassName = nil
				}
			}))
			reported := f.says("Ready", metav1.ConditionFalse, slipwayv1alpha1.ReasonInvalid,
				`PersistentVolumeClaim "shop-data" is of StorageClass "`+class.Name+`"`, asks.words)
			if message := meta.FindStatusCondition(reported.Status.Conditions, "Ready").Message; strings.Contains(message, "\n") {
				t.Errorf("the message has lines: %q", message)
			}
		})
	}
}
