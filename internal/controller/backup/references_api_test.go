//go:build apitest

package backup_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

func (f *fixture) named(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, Namespace: f.namespace}
}

// template is one of pods that need nothing.
func template() (*metav1.LabelSelector, corev1.PodTemplateSpec) {
	labels := map[string]string{"app": "db"}
	return &metav1.LabelSelector{MatchLabels: labels}, corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "db", Image: "db"}}},
	}
}

func claimNamed(f *fixture, name string) client.Object {
	claim := &corev1.PersistentVolumeClaim{}
	if err := f.get("shop-data", claim); err != nil {
		f.Fatal(err)
	}
	return &corev1.PersistentVolumeClaim{ObjectMeta: f.named(name), Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: claim.Spec.AccessModes, Resources: claim.Spec.Resources,
	}}
}

func deploymentNamed(f *fixture, name string, labels map[string]string) client.Object {
	selector, pods := template()
	deployment := &appsv1.Deployment{ObjectMeta: f.named(name), Spec: appsv1.DeploymentSpec{Selector: selector, Template: pods}}
	deployment.Labels = labels
	return deployment
}

func statefulSetNamed(f *fixture, name string) client.Object {
	selector, pods := template()
	return &appsv1.StatefulSet{ObjectMeta: f.named(name), Spec: appsv1.StatefulSetSpec{Selector: selector, Template: pods}}
}

// withSidecar is that StatefulSet with another container.
func withSidecar(f *fixture) client.Object {
	set := &appsv1.StatefulSet{}
	if err := f.get("db", set); err != nil {
		f.Fatal(err)
	}
	pod := &set.Spec.Template.Spec
	pod.Containers = append(pod.Containers, corev1.Container{Name: "sidecar", Image: "sidecar"})
	return set
}

func secretNamed(f *fixture, name string, data map[string]string) client.Object {
	return &corev1.Secret{ObjectMeta: f.named(name), StringData: data}
}

// put makes an object, or changes the one that there is.
func (f *fixture) put(object client.Object) {
	f.Helper()
	if object.GetResourceVersion() == "" {
		err := env.Client.Create(f.Context(), object)
		if err == nil {
			return
		}
		if !apierrors.IsAlreadyExists(err) {
			f.Fatal(err)
		}
		object.SetResourceVersion("")
	}
	if err := env.Client.Update(f.Context(), object); err != nil {
		f.Fatal(err)
	}
}

// namesNothing is a field that names something that is not there, what is said of it, and what mends it.
type namesNothing struct {
	change  func(*fixture, *slipwayv1alpha1.Backup)
	reason  string
	message string
	mend    func(*fixture) client.Object
}

func namesOfBackups() map[string]namesNothing {
	field := func(set func(*slipwayv1alpha1.BackupSpec)) func(*fixture, *slipwayv1alpha1.Backup) {
		return func(_ *fixture, b *slipwayv1alpha1.Backup) { set(&b.Spec) }
	}
	source := func(source string) func(*fixture, *slipwayv1alpha1.Backup) {
		return field(func(s *slipwayv1alpha1.BackupSpec) { s.Source = source })
	}
	reference := func(name string) *slipwayv1alpha1.LocalReference { return &slipwayv1alpha1.LocalReference{Name: name} }
	credentials := field(func(s *slipwayv1alpha1.BackupSpec) { s.Credentials = reference("bucket") })
	full := map[string]string{"accessKeyID": "a", "secretAccessKey": "b"}
	dump := func(from slipwayv1alpha1.EnvFromSource) func(*fixture, *slipwayv1alpha1.Backup) {
		return field(func(s *slipwayv1alpha1.BackupSpec) {
			s.Dump = &slipwayv1alpha1.BackupDump{Image: "db", Command: []string{"dump"}, EnvFrom: []slipwayv1alpha1.EnvFromSource{from}}
		})
	}
	class := "class-of-backups"
	sidecarHook := slipwayv1alpha1.BackupHook{Container: "sidecar", Command: []string{"hold"}}
	container := func(set func(*slipwayv1alpha1.BackupSpec)) func(*fixture, *slipwayv1alpha1.Backup) {
		return func(f *fixture, b *slipwayv1alpha1.Backup) {
			f.create(statefulSetNamed(f, "db"))
			b.Spec.Source = "statefulset/db"
			set(&b.Spec)
		}
	}
	return map[string]namesNothing{
		"source: a claim": {
			source("gone"), slipwayv1alpha1.ReasonSourceNotFound, `there is no PersistentVolumeClaim "gone" (spec.source)`,
			func(f *fixture) client.Object { return claimNamed(f, "gone") },
		},
		"source: a Deployment": {
			source("deployment/db"), slipwayv1alpha1.ReasonSourceNotFound, `there is no Deployment "db" (spec.source)`,
			func(f *fixture) client.Object { return deploymentNamed(f, "db", nil) },
		},
		"source: a StatefulSet": {
			source("statefulset/db"), slipwayv1alpha1.ReasonSourceNotFound, `there is no StatefulSet "db" (spec.source)`,
			func(f *fixture) client.Object { return statefulSetNamed(f, "db") },
		},
		"source: a WebApp": {
			source("webapp/db"), slipwayv1alpha1.ReasonSourceNotFound, `there is no WebApp "db" (spec.source)`,
			func(f *fixture) client.Object {
				return deploymentNamed(f, "db", map[string]string{slipwayv1alpha1.LabelWebApp: "db"})
			},
		},
		"destination: a claim": {
			field(func(s *slipwayv1alpha1.BackupSpec) { s.Destination = "pvc://copies/x" }),
			slipwayv1alpha1.ReasonDestinationNotFound, `there is no PersistentVolumeClaim "copies" (spec.destination)`,
			func(f *fixture) client.Object { return claimNamed(f, "copies") },
		},
		"credentials": {
			credentials, slipwayv1alpha1.ReasonSecretNotFound, `there is no Secret "bucket" (spec.credentials)`,
			func(f *fixture) client.Object { return secretNamed(f, "bucket", full) },
		},
		"credentials: a key": {
			func(f *fixture, b *slipwayv1alpha1.Backup) {
				credentials(f, b)
				f.create(secretNamed(f, "bucket", map[string]string{"accessKeyID": "a", "secretAccessKey": ""}))
			},
			slipwayv1alpha1.ReasonKeyNotFound, `Secret "bucket" has no key "secretAccessKey", or it is empty (spec.credentials)`,
			func(f *fixture) client.Object { return secretNamed(f, "bucket", full) },
		},
		"encryption: a key": {
			func(f *fixture, b *slipwayv1alpha1.Backup) {
				b.Spec.Encryption = reference("key")
				f.create(secretNamed(f, "key", map[string]string{"word": "a"}))
			},
			slipwayv1alpha1.ReasonKeyNotFound, `Secret "key" has no key "password", or it is empty (spec.encryption)`,
			func(f *fixture) client.Object { return secretNamed(f, "key", map[string]string{"password": "a"}) },
		},
		"mover.priorityClassName": {
			field(func(s *slipwayv1alpha1.BackupSpec) {
				s.Mover = &slipwayv1alpha1.BackupMover{PriorityClassName: class}
			}),
			slipwayv1alpha1.ReasonPriorityClassNotFound, `there is no PriorityClass "class-of-backups" (spec.mover.priorityClassName)`,
			func(*fixture) client.Object {
				return &schedulingv1.PriorityClass{ObjectMeta: metav1.ObjectMeta{Name: class}}
			},
		},
		"verify.drill.scratch.storageClassName": {
			field(func(s *slipwayv1alpha1.BackupSpec) {
				s.Verify = &slipwayv1alpha1.BackupVerify{Drill: &slipwayv1alpha1.BackupDrill{Scratch: &slipwayv1alpha1.DrillScratch{StorageClassName: &class}}}
			}),
			slipwayv1alpha1.ReasonStorageClassNotFound, `there is no StorageClass "class-of-backups" (spec.verify.drill.scratch.storageClassName)`,
			func(*fixture) client.Object {
				return &storagev1.StorageClass{ObjectMeta: metav1.ObjectMeta{Name: class}, Provisioner: "example.com/none"}
			},
		},
		"dump.container": {
			container(func(s *slipwayv1alpha1.BackupSpec) {
				s.Dump = &slipwayv1alpha1.BackupDump{Container: "sidecar", Command: []string{"dump"}}
			}),
			slipwayv1alpha1.ReasonContainerNotFound, `StatefulSet "db" has no container "sidecar" (spec.dump.container)`, withSidecar,
		},
		"hooks.before.container": {
			container(func(s *slipwayv1alpha1.BackupSpec) {
				s.Hooks = &slipwayv1alpha1.BackupHooks{Before: &slipwayv1alpha1.BackupBeforeHook{BackupHook: sidecarHook}}
			}),
			slipwayv1alpha1.ReasonContainerNotFound, `StatefulSet "db" has no container "sidecar" (spec.hooks.before.container)`, withSidecar,
		},
		"hooks.after.container": {
			container(func(s *slipwayv1alpha1.BackupSpec) {
				s.Hooks = &slipwayv1alpha1.BackupHooks{After: &sidecarHook}
			}),
			slipwayv1alpha1.ReasonContainerNotFound, `StatefulSet "db" has no container "sidecar" (spec.hooks.after.container)`, withSidecar,
		},
		"dump.envFrom: a Secret": {
			dump(slipwayv1alpha1.EnvFromSource{SecretRef: reference("db"), Keys: []string{"user"}}),
			slipwayv1alpha1.ReasonSecretNotFound, `there is no Secret "db" (spec.dump.envFrom[0])`,
			func(f *fixture) client.Object { return secretNamed(f, "db", map[string]string{"user": ""}) },
		},
		"dump.envFrom: a ConfigMap": {
			dump(slipwayv1alpha1.EnvFromSource{ConfigMapRef: reference("db")}),
			slipwayv1alpha1.ReasonConfigMapNotFound, `there is no ConfigMap "db" (spec.dump.envFrom[0])`,
			func(f *fixture) client.Object { return &corev1.ConfigMap{ObjectMeta: f.named("db")} },
		},
	}
}

// A schedule may let months go by before a run needs what the spec names.
func TestWhatABackupNamesIsLookedForWhenItIsNamed(t *testing.T) {
	env.StartOperatorWith(t, func(_ *rest.Config, options *environment.Options) { options.BackupHooks = true })
	for name, tc := range namesOfBackups() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			f.backup(func(b *slipwayv1alpha1.Backup) {
				b.Spec.Schedule = "0 2 * * *"
				tc.change(f, b)
			})
			f.wait(func(b *slipwayv1alpha1.Backup) error {
				c := meta.FindStatusCondition(b.Status.Conditions, slipwayv1alpha1.ConditionReady)
				if c == nil || c.Status != metav1.ConditionFalse || c.Reason != tc.reason || !strings.Contains(c.Message, tc.message) {
					return fmt.Errorf("Ready is %+v", c)
				}
				return nil
			})
			mending := tc.mend(f)
			f.put(mending)
			if mending.GetNamespace() == "" {
				t.Cleanup(func() {
					if err := env.Client.Delete(context.WithoutCancel(t.Context()), mending); err != nil {
						t.Error(err)
					}
				})
			}
			f.wait(func(b *slipwayv1alpha1.Backup) error {
				return has(b, slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, slipwayv1alpha1.ReasonNoRun)
			})
		})
	}
}

// A hook runs in a pod, so a container that an admission webhook has added to that is none that is missing.
func TestTheContainerOfAHookMayBeAddedByAWebhook(t *testing.T) {
	env.StartOperatorWith(t, func(_ *rest.Config, options *environment.Options) { options.BackupHooks = true })
	f := newFixture(t)
	f.create(statefulSetNamed(f, "db"))
	_, pods := template()
	pods.Spec.Containers = append(pods.Spec.Containers, corev1.Container{Name: "sidecar", Image: "agent"})
	pod := &corev1.Pod{ObjectMeta: f.named("db-0"), Spec: pods.Spec}
	pod.Labels = pods.Labels
	f.create(pod)
	f.backup(func(b *slipwayv1alpha1.Backup) {
		b.Spec.Schedule, b.Spec.Source = "0 2 * * *", "statefulset/db"
		hook := slipwayv1alpha1.BackupHook{Container: "sidecar", Command: []string{"hold"}}
		b.Spec.Hooks = &slipwayv1alpha1.BackupHooks{Before: &slipwayv1alpha1.BackupBeforeHook{BackupHook: hook}, After: &hook}
	})
	f.wait(func(b *slipwayv1alpha1.Backup) error {
		return has(b, slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, slipwayv1alpha1.ReasonNoRun)
	})
}

// The kubelet starts a pod without the Secrets that only help to pull its images, and says nothing.
func TestABackupNeedsNoSecretToPullImagesAndTellsThatThereIsNone(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.backup(func(b *slipwayv1alpha1.Backup) {
		b.Spec.Schedule = "0 2 * * *"
		b.Spec.Mover = &slipwayv1alpha1.BackupMover{ImagePullSecrets: []slipwayv1alpha1.LocalReference{{Name: "pull"}}}
	})
	const missing = slipwayv1alpha1.ConditionPullSecretMissing
	f.wait(func(b *slipwayv1alpha1.Backup) error {
		return errors.Join(
			has(b, slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, slipwayv1alpha1.ReasonNoRun),
			has(b, missing, metav1.ConditionTrue, slipwayv1alpha1.ReasonSecretNotFound),
			contains(meta.FindStatusCondition(b.Status.Conditions, missing), `Secret "pull" does not exist (spec.mover.imagePullSecrets[0])`),
		)
	})
	f.create(secretNamed(f, "pull", nil))
	f.wait(func(b *slipwayv1alpha1.Backup) error {
		if c := meta.FindStatusCondition(b.Status.Conditions, missing); c != nil {
			return errors.New(c.Message)
		}
		return nil
	})
}

// Whatever is missing is named at once, and so is what goes afterwards.
func TestAllThatABackupNamesIsTold(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.backup(func(b *slipwayv1alpha1.Backup) { b.Spec.Schedule = "0 2 * * *" })
	f.wait(func(b *slipwayv1alpha1.Backup) error {
		return has(b, slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, slipwayv1alpha1.ReasonNoRun)
	})
	f.delete(&corev1.Secret{ObjectMeta: f.named("slipway-backup")})
	claim := &corev1.PersistentVolumeClaim{}
	if err := f.get("shop-data", claim); err != nil {
		t.Fatal(err)
	}
	claim.Finalizers = nil
	if err := env.Client.Update(t.Context(), claim); err != nil {
		t.Fatal(err)
	}
	f.delete(claim)
	f.wait(func(b *slipwayv1alpha1.Backup) error {
		c := meta.FindStatusCondition(b.Status.Conditions, slipwayv1alpha1.ConditionReady)
		want := `there is no PersistentVolumeClaim "shop-data" (spec.source); there is no Secret "slipway-backup" (spec.credentials)`
		if c == nil || c.Reason != slipwayv1alpha1.ReasonSourceNotFound || c.Message != want || b.Status.Message != want {
			return fmt.Errorf("Ready is %+v, and the message %q", c, b.Status.Message)
		}
		return nil
	})
}

// A run that waits or is tried again is said to, with and without a copy.
func TestARunThatWaitsIsToldOfByItsBackup(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	f.backup()
	f.move(f.job(copying...), refused("Unreachable"))
	f.wait(func(b *slipwayv1alpha1.Backup) error {
		c := meta.FindStatusCondition(b.Status.Conditions, slipwayv1alpha1.ConditionReady)
		return errors.Join(
			has(b, slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, slipwayv1alpha1.ReasonRetrying),
			contains(c, "attempt 1 of 3 failed"),
		)
	})
}

func contains(c *metav1.Condition, text string) error {
	if c == nil || !strings.Contains(c.Message, text) {
		return fmt.Errorf("the condition is %+v, want one with %q", c, text)
	}
	return nil
}
