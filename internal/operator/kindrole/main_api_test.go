//go:build apitest && monitortest

package kindrole_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/internal/operator/kindrole"
	"github.com/slipway-dev/slipway/internal/testing/environment"
	"github.com/slipway-dev/slipway/internal/testing/requests"
)

var env *environment.Environment

func TestMain(m *testing.M) { environment.Main(m, &env) }

// account is the operator's, as the API server calls it. It has the shipped rights, and no other.
const account = "system:serviceaccount:slipway-system:slipway-operator"

// asOperator makes an access that of the operator.
func asOperator(config *rest.Config) {
	config.Impersonate = rest.ImpersonationConfig{
		UserName: account,
		Groups:   []string{"system:serviceaccounts", "system:serviceaccounts:slipway-system", "system:authenticated"},
	}
}

// install makes what the operator's rights and the monitor's are made of, out of config. The cluster is that of all tests, so
// they run one after another.
func install(t *testing.T) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("..", "..", "..", "config", "rbac", "role.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	role := &rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict(raw, role); err != nil {
		t.Fatal(err)
	}
	create(t, role)
	create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: role.Name},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role.Name},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Name: "slipway-operator", Namespace: "slipway-system"}},
	})
	for _, object := range shipped(t) {
		create(t, object)
	}
}

// shipped are the objects of config/monitor/kinds.yaml.
func shipped(t *testing.T) []*unstructured.Unstructured {
	t.Helper()
	file, err := os.Open(filepath.Join("..", "..", "..", "config", "monitor", "kinds.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	decoder := utilyaml.NewYAMLOrJSONDecoder(file, 4096)
	var objects []*unstructured.Unstructured
	for {
		object := &unstructured.Unstructured{}
		if err := decoder.Decode(&object.Object); errors.Is(err, io.EOF) {
			return objects
		} else if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
}

// create makes an object until the end of the test.
func create(t *testing.T, object client.Object) {
	t.Helper()
	if err := env.Client.Create(t.Context(), object); err != nil {
		t.Fatalf("create %T %q: %v", object, object.GetName(), err)
	}
	t.Cleanup(func() { remove(t, object) })
}

// remove deletes an object, and waits until it is gone.
func remove(t *testing.T, object client.Object) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	if err := env.Client.Delete(ctx, object); client.IgnoreNotFound(err) != nil {
		t.Error(err)
	}
	environment.Eventually(t, func() error {
		if err := env.Client.Get(ctx, client.ObjectKeyFromObject(object), object); !apierrors.IsNotFound(err) {
			return fmt.Errorf("%q is still there (%w)", object.GetName(), err)
		}
		return nil
	})
}

// definition is one of a kind that takes anything.
func definition(plural, group string) *apiextensionsv1.CustomResourceDefinition {
	preserve := true
	kind := strings.ToUpper(plural[:1]) + plural[1:]
	definition := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: kind},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object", XPreserveUnknownFields: &preserve,
				}},
			}},
		},
	}
	if strings.HasSuffix(group, ".k8s.io") {
		definition.Annotations = map[string]string{"api-approved.kubernetes.io": "unapproved, a test"}
	}
	return definition
}

// start runs the operator with its own rights, and counts what it asks for.
func start(t *testing.T, change func(*environment.Options)) (*environment.Operator, *requests.Counter) {
	t.Helper()
	counter := &requests.Counter{}
	running := env.StartOperatorWith(t, func(config *rest.Config, options *environment.Options) {
		asOperator(config)
		counter.Watch(config)
		options.MonitorKinds = true
		if change != nil {
			change(options)
		}
	})
	return running, counter
}

// role reads the ClusterRole.
func role(t *testing.T) *rbacv1.ClusterRole {
	t.Helper()
	role := &rbacv1.ClusterRole{}
	if err := env.Client.Get(t.Context(), client.ObjectKey{Name: kindrole.Name}, role); err != nil {
		t.Fatal(err)
	}
	return role
}

// granted are the kinds in the rules, as RESOURCE.GROUP, without those of Slipway.
func granted(t *testing.T) []string {
	t.Helper()
	names := []string{}
	for _, rule := range role(t).Rules {
		if rule.APIGroups[0] == "slipway.dev" {
			continue
		}
		for _, resource := range rule.Resources {
			names = append(names, resource+"."+rule.APIGroups[0])
		}
	}
	return names
}

// writes are those of the ClusterRole.
func writes(counter *requests.Counter) int {
	return counter.Counts().ByKind()["apply clusterroles"]
}
