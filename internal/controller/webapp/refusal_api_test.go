//go:build apitest

package webapp_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

func (f *fixture) foreign() map[string]client.Object {
	meta := metav1.ObjectMeta{Name: "shop", Namespace: f.namespace, Labels: map[string]string{"team": "other"}}
	labels := map[string]string{"app": "other"}
	return map[string]client.Object{
		"Deployment": &appsv1.Deployment{ObjectMeta: meta, Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "other", Image: "other"}}},
			},
		}},
		"Service":             &corev1.Service{ObjectMeta: meta, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}},
		"PodDisruptionBudget": &policyv1.PodDisruptionBudget{ObjectMeta: meta, Spec: policyv1.PodDisruptionBudgetSpec{MaxUnavailable: ptr(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: labels}}},
	}
}

func TestAForeignObjectIsRefusedNamedAndUntouched(t *testing.T) {
	env.StartOperator(t, nil)
	// With our own label on it, and without: the cache shows one and not the other.
	for _, labelled := range []bool{false, true} {
		for kind := range newFixture(t).foreign() {
			t.Run(kind, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				object := f.foreign()[kind]
				if labelled {
					object.SetLabels(map[string]string{slipwayv1alpha1.LabelManagedBy: slipwayv1alpha1.ManagedBySlipway})
				}
				f.create(object)
				f.create(f.app(func(a *slipwayv1alpha1.WebApp) { a.Spec.Replicas = ptr[int32](2) }))

				app := f.waitFor(slipwayv1alpha1.ConditionStalled, metav1.ConditionTrue, slipwayv1alpha1.ReasonNameConflict)
				if err := has(app, "Ready", metav1.ConditionFalse, slipwayv1alpha1.ReasonNameConflict); err != nil {
					t.Error(err)
				}
				want := kind + ` "shop" exists and was not made by Slipway: rename or delete one of them`
				if got := meta.FindStatusCondition(app.Status.Conditions, "Stalled").Message; got != want {
					t.Errorf("message %q, want %q", got, want)
				}
				if available := meta.FindStatusCondition(app.Status.Conditions, "Available"); kind == "Deployment" && available.Message != want {
					t.Errorf("Available says %q, and Ready %q", available.Message, want)
				}
				if has := app.Status.ServiceURL != ""; has == (kind == "Service") {
					t.Errorf("the URL is %q", app.Status.ServiceURL)
				}
				if app.Status.Replicas != 0 || app.Status.Image == "other" {
					t.Errorf("status speaks of the foreign object: %+v", app.Status)
				}
				after := f.foreign()[kind]
				if err := f.get("shop", after); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(object, after); diff != "" {
					t.Errorf("the foreign object was changed (-want +got):\n%s", diff)
				}

				f.delete(object)
				f.noticed("the name is free", func() error {
					app := &slipwayv1alpha1.WebApp{}
					if err := f.get("shop", app); err != nil {
						return err
					}
					if c := meta.FindStatusCondition(app.Status.Conditions, "Stalled"); c != nil {
						return fmt.Errorf("still stalled: %s", c.Message)
					}
					return nil
				})
				f.deployment()
				f.rollOut()
			})
		}
	}
}

func TestBadInputIsRefusedWithOneSentenceThatNamesTheField(t *testing.T) {
	tests := map[string]struct {
		change func(*slipwayv1alpha1.WebApp)
		want   string
	}{
		"no image":                   {func(a *slipwayv1alpha1.WebApp) { a.Spec.Image = "" }, "spec.image"},
		"no program":                 {func(a *slipwayv1alpha1.WebApp) { a.Spec.Command = []string{""} }, "spec.command must begin with a program"},
		"files over processes":       {mounted("/proc"), "mountPath must not be in /proc"},
		"files in devices":           {mounted("/dev/shm"), "mountPath must not be in /proc"},
		"files over the system":      {mounted("/sys/"), "mountPath must not be in /proc"},
		"files over the hosts":       {mounted("/etc/hosts"), "mountPath must not be in /proc"},
		"files over the token":       {mounted("/var/run/secrets/kubernetes.io/serviceaccount"), "mountPath must not be in /proc"},
		"files over the token too":   {mounted("/run/secrets/kubernetes.io"), "mountPath must not be in /proc"},
		"storage over processes":     {stored("1Gi", "/proc"), "spec.storage.mountPath must not be in /proc"},
		"less than a byte":           {stored("1m", "/data"), "spec.storage.size must be a whole number of bytes"},
		"no size":                    {stored("0", "/data"), "spec.storage.size must be greater than 0"},
		"a blank in the health path": {func(a *slipwayv1alpha1.WebApp) { a.Spec.Health = &slipwayv1alpha1.HealthCheck{Path: "/a b"} }, "spec.health.path must not hold white space"},
		"blank in image":             {func(a *slipwayv1alpha1.WebApp) { a.Spec.Image = "a b" }, "spec.image must not hold white space"},
		"no port":                    {func(a *slipwayv1alpha1.WebApp) { a.Spec.Port = 0 }, "spec.port"},
		"port":                       {func(a *slipwayv1alpha1.WebApp) { a.Spec.Port = 70000 }, "spec.port"},
		"negative replicas":          {func(a *slipwayv1alpha1.WebApp) { a.Spec.Replicas = ptr[int32](-1) }, "spec.replicas"},
		"long name":                  {func(a *slipwayv1alpha1.WebApp) { a.Name = strings.Repeat("a", 53) }, "metadata.name must be at most 52 characters"},
		"name with dot":              {func(a *slipwayv1alpha1.WebApp) { a.Name = "a.b" }, "metadata.name must start with a letter"},
		"env name":                   {func(a *slipwayv1alpha1.WebApp) { a.Spec.Env = map[string]slipwayv1alpha1.EnvValue{"A": "", "1A": ""} }, "spec.env: the name '1A' must hold only"},
		"no image at all":            {func(a *slipwayv1alpha1.WebApp) { a.Spec.Image = ":::" }, "spec.image must name an image"},
		"a tag alone":                {func(a *slipwayv1alpha1.WebApp) { a.Spec.Image = ":1" }, "spec.image must name an image"},
		"a repository in capitals":   {func(a *slipwayv1alpha1.WebApp) { a.Spec.Image = "Shop:1" }, "spec.image must name an image"},
		"a URL in place of an image": {func(a *slipwayv1alpha1.WebApp) { a.Spec.Image = "https://registry.example.com/shop" }, "spec.image must name an image"},
		"a short digest":             {func(a *slipwayv1alpha1.WebApp) { a.Spec.Image = "shop@sha256:c0ffee" }, "spec.image must name an image"},
		"negative memory":            {resources("", "memory=-1"), "spec.resources.limits.memory must not be negative"},
		"negative request":           {resources("cpu=-1", ""), "spec.resources.requests.cpu must not be negative"},
		"milli-bytes":                {resources("", "memory=100m"), "spec.resources.limits.memory must be a whole number"},
		"half a byte":                {resources("memory=1.5", ""), "spec.resources.requests.memory must be a whole number"},
		"an unknown resource":        {resources("", "cpus=1"), "spec.resources.limits: there is no resource cpus"},
		"an unknown request":         {resources("memroy=1Gi", ""), "spec.resources.requests: there is no resource memroy"},
		"a device without limit":     {resources("example.com/gpu=1", "memory=1Gi"), "spec.resources.limits.example.com/gpu is required with its request"},
		"envFrom nothing": {func(a *slipwayv1alpha1.WebApp) {
			a.Spec.EnvFrom = []slipwayv1alpha1.EnvFromSource{{Prefix: "A"}}
		}, "set exactly one of secretRef and configMapRef"},
		"files twice": {func(a *slipwayv1alpha1.WebApp) {
			ref := &slipwayv1alpha1.LocalReference{Name: "x"}
			a.Spec.Files = []slipwayv1alpha1.FileSource{{SecretRef: ref, MountPath: "/a"}, {ConfigMapRef: ref, MountPath: "/a"}}
		}, "every mountPath must be unique"},
		"files twice, with a slash":          {mounted("/etc/x", "/etc/x/"), "spec.files: every mountPath must be unique"},
		"files twice, with an empty element": {mounted("/etc/x", "/etc//x"), "spec.files[1].mountPath: Invalid value: \"/etc//x\": mountPath must not hold '//'"},
		"files twice, with a dot":            {mounted("/etc/x", "/etc/./x"), "mountPath must not hold"},
		"files twice, with a dot at the end": {mounted("/etc/x", "/etc/x/."), "mountPath must not hold"},
		"files over the way up":              {mounted("/etc/x/.."), "mountPath must not hold"},
		"files over the root":                {mounted("//"), "mountPath must not hold"},
		"files over storage, with a slash": {func(a *slipwayv1alpha1.WebApp) {
			mounted("/data/")(a)
			a.Spec.Storage = &slipwayv1alpha1.Storage{Size: quantity("1Gi"), MountPath: "/data"}
		}, "spec.files: mountPath must differ from spec.storage.mountPath"},
		"storage over the root": {func(a *slipwayv1alpha1.WebApp) {
			a.Spec.Storage = &slipwayv1alpha1.Storage{Size: quantity("1Gi"), MountPath: "//"}
		}, "spec.storage.mountPath must not hold"},
		"files over storage": {func(a *slipwayv1alpha1.WebApp) {
			a.Spec.Storage = &slipwayv1alpha1.Storage{Size: quantity("1Gi"), MountPath: "/data"}
			a.Spec.Files = []slipwayv1alpha1.FileSource{{SecretRef: &slipwayv1alpha1.LocalReference{Name: "x"}, MountPath: "/data"}}
		}, "spec.files: mountPath must differ from spec.storage.mountPath"},
		"relative mountPath": {func(a *slipwayv1alpha1.WebApp) {
			a.Spec.Files = []slipwayv1alpha1.FileSource{{SecretRef: &slipwayv1alpha1.LocalReference{Name: "x"}, MountPath: "etc"}}
		}, "mountPath must be absolute"},
		"health path": {func(a *slipwayv1alpha1.WebApp) { a.Spec.Health = &slipwayv1alpha1.HealthCheck{Path: "x"} }, "spec.health.path must start with '/'"},
		"requests over limits": {func(a *slipwayv1alpha1.WebApp) {
			a.Spec.Resources = &slipwayv1alpha1.ResourceRequirements{
				Requests: corev1.ResourceList{"cpu": quantity("2")}, Limits: corev1.ResourceList{"cpu": quantity("500m")},
			}
		}, "spec.resources.requests.cpu must not exceed spec.resources.limits.cpu"},
		"autoscaling bounds": {func(a *slipwayv1alpha1.WebApp) {
			a.Spec.Resources = &slipwayv1alpha1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": quantity("1")}}
			a.Spec.Autoscaling = &slipwayv1alpha1.Autoscaling{MinReplicas: ptr[int32](5), MaxReplicas: 2}
		}, "spec.autoscaling.minReplicas must not exceed maxReplicas"},
		"autoscaling without a request": {func(a *slipwayv1alpha1.WebApp) {
			a.Spec.Autoscaling = &slipwayv1alpha1.Autoscaling{MaxReplicas: 2}
		}, "spec.resources.requests.cpu is required with spec.autoscaling"},
		"storage and replicas": {func(a *slipwayv1alpha1.WebApp) {
			a.Spec.Storage = &slipwayv1alpha1.Storage{Size: quantity("1Gi"), MountPath: "/data"}
			a.Spec.Replicas = ptr[int32](2)
		}, "spec.replicas must be 0 or 1 with spec.storage"},
		"storage and autoscaling": {func(a *slipwayv1alpha1.WebApp) {
			a.Spec.Storage = &slipwayv1alpha1.Storage{Size: quantity("1Gi"), MountPath: "/data"}
			a.Spec.Resources = &slipwayv1alpha1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": quantity("1")}}
			a.Spec.Autoscaling = &slipwayv1alpha1.Autoscaling{MaxReplicas: 2}
		}, "spec.autoscaling cannot be combined with spec.storage"},
		"storage size": {func(a *slipwayv1alpha1.WebApp) {
			a.Spec.Storage = &slipwayv1alpha1.Storage{MountPath: "/data"}
		}, "spec.storage.size must be greater than 0"},
		"serviceAccountName": {func(a *slipwayv1alpha1.WebApp) { a.Spec.ServiceAccountName = "Not a name" }, "spec.serviceAccountName must be a DNS subdomain"},
		"storageClassName": {func(a *slipwayv1alpha1.WebApp) {
			a.Spec.Storage = &slipwayv1alpha1.Storage{Size: quantity("1Gi"), MountPath: "/data", StorageClassName: ptr("Not a name")}
		}, "spec.storage.storageClassName must be a DNS subdomain"},
		"secretRef": {func(a *slipwayv1alpha1.WebApp) {
			a.Spec.EnvFrom = []slipwayv1alpha1.EnvFromSource{{SecretRef: &slipwayv1alpha1.LocalReference{Name: "a..b"}}}
		}, "spec.envFrom[0].secretRef.name: Invalid value: \"a..b\": name must be a DNS subdomain"},
		"envFrom key": {func(a *slipwayv1alpha1.WebApp) {
			a.Spec.EnvFrom = []slipwayv1alpha1.EnvFromSource{{SecretRef: &slipwayv1alpha1.LocalReference{Name: "x"}, Keys: []string{"not a key"}}}
		}, "spec.envFrom[0].keys[0]"},
		"files key": {func(a *slipwayv1alpha1.WebApp) {
			a.Spec.Files = []slipwayv1alpha1.FileSource{{SecretRef: &slipwayv1alpha1.LocalReference{Name: "x"}, MountPath: "/x", Keys: []string{".."}}}
		}, "spec.files[0].keys[0]"},
		"onFailure": {func(a *slipwayv1alpha1.WebApp) {
			a.Spec.Rollout = &slipwayv1alpha1.Rollout{OnFailure: "Panic"}
		}, "spec.rollout.onFailure"},
	}
	f := newFixture(t)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			err := env.Client.Create(t.Context(), f.app(tc.change))
			if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("the answer is %v, want one that says %q", err, tc.want)
			}
		})
	}
}

// resources returns a change of spec.resources: requests and limits as name=quantity.
func resources(requests, limits string) func(*slipwayv1alpha1.WebApp) {
	list := func(text string) corev1.ResourceList {
		made := corev1.ResourceList{}
		for _, item := range strings.Fields(text) {
			name, amount, _ := strings.Cut(item, "=")
			made[corev1.ResourceName(name)] = quantity(amount)
		}
		return made
	}
	return func(a *slipwayv1alpha1.WebApp) {
		a.Spec.Resources = &slipwayv1alpha1.ResourceRequirements{Requests: list(requests), Limits: list(limits)}
	}
}

// mounted returns a change that mounts files at all these paths.
func mounted(paths ...string) func(*slipwayv1alpha1.WebApp) {
	return func(a *slipwayv1alpha1.WebApp) {
		for _, path := range paths {
			a.Spec.Files = append(a.Spec.Files, slipwayv1alpha1.FileSource{ConfigMapRef: &slipwayv1alpha1.LocalReference{Name: "x"}, MountPath: path})
		}
	}
}

func TestWhatIsSpelledUnusuallyIsAccepted(t *testing.T) {
	digest := "sha256:" + strings.Repeat("0a", 32)
	tests := map[string]func(*slipwayv1alpha1.WebApp){
		"a slash at the end":         mounted("/etc/x/", "/etc/y"),
		"one within the other":       mounted("/etc/x", "/etc/x/y"),
		"names that begin with dots": mounted("/etc/.x", "/etc/..x", "/etc/...", "/x."),
		"huge pages":                 resources("hugepages-2Mi=4Mi cpu=1", "hugepages-2Mi=4Mi"),
		"devices":                    resources("", "example.com/gpu=2 cpu=100m"),
		"devices twice":              resources("example.com/gpu=2", "example.com/gpu=2"),
		"nothing":                    resources("cpu=0 memory=0", ""),
		"much":                       resources("memory=1e18", "memory=7Ei"),
		"parts of a megabyte":        resources("memory=1.5Mi", "memory=0.5Gi ephemeral-storage=1.25Gi"),
		"thousands of thousandths":   resources("memory=128974848000m", ""),
		"other spellings of one":     resources("cpu=1000m", "cpu=1"),
	}
	for _, image := range []string{
		"shop", "shop:1", "a/b/c", "registry.example.com/shop", "registry.example.com:5000/team/shop:1.4.2_x-y", "localhost/shop", "localhost:5000/shop",
		"10.0.0.1:5000/shop", "[fd00::1]:5000/shop", "shop@" + digest, "Registry.example.com/shop:V1@" + digest, "a__b/c--d.e", strings.Repeat("a", 300) + ":1",
	} {
		tests["image "+image] = func(a *slipwayv1alpha1.WebApp) { a.Spec.Image = image }
	}
	f := newFixture(t)
	for name, change := range tests {
		t.Run(name, func(t *testing.T) {
			if err := env.Client.Create(t.Context(), f.app(change), client.DryRunAll); err != nil {
				t.Error(err)
			}
		})
	}
}

// What the schema cannot know is reported in status, and a good edit recovers.
func TestWhatTheAPIServerRefusesIsNamed(t *testing.T) {
	env.StartOperator(t, nil)
	f := newFixture(t)
	app := f.app(func(a *slipwayv1alpha1.WebApp) {
		a.Spec.EnvFrom = []slipwayv1alpha1.EnvFromSource{}
		a.Spec.Resources = &slipwayv1alpha1.ResourceRequirements{Requests: corev1.ResourceList{"hugepages-2Mi": quantity("2Mi")}, Limits: corev1.ResourceList{"hugepages-2Mi": quantity("2Mi")}}
	})
	f.create(app)
	stalled := f.waitFor(slipwayv1alpha1.ConditionStalled, metav1.ConditionTrue, slipwayv1alpha1.ReasonInvalid)
	message := meta.FindStatusCondition(stalled.Status.Conditions, "Stalled").Message
	if !strings.HasPrefix(message, `Deployment "shop" is refused: spec.resources: `) || strings.Contains(message, "containers[0]") {
		t.Errorf("message %q", message)
	}
	update(f, app, func(a *slipwayv1alpha1.WebApp) { a.Spec.Resources = nil })
	f.deployment()
	f.rollOut()
}

// stored makes a WebApp have a volume.
func stored(size, mountPath string) func(*slipwayv1alpha1.WebApp) {
	return func(a *slipwayv1alpha1.WebApp) {
		a.Spec.Storage = &slipwayv1alpha1.Storage{Size: quantity(size), MountPath: mountPath}
	}
}

// What no Go client can send is written by hand. The words of a refusal hold no regular expression of an amount.
func TestWhatIsNoAmountIsRefusedInWords(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	tests := map[string]struct{ spec, want string }{
		"a unit that is none":      {`"storage":{"size":"10GB","mountPath":"/data"}`, "spec.storage.size must be a number of bytes, such as 10Gi"},
		"a size that is not there": {`"storage":{"size":"","mountPath":"/data"}`, "spec.storage.size must be a number of bytes"},
		"an empty image":           {`"image":""`, "spec.image in body should be at least 1 chars long"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			app := &unstructured.Unstructured{}
			raw := fmt.Sprintf(`{"apiVersion":"slipway.dev/v1alpha1","kind":"WebApp","metadata":{"name":"shop","namespace":%q},"spec":{"port":80,"image":"shop:1",%s}}`, f.namespace, tc.spec)
			raw = strings.Replace(raw, `"image":"shop:1","image"`, `"image"`, 1)
			if err := json.Unmarshal([]byte(raw), &app.Object); err != nil {
				t.Fatal(err)
			}
			err := env.Client.Create(t.Context(), app)
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), "should match") || strings.Contains(err.Error(), "white space") {
				t.Errorf("the answer is %v, want %q", err, tc.want)
			}
		})
	}
}
