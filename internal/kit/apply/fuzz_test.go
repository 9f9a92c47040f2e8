package apply

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
	"github.com/slipway-dev/slipway/internal/testing/generate"
)

// generatedChildren are the children of a WebApp.
func generatedChildren(s *generate.Source, app *slipwayv1alpha1.WebApp) map[string]desiredChild {
	in := desired.Inputs{App: app, Revision: desired.RevisionOf(app.Spec, generate.Pick(s, "", "hash")), Replicas: generate.Optional[int32](s, 0, 3), ConfigVersions: generate.Pick(s, "", "{}")}
	children := map[string]desiredChild{
		"Deployment": {func() Configuration { return desired.Deployment(in) }, func() client.Object { return &appsv1.Deployment{} }},
		"Service":    {func() Configuration { return desired.Service(app, app.Spec.Port) }, func() client.Object { return &corev1.Service{} }},
	}
	if desired.HorizontalPodAutoscaler(app) != nil {
		children["HorizontalPodAutoscaler"] = desiredChild{
			func() Configuration { return desired.HorizontalPodAutoscaler(app) }, func() client.Object { return &autoscalingv2.HorizontalPodAutoscaler{} },
		}
	}
	if desired.PodDisruptionBudget(app) != nil {
		children["PodDisruptionBudget"] = desiredChild{
			func() Configuration { return desired.PodDisruptionBudget(app) }, func() client.Object { return &policyv1.PodDisruptionBudget{} },
		}
	}
	if desired.PersistentVolumeClaim(app) != nil {
		children["PersistentVolumeClaim"] = desiredChild{
			func() Configuration { return desired.PersistentVolumeClaim(app) }, func() client.Object { return &corev1.PersistentVolumeClaim{} },
		}
	}
	return children
}

// What is as applied has not drifted, whatever others add to it. What somebody did to it
// is drift where the schema, which takes a hundred times as long, says so.
func FuzzCompare(f *testing.F) {
	generate.Seed(f, 20)
	applier := &Applier{FieldManager: manager}
	drifted := func(t *testing.T, wanted Configuration, object client.Object) bool {
		t.Helper()
		drifted, err := applier.compare(wanted, object)
		if err != nil {
			t.Fatal(err)
		}
		return drifted
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		source := generate.From(data)
		app := generate.WebApp(source)
		// By schema an empty value is drift for ever.
		empty := slices.Contains(slices.Collect(maps.Values(app.Spec.Env)), "")
		children := generatedChildren(source, app)
		others := generatedChildren(source, otherSpec(source, app))
		random := rand.New(rand.NewPCG(uint64(source.Byte()), 1))
		for _, kind := range slices.Sorted(maps.Keys(children)) {
			c := children[kind]
			object := live(t, c, func(map[string]any) {})
			if drifted(t, c.build(), object) {
				t.Fatalf("%s: as applied, and drifted", kind)
			}
			if other, ok := others[kind]; ok {
				differs := !reflect.DeepEqual(fieldsOf(t, c.build()), fieldsOf(t, other.build()))
				if got := drifted(t, other.build(), object); got != differs {
					t.Errorf("%s: another object is desired, and drifted is %v (-is +desired):\n%s", kind, got, cmp.Diff(fieldsOf(t, c.build()), fieldsOf(t, other.build())))
				}
			}
			addOfOthers(object)
			if drifted(t, c.build(), object) {
				t.Errorf("%s: others added something, and it drifted: %+v", kind, object)
			}
			for range 2 {
				var did []string
				object := live(t, c, func(fields map[string]any) {
					for range 1 + random.IntN(2) {
						did = append(did, mutate(random, fields, ""))
					}
				})
				if object == nil || empty {
					continue
				}
				if got, want := drifted(t, c.build(), object), driftedBySchema(t, converter, c.build(), object); got != want {
					t.Errorf("%s after %s: drifted is %v, by schema %v", kind, strings.Join(did, "; "), got, want)
				}
			}
		}
	})
}

// otherSpec changes something of a WebApp, or all of its spec.
func otherSpec(s *generate.Source, app *slipwayv1alpha1.WebApp) *slipwayv1alpha1.WebApp {
	other := app.DeepCopy()
	spec := generate.Spec(s)
	switch s.Below(6) {
	case 0:
		other.Spec.Env = spec.Env
	case 1:
		other.Spec.EnvFrom = spec.EnvFrom
	case 2:
		other.Spec.Files = spec.Files
	case 3:
		other.Spec.Args, other.Spec.Command = spec.Args, spec.Command
	case 4:
		other.Spec.Resources = spec.Resources
	case 5:
		other.Spec = spec
	}
	return other
}

// The API server reads what is desired as YAML. It must read what was meant.
func FuzzEncode(f *testing.F) {
	for _, text := range []string{"", "info", "\x00\x1f", "\x7f", "a\u0085b", "\u009f", "a\u2028b", "\ufeff", "\uffff", "\U0001f600", "\xff", "{}", "~", "a: b # c"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		child := corev1ac.ConfigMap("shop", "team").WithData(map[string]string{"a": text, "b": "value"})
		raw, err := encode(child)
		if err != nil {
			t.Fatal(err)
		}
		var meant, read map[string]any
		if err := json.Unmarshal(raw, &meant); err != nil {
			t.Fatal(err)
		}
		if err := yaml.Unmarshal(raw, &read); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
		if diff := cmp.Diff(meant, read); diff != "" {
			t.Errorf("%s (-meant +read):\n%s", raw, diff)
		}
	})
}

// addOfOthers adds what others own: defaults, labels, items of lists, a status.
func addOfOthers(object client.Object) {
	object.SetResourceVersion("7")
	object.SetFinalizers([]string{"example.com/other"})
	object.GetLabels()["example.com/other"] = ""
	annotations := map[string]string{"example.com/other": ""}
	maps.Copy(annotations, object.GetAnnotations())
	object.SetAnnotations(annotations)
	if deployment, ok := object.(*appsv1.Deployment); ok {
		pod := &deployment.Spec.Template.Spec
		pod.RestartPolicy, pod.DNSPolicy = corev1.RestartPolicyAlways, corev1.DNSClusterFirst
		pod.Containers[0].ImagePullPolicy = corev1.PullAlways
		pod.Containers[0].Env = append([]corev1.EnvVar{{Name: "OTHER", Value: "1"}}, pod.Containers[0].Env...)
		pod.Containers = append(pod.Containers, corev1.Container{Name: "sidecar", Image: "mesh:1"})
		pod.Volumes = append([]corev1.Volume{{Name: "mesh"}}, pod.Volumes...)
		deployment.Status.Replicas = 3
	}
}
