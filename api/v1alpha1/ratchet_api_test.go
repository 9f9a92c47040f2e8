//go:build apitest

package v1alpha1_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"
)

// An object that was made before there was a rule stays usable: its labels, its other fields and its status can be written.
func TestWhatWasAcceptedBeforeThereWasARuleCanStillBeWritten(t *testing.T) {
	tests := map[string]struct{ plural, kind, spec, other, refused string }{
		"WebApp": {
			"webapps", "WebApp",
			"image: 'shop:1', port: 80, storage: {size: 10GB, mountPath: /}, resources: {requests: {memory: 10GB}, limits: {memory: 50x}}, files: [{mountPath: /proc, secretRef: {name: a}}]",
			`{"spec":{"port":81}}`, `{"spec":{"storage":{"mountPath":"/sys"}}}`,
		},
		"APIGateway": {
			"apigateways", "APIGateway",
			"resources: {limits: {memory: 10GB}}, routes: [{timeouts: {request: 5 min, backend: 1d}, rateLimit: {requests: 1, period: 1d}, clientAddresses: {allow: [office.example.com]}, " + backend + "}]",
			`{"spec":{"replicas":3}}`, `{"spec":{"resources":{"limits":{"memory":"11GB"}}}}`,
		},
		"GatewayParameters": {
			"gatewayparameters", "GatewayParameters", "resources: {limits: {memory: 10GB}}", `{"spec":{"replicas":3}}`,
			`{"spec":{"resources":{"limits":{"memory":"11GB"}}}}`,
		},
		"Backup": {
			"backups", "Backup", "source: shop, destination: 's3://shop', deadline: 5 min, mover: {resources: {limits: {memory: 10GB}}}",
			`{"spec":{"historyLimit":3}}`, `{"spec":{"deadline":"6 min"}}`,
		},
		"MonitorRule": {"monitorrules", "MonitorRule", "when: 'true', for: 1d", `{"spec":{"when":"false"}}`, `{"spec":{"for":"2d"}}`},
	}
	namespace := env.Namespace(t)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			group := "ratchet.example.com"
			before, after := definitionAs(t, tc.plural, group), definitionAs(t, tc.plural, group)
			for i := range before.Spec.Versions {
				withoutRules(before.Spec.Versions[i].Schema.OpenAPIV3Schema)
			}
			if _, err := envtest.InstallCRDs(env.Config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{before}}); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = env.Client.Delete(context.WithoutCancel(t.Context()), before) })
			made := &unstructured.Unstructured{}
			manifest := fmt.Sprintf("apiVersion: %s/v1alpha1\nkind: %s\nmetadata: {name: old, namespace: %s}\nspec: {%s}\n", group, tc.kind, namespace, tc.spec)
			if err := yaml.Unmarshal([]byte(manifest), &made.Object); err != nil {
				t.Fatal(err)
			}
			c := fresh(t)
			if err := c.Create(t.Context(), made); err != nil {
				t.Fatal(err)
			}
			known := &apiextensionsv1.CustomResourceDefinition{}
			if err := c.Get(t.Context(), client.ObjectKeyFromObject(before), known); err != nil {
				t.Fatal(err)
			}
			known.Spec = after.Spec
			if err := c.Update(t.Context(), known); err != nil {
				t.Fatal(err)
			}
			// The rules are in force when such an object is refused.
			err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
				again := made.DeepCopy()
				again.SetName("new")
				again.SetResourceVersion("")
				return apierrors.IsInvalid(c.Create(ctx, again, client.DryRunAll)), nil
			})
			if err != nil {
				t.Fatal("such an object is accepted anew")
			}
			patch := func(text string) error {
				return c.Patch(t.Context(), made.DeepCopy(), client.RawPatch(types.MergePatchType, []byte(text)))
			}
			if err := patch(`{"metadata":{"labels":{"a":"b"}}}`); err != nil {
				t.Errorf("a label: %v", err)
			}
			if err := patch(tc.other); err != nil {
				t.Errorf("another field: %v", err)
			}
			if slices.ContainsFunc(after.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool {
				return v.Subresources != nil && v.Subresources.Status != nil
			}) {
				status := client.RawPatch(types.MergePatchType, []byte(`{"status":{"observedGeneration":1}}`))
				if err := c.Status().Patch(t.Context(), made.DeepCopy(), status); err != nil {
					t.Errorf("the status: %v", err)
				}
			}
			if err := patch(tc.refused); !apierrors.IsInvalid(err) {
				t.Errorf("another wrong value: %v", err)
			}
		})
	}
}

// definitionAs reads one of our definitions as one of another group.
func definitionAs(t *testing.T, plural, group string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	data, err := os.ReadFile("../../config/crd/slipway.dev_" + plural + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.Unmarshal(data, crd); err != nil {
		t.Fatal(err)
	}
	crd.Name, crd.Spec.Group = plural+"."+group, group
	return crd
}

// withoutRules takes the rules and patterns out of a schema.
func withoutRules(s *apiextensionsv1.JSONSchemaProps) {
	s.XValidations, s.Pattern, s.MinLength = nil, "", nil
	for name := range s.Properties {
		child := s.Properties[name]
		withoutRules(&child)
		s.Properties[name] = child
	}
	if s.Items != nil && s.Items.Schema != nil {
		withoutRules(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		withoutRules(s.AdditionalProperties.Schema)
	}
}

// fresh is a client that knows the kinds that there are now.
func fresh(t *testing.T) client.Client {
	t.Helper()
	c, err := client.New(env.Config, client.Options{Scheme: env.Client.Scheme()})
	if err != nil {
		t.Fatal(err)
	}
	return c
}
