package desired_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
	"github.com/slipway-dev/slipway/internal/testing/generate"
)

// children is what a spec leads to, as the API server reads it; nil: nothing.
type children struct {
	deployment *appsv1.Deployment
	service    *corev1.Service
	autoscaler *autoscalingv2.HorizontalPodAutoscaler
	budget     *policyv1.PodDisruptionBudget
	claim      *corev1.PersistentVolumeClaim
}

func build(t *testing.T, in desired.Inputs) (built children, raw string) {
	t.Helper()
	var text strings.Builder
	read := func(configuration, into any) bool {
		encoded, err := json.Marshal(configuration)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&text, "%s\n", encoded)
		decoder := json.NewDecoder(bytes.NewReader(encoded))
		decoder.DisallowUnknownFields()
		if err := decoder.Decode(into); err != nil {
			t.Fatal(err)
		}
		return string(encoded) != "null"
	}
	built = children{
		&appsv1.Deployment{}, &corev1.Service{}, &autoscalingv2.HorizontalPodAutoscaler{}, &policyv1.PodDisruptionBudget{}, &corev1.PersistentVolumeClaim{},
	}
	read(desired.Deployment(in), built.deployment)
	read(desired.Service(in.App, in.App.Spec.Port), built.service)
	if !read(desired.HorizontalPodAutoscaler(in.App), built.autoscaler) {
		built.autoscaler = nil
	}
	if !read(desired.PodDisruptionBudget(in.App), built.budget) {
		built.budget = nil
	}
	if !read(desired.PersistentVolumeClaim(in.App), built.claim) {
		built.claim = nil
	}
	return built, text.String()
}

// Whatever the spec: the same children each time, which belong together, and pods that
// satisfy the restricted Pod Security level.
func FuzzChildren(f *testing.F) {
	generate.Seed(f, 20)
	f.Fuzz(func(t *testing.T, data []byte) {
		source := generate.From(data)
		app := generate.WebApp(source)
		in := desired.Inputs{App: app, Revision: desired.RevisionOf(app.Spec, generate.Pick(source, "", "c0ffee")), ConfigVersions: generate.Pick(source, "", "{}")}
		if app.Spec.Autoscaling == nil {
			replicas := desired.MinReplicas(app)
			in.Replicas = &replicas
		}
		before := app.DeepCopy()
		built, raw := build(t, in)
		// A map is walked in another order every time.
		if _, again := build(t, in); again != raw {
			t.Fatalf("built again (-first +again):\n%s", cmp.Diff(raw, again))
		}
		if diff := cmp.Diff(before, app); diff != "" {
			t.Errorf("the WebApp was changed (-before +after):\n%s", diff)
		}
		checkBelonging(t, app, built)
		checkReplicas(t, app, built)
		checkPods(t, app.Spec, built.deployment.Spec.Template.Spec)
	})
}

// checkBelonging checks that the children find each other and are found.
func checkBelonging(t *testing.T, app *slipwayv1alpha1.WebApp, built children) {
	t.Helper()
	template := built.deployment.Spec.Template
	pods := labels.Set(template.Labels)
	selectors := map[string]map[string]string{
		"Deployment": built.deployment.Spec.Selector.MatchLabels, "Service": built.service.Spec.Selector,
	}
	if built.budget != nil {
		selectors["PodDisruptionBudget"] = built.budget.Spec.Selector.MatchLabels
	}
	for _, constraint := range template.Spec.TopologySpreadConstraints {
		selectors[constraint.TopologyKey] = constraint.LabelSelector.MatchLabels
	}
	for what, selector := range selectors {
		if len(selector) == 0 || !labels.SelectorFromSet(selector).Matches(pods) {
			t.Errorf("the selector %v of %s does not find pods with %v", selector, what, pods)
		}
	}
	if built.autoscaler != nil {
		if target := built.autoscaler.Spec.ScaleTargetRef; target.Name != built.deployment.Name || target.Kind != "Deployment" {
			t.Errorf("the autoscaler scales %+v", target)
		}
	}
	port := template.Spec.Containers[0].Ports[0]
	if target := built.service.Spec.Ports[0].TargetPort.StrVal; target != port.Name || port.ContainerPort != app.Spec.Port {
		t.Errorf("the Service leads to port %q, the container has %+v", target, port)
	}
	for _, object := range []interface {
		GetNamespace() string
		GetLabels() map[string]string
	}{built.deployment, built.service, built.autoscaler, built.budget, built.claim} {
		if !reflect.ValueOf(object).IsNil() && (object.GetNamespace() != app.Namespace || object.GetLabels()[slipwayv1alpha1.LabelManagedBy] != slipwayv1alpha1.ManagedBySlipway) {
			t.Errorf("%T is in namespace %q with labels %v", object, object.GetNamespace(), object.GetLabels())
		}
	}
}

// checkReplicas checks that one thing only decides how many pods there are.
func checkReplicas(t *testing.T, app *slipwayv1alpha1.WebApp, built children) {
	t.Helper()
	stated := built.deployment.Spec.Replicas
	switch {
	case (built.autoscaler == nil) == (stated == nil):
		t.Errorf("autoscaler: %v, stated replicas: %v", built.autoscaler, stated)
	case built.claim != nil && *stated > 1:
		t.Errorf("%d pods share a volume", *stated)
	case built.claim != nil && built.deployment.Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType:
		t.Errorf("with a volume the strategy is %+v", built.deployment.Spec.Strategy)
	case built.claim == nil && built.deployment.Spec.Strategy.RollingUpdate.MaxUnavailable.IntValue() != 0:
		t.Errorf("a rollout takes serving pods away: %+v", built.deployment.Spec.Strategy)
	case (built.budget != nil) != (desired.MaxReplicas(app) >= 2):
		t.Errorf("at most %d pods, disruption budget: %v", desired.MaxReplicas(app), built.budget)
	case built.budget != nil && built.budget.Spec.MaxUnavailable.IntValue() != 1:
		t.Errorf("a drain may take %v pods at a time", built.budget.Spec.MaxUnavailable)
	}
}

func checkPods(t *testing.T, spec slipwayv1alpha1.WebAppSpec, pod corev1.PodSpec) {
	t.Helper()
	for _, violation := range unrestricted(pod) {
		t.Errorf("the pods are not restricted: %s", violation)
	}
	if mounted := pod.AutomountServiceAccountToken; mounted == nil || *mounted != (spec.ServiceAccountName != "") {
		t.Errorf("the token of ServiceAccount %q is mounted: %v", spec.ServiceAccountName, mounted)
	}
	container := pod.Containers[0]
	sorted := slices.IsSortedFunc(container.Env, func(a, b corev1.EnvVar) int { return strings.Compare(a.Name, b.Name) })
	unique := map[string]corev1.EnvVar{}
	for _, variable := range container.Env {
		unique[variable.Name] = variable
		if variable.Value != "" && variable.ValueFrom != nil {
			t.Errorf("variable %q has two values", variable.Name)
		}
	}
	if !sorted || len(unique) != len(container.Env) {
		t.Errorf("the variables are not sorted, or one is there twice: %+v", container.Env)
	}
	for name, value := range spec.Env {
		if got, ok := unique[name]; !ok || got.ValueFrom != nil || got.Value != string(value) {
			t.Errorf("variable %q is %+v, want %q", name, got, value)
		}
	}
	volumes, mounts := map[string]bool{}, map[string]bool{}
	for _, volume := range pod.Volumes {
		volumes[volume.Name] = true
	}
	for _, mount := range container.VolumeMounts {
		if !volumes[mount.Name] || mounts[mount.MountPath] {
			t.Errorf("mount %+v has no volume, or its path is taken", mount)
		}
		mounts[mount.MountPath] = true
	}
	if len(volumes) != len(pod.Volumes) || len(volumes) != len(mounts) {
		t.Errorf("volumes %+v, mounts %+v", pod.Volumes, container.VolumeMounts)
	}
}

// unrestricted lists what in a pod violates the restricted Pod Security level, by the
// words of the standard.
func unrestricted(pod corev1.PodSpec) []string {
	var violations []string
	demand := func(ok bool, what string) {
		if !ok {
			violations = append(violations, what)
		}
	}
	security := pod.SecurityContext
	demand(security != nil && security.RunAsNonRoot != nil && *security.RunAsNonRoot, "runAsNonRoot")
	demand(security != nil && (security.RunAsUser == nil || *security.RunAsUser != 0), "runAsUser")
	demand(security != nil && security.SeccompProfile != nil && security.SeccompProfile.Type == corev1.SeccompProfileTypeRuntimeDefault, "seccompProfile")
	demand(security != nil && len(security.Sysctls) == 0, "sysctls")
	demand(!pod.HostNetwork && !pod.HostPID && !pod.HostIPC, "host namespaces")
	demand(len(pod.Containers) == 1 && len(pod.InitContainers)+len(pod.EphemeralContainers) == 0, "containers that are not looked at here")
	for _, volume := range pod.Volumes {
		source := volume.VolumeSource
		source.ConfigMap, source.Secret, source.PersistentVolumeClaim = nil, nil, nil
		demand(source == corev1.VolumeSource{}, "volume "+volume.Name)
	}
	for _, container := range pod.Containers {
		own := container.SecurityContext
		if own == nil || own.Capabilities == nil {
			return append(violations, "securityContext of "+container.Name)
		}
		demand(own.AllowPrivilegeEscalation != nil && !*own.AllowPrivilegeEscalation, "allowPrivilegeEscalation")
		demand(slices.Equal(own.Capabilities.Drop, []corev1.Capability{"ALL"}) && len(own.Capabilities.Add) == 0, "capabilities")
		demand(own.Privileged == nil && own.RunAsNonRoot == nil && own.RunAsUser == nil && own.SeccompProfile == nil && own.ProcMount == nil, "overrides")
		for _, port := range container.Ports {
			demand(port.HostPort == 0, "hostPort")
		}
	}
	return violations
}

// A name says which pod template it is: that of the revision as it is, and as it is read
// back from where it is stored. What pods do not depend on does not count.
func FuzzRevision(f *testing.F) {
	generate.Seed(f, 20)
	f.Fuzz(func(t *testing.T, data []byte) {
		source := generate.From(data)
		app := generate.WebApp(source)
		hash := generate.Pick(source, "", "c0ffee")
		revision := desired.RevisionOf(app.Spec, hash)
		name := revisionName(t, app, hash)
		if problems := validation.IsDNS1123Label(name); len(problems) > 0 || !strings.HasPrefix(name, app.Name+"-") {
			t.Errorf("the name is %q: %v", name, problems)
		}
		template := func(r desired.Revision) string {
			raw, err := json.Marshal(desired.Deployment(desired.Inputs{App: app, Revision: r}).Spec.Template)
			if err != nil {
				t.Fatal(err)
			}
			return string(raw)
		}

		stored, err := json.Marshal(revision)
		if err != nil {
			t.Fatal(err)
		}
		read := desired.Revision{}
		if err := json.Unmarshal(stored, &read); err != nil {
			t.Fatal(err)
		}
		if again, err := read.Name(app); err != nil || again != name || template(read) != template(revision) {
			t.Errorf("read back it is %q (%v), was %q (-was +is):\n%s", again, err, name, cmp.Diff(template(revision), template(read)))
		}

		other := app.DeepCopy()
		other.Spec = generate.Spec(source)
		otherRevision := desired.RevisionOf(other.Spec, hash)
		otherName := revisionName(t, other, hash)
		if (otherName == name) != (template(otherRevision) == template(revision)) {
			t.Errorf("names %q and %q for templates (-one +other):\n%s", name, otherName, cmp.Diff(template(revision), template(otherRevision)))
		}
		if intent(t, app.Spec, hash) == intent(t, other.Spec, hash) && name != otherName {
			t.Errorf("the same is asked for, and leads to %q and %q", name, otherName)
		}

		same := app.DeepCopy()
		same.Spec.Replicas, same.Spec.Autoscaling, same.Spec.Paused = other.Spec.Replicas, other.Spec.Autoscaling, other.Spec.Paused
		if intent(t, app.Spec, hash) != intent(t, same.Spec, hash) || revisionName(t, same, hash) != name {
			t.Error("the number of pods makes another intent or revision")
		}
	})
}

func intent(t *testing.T, spec slipwayv1alpha1.WebAppSpec, configHash string) string {
	t.Helper()
	got, err := desired.Intent(spec, configHash)
	if err != nil {
		t.Fatal(err)
	}
	return got
}
