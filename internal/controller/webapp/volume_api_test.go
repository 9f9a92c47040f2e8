//go:build apitest

package webapp_test

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// class makes a StorageClass that does not let volumes grow.
func (f *fixture) class() *storagev1.StorageClass {
	f.Helper()
	class := &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: f.namespace}, Provisioner: "example.com/none"}
	f.create(class)
	return class
}

// withVolume is a change to a WebApp: a volume of a size and a class.
func withVolume(size, class string) func(*slipwayv1alpha1.WebApp) {
	return func(a *slipwayv1alpha1.WebApp) {
		a.Spec.Storage = &slipwayv1alpha1.Storage{Size: quantity(size), MountPath: "/data", StorageClassName: &class}
	}
}

// claim waits until the volume asks for a size.
func (f *fixture) claim(size string) *corev1.PersistentVolumeClaim {
	f.Helper()
	claim := &corev1.PersistentVolumeClaim{}
	environment.Eventually(f, func() error {
		if err := f.get("shop-data", claim); err != nil {
			return err
		}
		if got := claim.Spec.Resources.Requests.Storage(); got.Cmp(quantity(size)) != 0 {
			return fmt.Errorf("the claim asks for %s, want %s", got, size)
		}
		return nil
	})
	return claim
}

// bind gives the claim a volume of a size, as a provisioner does.
func (f *fixture) bind(size string) {
	f.Helper()
	environment.Eventually(f, func() error {
		claim := &corev1.PersistentVolumeClaim{}
		if err := f.get("shop-data", claim); err != nil {
			return err
		}
		claim.Status.Phase = corev1.ClaimBound
		claim.Status.Capacity = corev1.ResourceList{corev1.ResourceStorage: quantity(size)}
		return env.Client.Status().Update(f.Context(), claim)
	})
	f.wait(func(app *slipwayv1alpha1.WebApp) error {
		if app.Status.StorageSize == nil {
			return fmt.Errorf("status does not tell the size of the volume: %+v", app.Status)
		}
		return nil
	})
}

// resize changes spec.storage.size and returns the API server's answer.
func (f *fixture) resize(size string) error {
	f.Helper()
	var answer error
	environment.Eventually(f, func() error {
		app := &slipwayv1alpha1.WebApp{}
		if err := f.get("shop", app); err != nil {
			return err
		}
		app.Spec.Storage.Size = quantity(size)
		answer = env.Client.Update(f.Context(), app)
		if apierrors.IsConflict(answer) {
			return answer
		}
		return nil
	})
	return answer
}

func (f *fixture) mustResize(size string) {
	f.Helper()
	if err := f.resize(size); err != nil {
		f.Fatalf("resize to %s: %v", size, err)
	}
}

// A volume that cannot grow is reported, with the way back open. It may have got more than
// it asked for.
func TestAVolumeThatCannotGrowIsToldAndTheOldSizeCanBePutBack(t *testing.T) {
	env.StartOperator(t, nil)
	for _, capacity := range []string{"1Gi", "3Gi"} {
		t.Run("volume of "+capacity, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			class := f.class()
			f.create(f.app(withVolume("1Gi", class.Name)))
			before := f.claim("1Gi")
			f.bind(capacity)
			f.rollOut()

			f.mustResize("2Gi")
			stalled := f.waitFor(slipwayv1alpha1.ConditionStalled, metav1.ConditionTrue, slipwayv1alpha1.ReasonVolumeResizeRefused)
			message := meta.FindStatusCondition(stalled.Status.Conditions, "Ready").Message
			if want := `PersistentVolumeClaim "shop-data" cannot grow from 1Gi to 2Gi (spec.storage.size): `; !strings.HasPrefix(message, want) || !strings.Contains(message, "the storageclass that provisions the pvc must support resize") {
				t.Errorf("message %q, want %q and the answer", message, want)
			}
			if err := has(stalled, slipwayv1alpha1.ConditionAvailable, metav1.ConditionTrue, ""); err != nil {
				t.Error(err)
			}

			f.mustResize("1Gi")
			ready := f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, "")
			if meta.FindStatusCondition(ready.Status.Conditions, slipwayv1alpha1.ConditionStalled) != nil {
				t.Errorf("still stalled: %+v", ready.Status)
			}
			if after := f.claim("1Gi"); after.UID != before.UID {
				t.Error("the volume is another one")
			}
		})
	}
}

// The class is not watched: what was refused is tried again.
func TestAVolumeGrowsOnceItsClassAllowsIt(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	class := f.class()
	f.create(f.app(withVolume("1Gi", class.Name)))
	f.claim("1Gi")
	f.bind("1Gi")
	f.rollOut()
	f.mustResize("2Gi")
	f.waitFor(slipwayv1alpha1.ConditionStalled, metav1.ConditionTrue, slipwayv1alpha1.ReasonVolumeResizeRefused)
	update(f, class, func(c *storagev1.StorageClass) { c.AllowVolumeExpansion = ptr(true) })
	f.claim("2Gi")
	growing := f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, "")
	if got := growing.Status.StorageSize; got == nil || got.String() != "1Gi" {
		t.Errorf("status says that the volume has %v, want 1Gi", got)
	}

	// What was asked for and not granted can be taken back, what was granted cannot.
	f.mustResize("1536Mi")
	f.claim("1536Mi")
	f.bind("1536Mi")
	f.wait(func(app *slipwayv1alpha1.WebApp) error {
		if got := app.Status.StorageSize.String(); got != "1536Mi" {
			return fmt.Errorf("status says that the volume has %s", got)
		}
		return nil
	})
	err := f.resize("1Gi")
	if want := "spec.storage.size cannot be less than status.storageSize: a volume cannot shrink"; !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("the answer is %v, want %q", err, want)
	}
}

// A claim that is not bound holds no data. So another size, perhaps the correction of a
// mistake, costs nothing but the claim.
func TestAClaimThatIsNotBoundIsRecreatedInAnotherSize(t *testing.T) {
	env.StartOperator(t, nil)
	for _, size := range []string{"1Gi", "9Gi"} {
		t.Run(size, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.create(f.app(withVolume("5Gi", f.class().Name)))
			claim := f.claim("5Gi")
			f.rollOut()
			f.mustResize(size)
			reported := f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, slipwayv1alpha1.ReasonVolumePending)
			if stalled := meta.FindStatusCondition(reported.Status.Conditions, slipwayv1alpha1.ConditionStalled); stalled != nil {
				t.Errorf("stalled: %+v", stalled)
			}
			f.delete(claim)
			// Nobody lets go of it here.
			update(f, claim, func(c *corev1.PersistentVolumeClaim) { c.Finalizers = nil })
			f.claim(size)
			f.waitFor(slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, "")
		})
	}
}

// A volume that was retained may be larger than the application that finds it asks for.
func TestAVolumeThatCannotShrinkIsTold(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	class := f.class()
	app := f.app(withVolume("5Gi", class.Name))
	f.create(app)
	f.claim("5Gi")
	f.bind("5Gi")
	f.orphan(app)
	f.create(f.app(withVolume("1Gi", class.Name)))
	stalled := f.waitFor(slipwayv1alpha1.ConditionStalled, metav1.ConditionTrue, slipwayv1alpha1.ReasonVolumeResizeRefused)
	want := `PersistentVolumeClaim "shop-data" cannot shrink from 5Gi to 1Gi (spec.storage.size): `
	if got := meta.FindStatusCondition(stalled.Status.Conditions, "Stalled").Message; !strings.HasPrefix(got, want) {
		t.Errorf("message %q, want %q", got, want)
	}
	f.mustResize("5Gi")
	f.rollOut()
}

func TestAVolumeStaysInItsClass(t *testing.T) {
	f := newFixture(t)
	app := f.app(withVolume("1Gi", "slow"))
	f.create(app)
	app.Spec.Storage.StorageClassName = ptr("fast")
	err := env.Client.Update(t.Context(), app)
	if want := "spec.storage.storageClassName cannot be changed"; !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
		t.Errorf("the answer is %v, want %q", err, want)
	}
}
