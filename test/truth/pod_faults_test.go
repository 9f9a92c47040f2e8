//go:build e2e

package truth

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/testing/livetest"
)

// podFaults keep the pods of an application from starting.
func podFaults() map[string]fault {
	return map[string]fault{
		"more processors than any node has": {
			subject: theApp, usual: true,
			cause: creating(requests(corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000")})),
			known: podCondition(corev1.PodScheduled, corev1.ConditionFalse),
			says:  trouble(slipwayv1alpha1.ReasonUnschedulable, servesNobody), warns: slipwayv1alpha1.ReasonUnschedulable,
			names: []string{`pod "shop-`, "Insufficient cpu", "spec.resources.requests.cpu"},
			mend:  restoring, good: rolledOut,
		},
		"more memory than any node has": {
			subject: theApp,
			cause:   creating(requests(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1000Ti")})),
			known:   podCondition(corev1.PodScheduled, corev1.ConditionFalse),
			says:    trouble(slipwayv1alpha1.ReasonUnschedulable, servesNobody),
			names:   []string{`pod "shop-`, "Insufficient memory", "spec.resources.requests.memory"},
			mend:    restoring, good: rolledOut,
		},
		"a container that ends": {
			subject: theApp, usual: true,
			cause: creating(env("START_FAILURE", "no database at db:5432")), known: ended,
			says: trouble(slipwayv1alpha1.ReasonCrashLoopBackOff, servesNobody), warns: slipwayv1alpha1.ReasonCrashLoopBackOff,
			names: []string{`pod "shop-`, `container "app"`, "exit code 3", "no database at db:5432"},
			mend:  restoring, good: rolledOut,
		},
		"a container that ends well, again and again": {
			subject: theApp,
			cause:   creating(func(_ *trial, s *slipwayv1alpha1.WebAppSpec) { s.Args = []string{"tree", "list", "/etc"} }),
			known:   ended, still: restarted(2),
			says:  trouble(slipwayv1alpha1.ReasonCrashLoopBackOff, servesNobody),
			names: []string{`pod "shop-`, `container "app"`, "exit code 0"},
			mend:  restoring, good: rolledOut,
		},
		"files in the place of a file of the image": {
			subject: theApp,
			prepare: func(f *trial) {
				f.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "files"}, Data: map[string]string{"greeting": "hi"}})
			},
			cause: creating(func(_ *trial, s *slipwayv1alpha1.WebAppSpec) {
				s.Files = []slipwayv1alpha1.FileSource{{MountPath: "/etc/passwd", ConfigMapRef: &slipwayv1alpha1.LocalReference{Name: "files"}}}
			}),
			known: startFails,
			says:  trouble(slipwayv1alpha1.ReasonContainerStartError, servesNobody),
			names: []string{`pod "shop-`, `container "app"`, `"/etc/passwd"`, "spec.files[0].mountPath", "not a directory"},
			mend:  restoring, good: rolledOut,
		},
		"more memory than its limit": {
			subject: theApp, usual: true,
			cause: creating(env("START_MEMORY", "300"), limits(corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("64Mi")})), known: ended,
			says:  trouble(slipwayv1alpha1.ReasonOOMKilled, servesNobody),
			names: []string{`pod "shop-`, "64Mi", "spec.resources.limits.memory"},
			mend:  restoring, good: rolledOut,
		},
		"a command that does not exist": {
			subject: theApp,
			cause:   creating(func(_ *trial, s *slipwayv1alpha1.WebAppSpec) { s.Command = []string{"/no/such/program"} }),
			known:   startFails,
			says:    trouble(slipwayv1alpha1.ReasonContainerStartError, servesNobody),
			names:   []string{`pod "shop-`, `container "app"`, "/no/such/program"},
			mend:    restoring, good: rolledOut,
		},
		"a class of volumes that does not exist": {
			subject: theApp, usual: true,
			cause: creating(func(_ *trial, s *slipwayv1alpha1.WebAppSpec) {
				s.Storage = &slipwayv1alpha1.Storage{Size: resource.MustParse("1Mi"), MountPath: "/data", StorageClassName: ptr("platinum")}
			}),
			known: podCondition(corev1.PodScheduled, corev1.ConditionFalse),
			says:  trouble(slipwayv1alpha1.ReasonVolumePending, servesNobody),
			names: []string{`PersistentVolumeClaim "shop-data"`, "spec.storage"},
			mend:  restoring, good: rolledOut,
		},
		"a node that has thrown an old pod out": {
			// The record of the evicted pod stays; nothing is wrong with those that run.
			subject: theApp, innocent: true,
			start: func(f *trial) {
				creating()(f)
				f.settles()
				evicted := f.pods()[0]
				f.evict(evicted)
				f.subject.First(time.Now(), "ready without the evicted pod", f.isFine)
			},
			cause: editing(func(_ *trial, s *slipwayv1alpha1.WebAppSpec) { s.Replicas = ptr(int32(2)) }),
			known: rolledOut,
			says: []claim{
				{condition: slipwayv1alpha1.ConditionReady, status: metav1.ConditionTrue, reason: slipwayv1alpha1.ReasonReady},
				{condition: slipwayv1alpha1.ConditionDegraded, status: metav1.ConditionFalse},
				notStalled,
			},
		},
	}
}

// restarted tells a pod whose container was started again so often.
func restarted(times int32) func(client.Object) bool {
	return container(func(c corev1.ContainerStatus) bool { return c.RestartCount >= times })
}

func startFails(o client.Object) bool {
	return ended(o) || waits("RunContainerError", "CreateContainerError")(o)
}

// evict makes of a pod what the kubelet makes of one that it throws out.
func (f *trial) evict(pod corev1.Pod) {
	f.Helper()
	pod.Status.Phase, pod.Status.Reason, pod.Status.Message = corev1.PodFailed, "Evicted", "The node was low on resource: memory."
	if err := f.Cluster.Status().Update(f.Context(), &pod); err != nil {
		f.Fatalf("evict pod %q: %v", pod.Name, err)
	}
}

// imageFaults are images that cannot be had, or not be run.
func imageFaults() map[string]fault {
	pullFails := waits("ErrImagePull", "ImagePullBackOff")
	return map[string]fault{
		"a tag that does not exist": {
			subject: theApp, usual: true, cause: creating(image(livetest.RootRepository + ":2")), known: pullFails,
			says:  trouble(slipwayv1alpha1.ReasonImageNotFound, servesNobody),
			names: []string{`pod "shop-`, livetest.RootRepository + `:2" does not exist`, "spec.image"},
			mend:  restoring, good: rolledOut,
		},
		"a repository that does not exist": {
			subject: theApp, cause: creating(image("unknown:1")), known: pullFails,
			says:  trouble(slipwayv1alpha1.ReasonImageNotFound, servesNobody),
			names: []string{`pod "shop-`, `unknown:1" does not exist`, "spec.image"},
			mend:  restoring, good: rolledOut,
		},
		"an image that is denied": {
			subject: theApp, cause: creating(image(livetest.PrivateRepository + ":1")), known: pullFails,
			says:  trouble(slipwayv1alpha1.ReasonImagePullDenied, servesNobody),
			names: []string{`pod "shop-`, livetest.PrivateRepository + `:1"`, "spec.imagePullSecrets"},
			mend:  restoring, good: rolledOut,
		},
		"a registry that does not answer": {
			subject: theApp, known: pullFails,
			cause: creating(func(f *trial, s *slipwayv1alpha1.WebAppSpec) {
				f.Registry() // skips where there cannot be one
				s.Image = fmt.Sprintf("localhost:%d/shop:1", livetest.SilentPort)
			}),
			says:  trouble(slipwayv1alpha1.ReasonImagePullBackOff, servesNobody),
			names: []string{`pod "shop-`, fmt.Sprintf("localhost:%d/shop:1", livetest.SilentPort), "registry does not answer"},
			mend:  restoring, good: rolledOut,
		},
		"a registry that does not answer, for an image that sounds refused": {
			// What a user has called an image is no answer of a registry.
			subject: theApp, usual: true, known: pullFails,
			cause: creating(func(f *trial, s *slipwayv1alpha1.WebAppSpec) {
				f.Registry() // skips where there cannot be one
				s.Image = fmt.Sprintf("localhost:%d/denied/forbidden/notfound:1", livetest.SilentPort)
			}),
			says:  trouble(slipwayv1alpha1.ReasonImagePullBackOff, servesNobody),
			names: []string{`pod "shop-`, "denied/forbidden/notfound:1", "registry does not answer"},
			mend:  restoring, good: rolledOut,
		},
		"an image that runs as root": {
			subject: theApp, usual: true, cause: creating(image(livetest.RootRepository + ":1")), known: waits("CreateContainerConfigError"),
			says:  trouble(slipwayv1alpha1.ReasonContainerConfigError, servesNobody),
			names: []string{`pod "shop-`, `container "app"`, "run as root"},
			mend:  restoring, good: rolledOut,
		},
		"an image that does not exist, after one that does": {
			subject: theApp, usual: true, start: creating(), cause: editing(image("unknown:1")), known: pullFails,
			says: trouble(slipwayv1alpha1.ReasonImageNotFound, serves),
			ends: rolledBack(slipwayv1alpha1.ReasonImageNotFound),
			mend: restoring, good: rolledOut,
		},
	}
}

// configFaults are Secrets, ConfigMaps and keys in them that are missing. Nothing but the
// WebApp knows.
func configFaults() map[string]fault {
	return map[string]fault{
		"no Secret": {
			subject: theApp, usual: true, cause: creating(fromSecret("db")),
			says:  trouble(slipwayv1alpha1.ReasonSecretNotFound, servesNobody),
			names: []string{`Secret "db"`, "spec.envFrom[0].secretRef"},
			mend:  func(f *trial) { f.Create(secret("db", "PASSWORD")) }, good: rolledOut,
		},
		"no key in a Secret": {
			subject: theApp,
			cause:   func(f *trial) { f.Create(secret("db", "USER")); creating(fromSecret("db", "PASSWORD"))(f) },
			says:    trouble(slipwayv1alpha1.ReasonKeyNotFound, servesNobody),
			names:   []string{`Secret "db"`, `"PASSWORD"`, "spec.envFrom[0].secretRef"},
			mend: func(f *trial) {
				livetest.Update(f.Fixture, "db", &corev1.Secret{}, func(s *corev1.Secret) { s.StringData = map[string]string{"PASSWORD": "x"} })
			},
			good: rolledOut,
		},
		"no ConfigMap": {
			subject: theApp,
			cause: creating(func(_ *trial, s *slipwayv1alpha1.WebAppSpec) {
				s.Files = []slipwayv1alpha1.FileSource{{MountPath: "/etc/demo", ConfigMapRef: &slipwayv1alpha1.LocalReference{Name: "files"}}}
			}),
			says:  trouble(slipwayv1alpha1.ReasonConfigMapNotFound, servesNobody),
			names: []string{`ConfigMap "files"`, "spec.files[0].configMapRef"},
			mend: func(f *trial) {
				f.Create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "files"}, Data: map[string]string{"greeting": "hi"}})
			},
			good: rolledOut,
		},
		"an immutable ConfigMap that is made again with other content": {
			subject: theApp, lasts: true,
			start: func(f *trial) { f.makeImmutable("one"); creating(usesFiles)(f) },
			cause: func(f *trial) { f.makeImmutable("two") },
			says: []claim{
				{condition: slipwayv1alpha1.ConditionReady, status: metav1.ConditionFalse, reason: slipwayv1alpha1.ReasonImmutableReplaced, named: true}, serves,
			},
			names: []string{`ConfigMap "files"`, "spec.files[0].configMapRef", "immutable"},
			mend:  func(f *trial) { f.makeImmutable("one") },
		},
		"a Secret that is deleted under a running application": {
			subject: theApp, usual: true,
			start: func(f *trial) { f.Create(secret("db", "PASSWORD")); creating(fromSecret("db", "PASSWORD"))(f) },
			cause: func(f *trial) { f.Delete(secret("db", "PASSWORD")) },
			says:  trouble(slipwayv1alpha1.ReasonSecretNotFound, serves),
			names: []string{`Secret "db"`, "spec.envFrom[0].secretRef"},
			mend:  func(f *trial) { f.Create(secret("db", "PASSWORD")) },
		},
	}
}

func usesFiles(_ *trial, s *slipwayv1alpha1.WebAppSpec) {
	s.Files = []slipwayv1alpha1.FileSource{{MountPath: "/etc/demo", ConfigMapRef: &slipwayv1alpha1.LocalReference{Name: "files"}}}
}

// makeImmutable makes a ConfigMap that is newer than every pod. Times of objects have seconds.
func (f *trial) makeImmutable(content string) {
	f.Helper()
	newest := metav1.Time{}
	for _, pod := range f.pods() {
		if newest.Before(&pod.CreationTimestamp) {
			newest = pod.CreationTimestamp
		}
	}
	f.Eventually(func() error {
		made := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "files", Namespace: f.Namespace}, Immutable: ptr(true), Data: map[string]string{"greeting": content}}
		if err := client.IgnoreNotFound(f.Cluster.Delete(f.Context(), made.DeepCopy())); err != nil {
			return err
		}
		if err := f.Cluster.Create(f.Context(), made); err != nil {
			return err
		}
		if !newest.Before(&made.CreationTimestamp) {
			return errors.New("it is as old as a pod")
		}
		return nil
	})
}

func fromSecret(name string, keys ...string) specEdit {
	return func(_ *trial, s *slipwayv1alpha1.WebAppSpec) {
		s.EnvFrom = []slipwayv1alpha1.EnvFromSource{{SecretRef: &slipwayv1alpha1.LocalReference{Name: name}, Keys: keys}}
	}
}

func secret(name, key string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{key: "x"}}
}
