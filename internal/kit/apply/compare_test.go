package apply

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/client-go/applyconfigurations"
	appsv1ac "k8s.io/client-go/applyconfigurations/apps/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/structured-merge-diff/v6/typed"
	"sigs.k8s.io/structured-merge-diff/v6/value"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/controller/webapp/desired"
)

const manager = "slipway-test"

var converter = applyconfigurations.NewTypeConverter(scheme.Scheme)

// desiredChild is something desired, and an empty object of its kind.
type desiredChild struct {
	build func() Configuration
	empty func() client.Object
}

func desiredChildren() map[string]desiredChild {
	replicas := int32(3)
	app := &slipwayv1alpha1.WebApp{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "a", UID: "1"},
		Spec: slipwayv1alpha1.WebAppSpec{
			Image: "shop:1", Port: 8080, Command: []string{"serve"}, Args: []string{"--fast", "--safe"},
			Env: map[string]slipwayv1alpha1.EnvValue{"A": "1", "B": "2", "C": "3"},
			EnvFrom: []slipwayv1alpha1.EnvFromSource{
				{SecretRef: &slipwayv1alpha1.LocalReference{Name: "s"}},
				{ConfigMapRef: &slipwayv1alpha1.LocalReference{Name: "c"}},
			},
			Resources: &slipwayv1alpha1.ResourceRequirements{Requests: corev1.ResourceList{
				corev1.ResourceCPU: resource.MustParse("1500m"), corev1.ResourceMemory: resource.MustParse("64Mi"),
			}},
			Storage:     &slipwayv1alpha1.Storage{Size: resource.MustParse("1Gi"), MountPath: "/data"},
			Autoscaling: &slipwayv1alpha1.Autoscaling{MinReplicas: &replicas, MaxReplicas: 9},
		},
	}
	deployment := func() Configuration {
		return desired.Deployment(desired.Inputs{
			App: app, Revision: desired.RevisionOf(app.Spec, "hash"), Replicas: &replicas, ConfigVersions: "v",
		})
	}
	return map[string]desiredChild{
		"Deployment":              {deployment, func() client.Object { return &appsv1.Deployment{} }},
		"Service":                 {func() Configuration { return desired.Service(app, app.Spec.Port) }, func() client.Object { return &corev1.Service{} }},
		"HorizontalPodAutoscaler": {func() Configuration { return desired.HorizontalPodAutoscaler(app) }, func() client.Object { return &autoscalingv2.HorizontalPodAutoscaler{} }},
		"PodDisruptionBudget":     {func() Configuration { return desired.PodDisruptionBudget(app) }, func() client.Object { return &policyv1.PodDisruptionBudget{} }},
		"PersistentVolumeClaim":   {func() Configuration { return desired.PersistentVolumeClaim(app) }, func() client.Object { return &corev1.PersistentVolumeClaim{} }},
	}
}

// live returns the object that a statement makes, its fields owned by the manager and
// changed as asked.
func live(t *testing.T, c desiredChild, change func(map[string]any)) client.Object {
	t.Helper()
	fields := fieldsOf(t, c.build())
	value, err := converter.ObjectToTyped(&unstructured.Unstructured{Object: fields})
	if err != nil {
		t.Fatal(err)
	}
	set, err := value.ToFieldSet()
	if err != nil {
		t.Fatal(err)
	}
	owned, err := set.Difference(identity).ToJSON()
	if err != nil {
		t.Fatal(err)
	}
	change(fields)
	object := c.empty()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, object); err != nil {
		return nil // The change made something that is no such object.
	}
	object.GetObjectKind().SetGroupVersionKind(kindOf(c.build()))
	entry := metav1.ManagedFieldsEntry{Manager: manager, Operation: metav1.ManagedFieldsOperationApply, FieldsV1: &metav1.FieldsV1{}}
	entry.FieldsV1.SetRawBytes(owned)
	object.SetManagedFields([]metav1.ManagedFieldsEntry{entry})
	return object
}

func fieldsOf(t *testing.T, wanted Configuration) map[string]any {
	t.Helper()
	raw, err := json.Marshal(wanted)
	if err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	return object.Object
}

// driftedBySchema says the same as compare, slowly: by the schema of the kind.
func driftedBySchema(t *testing.T, c managedfields.TypeConverter, wanted Configuration, object client.Object) bool {
	t.Helper()
	owned := &fieldpath.Set{}
	if err := owned.FromJSON(bytes.NewReader(object.GetManagedFields()[0].FieldsV1.GetRawBytes())); err != nil {
		t.Fatal(err)
	}
	is, err := c.ObjectToTyped(object)
	if err != nil {
		return true
	}
	want, err := c.ObjectToTyped(&unstructured.Unstructured{Object: fieldsOf(t, wanted)})
	if err != nil {
		t.Fatal(err)
	}
	difference, err := is.ExtractItems(owned.Leaves(), typed.WithAppendKeyFields()).Compare(want)
	if err != nil {
		t.Fatal(err)
	}
	if !difference.ExcludeFields(identity).IsSame() {
		return true
	}
	// Comparing takes no notice of the order of items; applying does.
	merged, err := is.Merge(want)
	if err != nil {
		t.Fatal(err)
	}
	return !value.Equals(is.RemoveItems(identity).AsValue(), merged.RemoveItems(identity).AsValue())
}

func TestCompareAgreesWithTheSchema(t *testing.T) {
	applier := &Applier{FieldManager: manager}
	for name, c := range desiredChildren() {
		t.Run(name, func(t *testing.T) {
			random := rand.New(rand.NewPCG(1, 2))
			var drifts, same int
			for i := range 240 {
				var what string
				object := live(t, c, func(fields map[string]any) {
					for range i % 3 {
						what += mutate(random, fields, "") + "; "
					}
				})
				if object == nil {
					continue
				}
				got, err := applier.compare(c.build(), object)
				if err != nil {
					t.Fatal(err)
				}
				want := driftedBySchema(t, converter, c.build(), object)
				if got != want {
					t.Fatalf("after %s: drifted is %v, by schema %v", what, got, want)
				}
				if got {
					drifts++
				} else {
					same++
				}
			}
			if drifts < 30 || same < 30 {
				t.Errorf("%d drifts and %d without are too few to prove anything", drifts, same)
			}
		})
	}
}

// mutate changes, adds or removes something somewhere, and says what.
func mutate(random *rand.Rand, node any, path string) string {
	switch node := node.(type) {
	case map[string]any:
		keys := make([]string, 0, len(node))
		for key := range node {
			keys = append(keys, key)
		}
		if len(keys) == 0 {
			return "nothing"
		}
		slices.Sort(keys)
		key := keys[random.IntN(len(keys))]
		switch random.IntN(8) {
		case 0:
			delete(node, key)
			return "removed " + path + "." + key
		case 1:
			node["other"] = "value"
			return "added " + path + ".other"
		}
		switch value := node[key].(type) {
		case map[string]any, []any:
			return mutate(random, value, path+"."+key)
		case string:
			node[key] = value + "x"
		case int64:
			node[key] = value + 1
		case bool:
			node[key] = !value
		}
		return "changed " + path + "." + key
	case []any:
		if random.IntN(3) == 0 {
			random.Shuffle(len(node), func(i, j int) { node[i], node[j] = node[j], node[i] })
			return "shuffled " + path
		}
		i := random.IntN(len(node))
		if _, ok := node[i].(string); ok {
			node[i] = "x"
			return fmt.Sprintf("changed %s[%d]", path, i)
		}
		return mutate(random, node[i], fmt.Sprintf("%s[%d]", path, i))
	}
	return "nothing"
}

// The API server does not store an empty value. That is no drift, although a comparison by
// schema reports drift every time.
func TestAnEmptyValueIsKeptByLeavingItOut(t *testing.T) {
	app := &slipwayv1alpha1.WebApp{
		ObjectMeta: metav1.ObjectMeta{Name: "shop", Namespace: "a", UID: "1"},
		Spec:       slipwayv1alpha1.WebAppSpec{Image: "shop:1", Port: 80, Env: map[string]slipwayv1alpha1.EnvValue{"EMPTY": ""}},
	}
	c := desiredChild{
		build: func() Configuration {
			return desired.Deployment(desired.Inputs{App: app, Revision: desired.RevisionOf(app.Spec, "")})
		},
		empty: func() client.Object { return &appsv1.Deployment{} },
	}
	applier := &Applier{FieldManager: manager}
	object := live(t, c, func(map[string]any) {})
	if drifted, err := applier.compare(c.build(), object); err != nil || drifted {
		t.Errorf("drifted is %v (%v), want false", drifted, err)
	}
	object.(*appsv1.Deployment).Spec.Template.Spec.Containers[0].Env[0].Value = "full"
	if drifted, err := applier.compare(c.build(), object); err != nil || !drifted {
		t.Errorf("with another value drifted is %v (%v), want true", drifted, err)
	}
}

func TestCompareFollowsWhatIsDesired(t *testing.T) {
	applier := &Applier{FieldManager: manager}
	c := desiredChildren()["Deployment"]
	object := live(t, c, func(map[string]any) {})
	cases := map[string]func(map[string]any){
		"a field is not desired any more": func(f map[string]any) { delete(f["spec"].(map[string]any), "replicas") },
		"another field is desired":        func(f map[string]any) { f["spec"].(map[string]any)["paused"] = true },
		"another label is desired":        func(f map[string]any) { f["metadata"].(map[string]any)["labels"].(map[string]any)["x"] = "y" },
		"items are desired in another order": func(f map[string]any) {
			pod := f["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
			slices.Reverse(pod["containers"].([]any)[0].(map[string]any)["env"].([]any))
		},
		"an item is not desired any more": func(f map[string]any) {
			pod := f["spec"].(map[string]any)["template"].(map[string]any)["spec"].(map[string]any)
			container := pod["containers"].([]any)[0].(map[string]any)
			container["env"] = container["env"].([]any)[1:]
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			fields := fieldsOf(t, c.build())
			change(fields)
			raw, err := json.Marshal(fields)
			if err != nil {
				t.Fatal(err)
			}
			wanted := &appsv1ac.DeploymentApplyConfiguration{}
			if err := json.Unmarshal(raw, wanted); err != nil {
				t.Fatal(err)
			}
			drifted, err := applier.compare(wanted, object)
			if err != nil || !drifted {
				t.Errorf("drifted is %v (%v), want true", drifted, err)
			}
		})
	}
}
