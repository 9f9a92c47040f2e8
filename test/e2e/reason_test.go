//go:build e2e

package e2e

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/health"
)

// reasonGoal is how long after the cluster a WebApp may know.
const reasonGoal = 2 * time.Second

// stuck is one way in which a rollout does not get on.
type stuck struct {
	// needs is what must exist before.
	needs []client.Object
	// ask makes the application ask for what the cluster cannot give.
	ask func(f *fixture, spec *slipwayv1alpha1.WebAppSpec)
	// sees tells that the cluster knows: from then on the WebApp has 2 s. Objects of
	// the kinds WebApp, Deployment and Pod are looked at.
	sees func(client.Object) bool
	// reason and parts are what the WebApp must say.
	reason string
	parts  []string
	// mend makes it possible after all.
	mend func(f *fixture)
}

// It runs before the parallel tests, a few cases at a time: it measures.
func TestAStuckRolloutSaysWhyAtOnce(t *testing.T) {
	const atATime = 3
	turns := make(chan struct{}, atATime)
	for name, c := range stuckRollouts() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			turns <- struct{}{}
			defer func() { <-turns }()
			f := newFixture(t)
			f.create(c.needs...)
			apps, deployments, pods := f.record(&slipwayv1alpha1.WebAppList{}), f.record(&appsv1.DeploymentList{}), f.record(&corev1.PodList{})
			start := time.Now()
			f.create(f.app(spec(func(s *slipwayv1alpha1.WebAppSpec) { c.ask(f, s) })))

			app := f.wait(has(slipwayv1alpha1.ConditionDegraded, c.reason, c.parts...),
				is(slipwayv1alpha1.ConditionReady, metav1.ConditionFalse, c.reason))
			said := apps.first(start, "Degraded for "+c.reason, func(s sighting) bool { return degraded(s.object, c.reason) })
			known := earliest(start, c.sees, apps, deployments, pods)
			if known.IsZero() {
				t.Fatal("the cluster has never seen what the WebApp says")
			}
			late := max(0, said.at.Sub(known))
			message := meta.FindStatusCondition(app.Status.Conditions, slipwayv1alpha1.ConditionDegraded).Message
			f.measured("%s is told after %v: %s", c.reason, late.Round(time.Millisecond), message)
			if late > reasonGoal {
				t.Errorf("the WebApp said it %v after the cluster knew, want at most %v", late, reasonGoal)
			}

			mended := time.Now()
			c.mend(f)
			f.ready()
			f.answers(f.serviceURL(), "Hello from")
			good := latest(mended, healthy, deployments)
			cleared := apps.first(mended, "not Degraded", func(s sighting) bool {
				a := s.object.(*slipwayv1alpha1.WebApp)
				return a.Status.ObservedGeneration == a.Generation && is(slipwayv1alpha1.ConditionReady, metav1.ConditionTrue, "")(a) == nil &&
					is(slipwayv1alpha1.ConditionDegraded, metav1.ConditionFalse, "")(a) == nil
			})
			late = max(0, cleared.at.Sub(good))
			f.measured("%s is cleared after %v", c.reason, late.Round(time.Millisecond))
			if late > reasonGoal {
				t.Errorf("the WebApp was cleared %v after its Deployment was healthy, want at most %v", late, reasonGoal)
			}
		})
	}
}

func stuckRollouts() map[string]stuck {
	all := map[string]stuck{
		"unschedulable": {
			ask: func(_ *fixture, s *slipwayv1alpha1.WebAppSpec) {
				s.Resources = &slipwayv1alpha1.ResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1000")}}
			},
			sees:   pod(func(p *corev1.Pod) bool { return conditionOf(p, corev1.PodScheduled, corev1.ConditionFalse) }),
			reason: slipwayv1alpha1.ReasonUnschedulable, parts: []string{`pod "shop-`, "Insufficient cpu"},
			mend: editing(func(s *slipwayv1alpha1.WebAppSpec) { s.Resources = nil }),
		},
		"quota exceeded": {
			needs: []client.Object{&corev1.ResourceQuota{
				ObjectMeta: metav1.ObjectMeta{Name: "small"},
				Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{corev1.ResourcePods: resource.MustParse("0")}},
			}},
			ask: func(*fixture, *slipwayv1alpha1.WebAppSpec) {},
			sees: func(o client.Object) bool {
				d, ok := o.(*appsv1.Deployment)
				return ok && slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
					return c.Type == appsv1.DeploymentReplicaFailure && c.Status == corev1.ConditionTrue
				})
			},
			reason: slipwayv1alpha1.ReasonQuotaExceeded, parts: []string{`Deployment "shop"`, `ResourceQuota "small"`, "pods=0"},
			mend: func(f *fixture) {
				f.kubectl("delete", "resourcequota", "small")
				// The ReplicaSet's controller backs off for minutes; a new template is tried at once.
				f.edit(func(s *slipwayv1alpha1.WebAppSpec) { s.Env["AGAIN"] = "yes" })
			},
		},
		"crash": {
			ask: func(_ *fixture, s *slipwayv1alpha1.WebAppSpec) { s.Env["START_FAILURE"] = "no database at db:5432" },
			sees: container(func(c corev1.ContainerStatus) bool {
				return c.State.Terminated != nil || c.LastTerminationState.Terminated != nil
			}),
			reason: slipwayv1alpha1.ReasonCrashLoopBackOff, parts: []string{`pod "shop-`, `container "app"`, "exit code 3", "no database at db:5432"},
			mend: editing(func(s *slipwayv1alpha1.WebAppSpec) { delete(s.Env, "START_FAILURE") }),
		},
		"no such command": {
			ask: func(_ *fixture, s *slipwayv1alpha1.WebAppSpec) { s.Command = []string{"/no/such/program"} },
			sees: container(func(c corev1.ContainerStatus) bool {
				return c.State.Terminated != nil || c.LastTerminationState.Terminated != nil || waits(c, "RunContainerError", "CreateContainerError")
			}),
			reason: slipwayv1alpha1.ReasonContainerStartError, parts: []string{`pod "shop-`, `container "app"`, "/no/such/program"},
			mend: editing(func(s *slipwayv1alpha1.WebAppSpec) { s.Command = nil }),
		},
		"volume pending": {
			ask: func(_ *fixture, s *slipwayv1alpha1.WebAppSpec) {
				s.Storage = &slipwayv1alpha1.Storage{Size: resource.MustParse("1Mi"), MountPath: "/data", StorageClassName: ptr("platinum")}
			},
			sees:   pod(func(p *corev1.Pod) bool { return conditionOf(p, corev1.PodScheduled, corev1.ConditionFalse) }),
			reason: slipwayv1alpha1.ReasonVolumePending, parts: []string{`PersistentVolumeClaim "shop-data"`, "spec.storage"},
			mend: editing(func(s *slipwayv1alpha1.WebAppSpec) { s.Storage = nil }),
		},
	}
	for name, c := range stuckOnConfig() {
		all[name] = c
	}
	for name, c := range stuckOnImage() {
		all[name] = c
	}
	return all
}

// stuckOnConfig are rollouts for which a Secret, a ConfigMap or a key in it is missing.
// Nothing but the WebApp knows, from its creation on.
func stuckOnConfig() map[string]stuck {
	isApp := func(o client.Object) bool { _, ok := o.(*slipwayv1alpha1.WebApp); return ok }
	return map[string]stuck{
		"no secret": {
			ask:  func(_ *fixture, s *slipwayv1alpha1.WebAppSpec) { s.EnvFrom = fromSecret("db") },
			sees: isApp, reason: slipwayv1alpha1.ReasonSecretNotFound, parts: []string{`Secret "db"`, "spec.envFrom[0].secretRef"},
			mend: func(f *fixture) { f.create(secret("db", "PASSWORD", "x")) },
		},
		"no key": {
			needs: []client.Object{secret("db", "USER", "shop")},
			ask:   func(_ *fixture, s *slipwayv1alpha1.WebAppSpec) { s.EnvFrom = fromSecret("db", "PASSWORD") },
			sees:  isApp, reason: slipwayv1alpha1.ReasonKeyNotFound, parts: []string{`Secret "db"`, `"PASSWORD"`, "spec.envFrom[0].secretRef"},
			mend: func(f *fixture) {
				update(f, secretIn(f, "db"), func(s *corev1.Secret) { s.StringData = map[string]string{"PASSWORD": "x"} })
			},
		},
		"no config map": {
			ask: func(_ *fixture, s *slipwayv1alpha1.WebAppSpec) {
				s.Files = []slipwayv1alpha1.FileSource{{MountPath: "/etc/demo", ConfigMapRef: &slipwayv1alpha1.LocalReference{Name: "files"}}}
			},
			sees: isApp, reason: slipwayv1alpha1.ReasonConfigMapNotFound, parts: []string{`ConfigMap "files"`, "spec.files[0].configMapRef"},
			mend: func(f *fixture) {
				f.create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "files"}, Data: map[string]string{"greeting": "hi"}})
			},
		},
	}
}

// stuckOnImage are rollouts whose image cannot be had, or not be run.
func stuckOnImage() map[string]stuck {
	pullFails := container(func(c corev1.ContainerStatus) bool { return waits(c, "ErrImagePull", "ImagePullBackOff") })
	demo := editing(func(s *slipwayv1alpha1.WebAppSpec) { s.Image = cluster.DemoImage })
	image := func(name string) func(*fixture, *slipwayv1alpha1.WebAppSpec) {
		return func(f *fixture, s *slipwayv1alpha1.WebAppSpec) { s.Image = f.registry() + "/" + name }
	}
	return map[string]stuck{
		"no such tag": {
			ask: image(rootRepository + ":2"), sees: pullFails,
			reason: slipwayv1alpha1.ReasonImageNotFound, parts: []string{`pod "shop-`, rootRepository + `:2" does not exist`, "spec.image"}, mend: demo,
		},
		"no such repository": {
			ask: image("unknown:1"), sees: pullFails,
			reason: slipwayv1alpha1.ReasonImageNotFound, parts: []string{`pod "shop-`, `unknown:1" does not exist`, "spec.image"}, mend: demo,
		},
		"image denied": {
			ask: image(privateRepository + ":1"), sees: pullFails,
			reason: slipwayv1alpha1.ReasonImagePullDenied, parts: []string{`pod "shop-`, privateRepository + `:1"`, "spec.imagePullSecrets"}, mend: demo,
		},
		"no registry": {
			ask: func(f *fixture, s *slipwayv1alpha1.WebAppSpec) {
				f.registry() // skips where there cannot be one
				s.Image = fmt.Sprintf("localhost:%d/shop:1", silentPort)
			},
			sees: pullFails, reason: slipwayv1alpha1.ReasonImagePullBackOff, parts: []string{`pod "shop-`, "localhost:5009/shop:1", "registry does not answer"}, mend: demo,
		},
		"image that runs as root": {
			ask:    image(rootRepository + ":1"),
			sees:   container(func(c corev1.ContainerStatus) bool { return waits(c, "CreateContainerConfigError") }),
			reason: slipwayv1alpha1.ReasonContainerConfigError, parts: []string{`pod "shop-`, `container "app"`, "run as root"}, mend: demo,
		},
		"image name that cannot be parsed": {
			ask:    func(_ *fixture, s *slipwayv1alpha1.WebAppSpec) { s.Image = "Shop:1" },
			sees:   container(func(c corev1.ContainerStatus) bool { return waits(c, "InvalidImageName") }),
			reason: slipwayv1alpha1.ReasonInvalidImageName, parts: []string{`pod "shop-`, `"Shop:1"`}, mend: demo,
		},
	}
}

// earliest returns when one of the records first showed a matching object.
func earliest(since time.Time, matches func(client.Object) bool, records ...*record) (first time.Time) {
	for _, r := range records {
		for _, s := range r.all() {
			if !s.at.Before(since) && s.event != watch.Deleted && matches(s.object) && (first.IsZero() || s.at.Before(first)) {
				first = s.at
			}
		}
	}
	return first
}

// latest returns when a record last changed from not matching to matching.
func latest(since time.Time, matches func(client.Object) bool, r *record) (last time.Time) {
	matched := false
	for _, s := range r.all() {
		now := matches(s.object)
		if now && !matched && s.at.After(since) {
			last = s.at
		}
		matched = now
	}
	return last
}

func healthy(o client.Object) bool {
	deployment, ok := o.(*appsv1.Deployment)
	return ok && health.RolledOut(deployment)
}

func degraded(o client.Object, reason string) bool {
	app, ok := o.(*slipwayv1alpha1.WebApp)
	return ok && has(slipwayv1alpha1.ConditionDegraded, reason)(app) == nil
}

func pod(matches func(*corev1.Pod) bool) func(client.Object) bool {
	return func(o client.Object) bool {
		p, ok := o.(*corev1.Pod)
		return ok && matches(p)
	}
}

func container(matches func(corev1.ContainerStatus) bool) func(client.Object) bool {
	return pod(func(p *corev1.Pod) bool { return slices.ContainsFunc(p.Status.ContainerStatuses, matches) })
}

func waits(status corev1.ContainerStatus, reasons ...string) bool {
	return status.State.Waiting != nil && slices.Contains(reasons, status.State.Waiting.Reason)
}

func conditionOf(p *corev1.Pod, conditionType corev1.PodConditionType, status corev1.ConditionStatus) bool {
	return slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == conditionType && c.Status == status })
}

func editing(change func(*slipwayv1alpha1.WebAppSpec)) func(*fixture) {
	return func(f *fixture) { f.edit(change) }
}

func secret(name, key, value string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}, StringData: map[string]string{key: value}}
}

func secretIn(f *fixture, name string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: f.namespace}}
}

func fromSecret(name string, keys ...string) []slipwayv1alpha1.EnvFromSource {
	return []slipwayv1alpha1.EnvFromSource{{SecretRef: &slipwayv1alpha1.LocalReference{Name: name}, Keys: keys}}
}
