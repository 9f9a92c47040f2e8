package endstate

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

const deployment = `
kind: Deployment
metadata:
  name: shop
  namespace: test-a
  uid: 1-2-3
  resourceVersion: "7"
  generation: 2
  creationTimestamp: "2026-01-01T00:00:00Z"
  labels: {app: shop}
  annotations:
    deployment.kubernetes.io/revision: "3"
    slipway.dev/config-versions: '{"Secret/db":"123/abc","Secret/tls#A,B":"456:A/def"}'
    slipway.dev/generation: "2"
  ownerReferences: [{kind: WebApp, name: shop, uid: 4-5-6}]
  managedFields:
    - {manager: kubectl, operation: Update, time: "2026-01-01T00:00:00Z", fieldsV1: {"f:spec": {"f:replicas": {}}}}
    - {manager: slipway-webapp-handover, operation: Apply, fieldsV1: {"f:spec": {"f:replicas": {}}}}
    - {manager: slipway-webapp, operation: Apply, time: "2026-01-01T00:00:00Z", fieldsV1: {"f:metadata": {"f:ownerReferences": {'k:{"uid":"4-5-6"}': {}}}}}
spec:
  replicas: 2
status:
  observedGeneration: 2
  conditions: [{type: Available, lastTransitionTime: "2026-01-01T00:00:00Z", message: http://shop.test-a.svc}]
`

func TestWhatDiffersFromRunToRunIsLeftOut(t *testing.T) {
	object := parse(t, deployment)
	before := object.DeepCopy()
	got := From(object)
	want := parse(t, `
kind: Deployment
metadata:
  name: shop
  namespace: NAMESPACE
  labels: {app: shop}
  annotations: {slipway.dev/config-versions: '{"Secret/db":"VERSION/abc","Secret/tls#A,B":"VERSION:A/def"}', slipway.dev/generation: COUNT}
  ownerReferences: [{kind: WebApp, name: shop}]
  managedFields:
    slipway-webapp Apply: '{"f:metadata":{"f:ownerReferences":{"k:{\"uid\":\"UID\"}":{}}}}'
spec:
  replicas: 2
status:
  conditions: [{type: Available, message: http://shop.NAMESPACE.svc}]
`).Object
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(before.Object, object.Object); diff != "" {
		t.Errorf("the object itself was changed (-before +after):\n%s", diff)
	}
}

func TestWhatCountsIsSeen(t *testing.T) {
	tests := map[string]struct {
		path  []string
		value any
	}{
		"a field":                         {[]string{"spec", "replicas"}, int64(3)},
		"a label":                         {[]string{"metadata", "labels", "app"}, "shop2"},
		"which key is missing":            {[]string{"metadata", "annotations", "slipway.dev/config-versions"}, `{"Secret/db":"123/abc","Secret/tls#A,B":"456:B/def"}`},
		"what a configuration hashed to":  {[]string{"metadata", "annotations", "slipway.dev/config-versions"}, `{"Secret/db":"123/xyz","Secret/tls#A,B":"456:A/def"}`},
		"a configuration that is no more": {[]string{"metadata", "annotations", "slipway.dev/config-versions"}, `{}`},
		"a count that is no more":         {[]string{"metadata", "annotations"}, map[string]any{"slipway.dev/config-versions": `{"Secret/db":"123/abc"}`}},
		"another owner of fields": {[]string{"metadata", "managedFields"}, []any{
			map[string]any{"manager": "slipway-webapp", "operation": "Apply", "fieldsV1": map[string]any{}},
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			object := parse(t, deployment)
			if err := unstructured.SetNestedField(object.Object, tc.value, tc.path...); err != nil {
				t.Fatal(err)
			}
			if cmp.Equal(From(object), From(parse(t, deployment))) {
				t.Error("the end states are equal")
			}
		})
	}
}

func TestANodePortCountsWhereWeStateIt(t *testing.T) {
	got := From(parse(t, `
kind: Service
metadata:
  managedFields:
    - {manager: slipway-apigateway, operation: Apply, fieldsV1: {"f:spec": {"f:ports": {'k:{"port":80,"protocol":"TCP"}': {"f:nodePort": {}}, 'k:{"port":443,"protocol":"TCP"}': {}}}}}
spec:
  ports: [{port: 80, protocol: TCP, nodePort: 30080}, {port: 443, protocol: TCP, nodePort: 31234}]
`))
	want := parse(t, "spec: {ports: [{port: 80, protocol: TCP, nodePort: 30080}, {port: 443, protocol: TCP}]}").Object["spec"]
	if diff := cmp.Diff(want, got["spec"]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
