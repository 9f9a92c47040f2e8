//go:build apitest

package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// install makes a kind of its own for a test, with a status subresource, and removes it afterwards.
func (f *fixture) install(group, kind string, scope apiextensionsv1.ResourceScope) schema.GroupVersionResource {
	f.Helper()
	plural := strings.ToLower(kind) + "s"
	open := new(true)
	crd := &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + "." + group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: scope,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural, Singular: strings.ToLower(kind)},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1", Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema:       &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: open}},
			}},
		},
	}
	if err := env.Client.Create(f.Context(), crd); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := env.Client.Delete(context.Background(), crd); err != nil {
			f.Error(err)
		}
	})
	resource := schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural}
	environment.Eventually(f, func() error {
		_, err := f.dynamic().Resource(resource).List(f.Context(), metav1.ListOptions{})
		return err
	})
	return resource
}

func (f *fixture) dynamic() dynamic.Interface {
	f.Helper()
	client, err := dynamic.NewForConfig(env.Config)
	if err != nil {
		f.Fatal(err)
	}
	return client
}

// make creates a custom resource with a status. Owner may be nil.
func (f *fixture) make(resource schema.GroupVersionResource, kind, namespace, name string, owner *unstructured.Unstructured, status map[string]any) *unstructured.Unstructured {
	f.Helper()
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": resource.GroupVersion().String(), "kind": kind}}
	object.SetName(name)
	object.SetNamespace(namespace)
	if owner != nil {
		object.SetOwnerReferences([]metav1.OwnerReference{*metav1.NewControllerRef(owner, owner.GroupVersionKind())})
	}
	client := dynamic.ResourceInterface(f.dynamic().Resource(resource))
	if namespace != "" {
		client = f.dynamic().Resource(resource).Namespace(namespace)
	}
	made, err := client.Create(f.Context(), object, metav1.CreateOptions{})
	if err != nil {
		f.Fatal(err)
	}
	if status == nil {
		return made
	}
	made.Object["status"] = status
	if made, err = client.UpdateStatus(f.Context(), made, metav1.UpdateOptions{}); err != nil {
		f.Fatal(err)
	}
	return made
}

// allow gives a user rights in the test's namespace.
func (f *fixture) allow(user string, rules ...rbacv1.PolicyRule) {
	f.Helper()
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: user}},
	}
	if _, err := f.Kube.RbacV1().Roles(f.Namespace).Create(f.Context(), role, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
	if _, err := f.Kube.RbacV1().RoleBindings(f.Namespace).Create(f.Context(), binding, metav1.CreateOptions{}); err != nil {
		f.Fatal(err)
	}
	environment.Eventually(f, func() error {
		review, err := f.Kube.AuthorizationV1().SubjectAccessReviews().Create(f.Context(), &authorizationv1.SubjectAccessReview{
			Spec: authorizationv1.SubjectAccessReviewSpec{User: user, ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: f.Namespace, Verb: rules[0].Verbs[0], Group: rules[0].APIGroups[0], Resource: rules[0].Resources[0],
			}},
		}, metav1.CreateOptions{})
		if err == nil && !review.Status.Allowed {
			err = errors.New("the rights are not in force yet")
		}
		return err
	})
}

func ready(status, reason, message string) map[string]any {
	return map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": status, "reason": reason, "message": message}}}
}

func TestTreeAndWhyOfKindsThatNobodyKnows(t *testing.T) {
	f := newFixture(t)
	group := f.Namespace + ".example.com"
	databases := f.install(group, "Database", apiextensionsv1.NamespaceScoped)
	replicas := f.install(group, "Replica", apiextensionsv1.NamespaceScoped)
	regions := f.install(group, "Region", apiextensionsv1.ClusterScoped)
	region := f.make(regions, "Region", "", "north", nil, ready("True", "Ok", ""))
	database := f.make(databases, "Database", f.Namespace, "orders", region, ready("False", "Creating", "waits for its replicas"))
	for i := range 3 {
		f.make(replicas, "Replica", f.Namespace, fmt.Sprintf("orders-%d", i), database, ready("True", "Ok", ""))
	}
	bad := f.make(replicas, "Replica", f.Namespace, "orders-3", database, ready("False", "DiskFailed", "disk sda does not answer"))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "orders-3-key", OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(bad, bad.GroupVersionKind())}}}
	if _, err := f.Kube.CoreV1().Secrets(f.Namespace).Create(t.Context(), secret, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	kind := "databases." + group + "/orders"
	out := f.expect(0, []string{
		"region/north", "└─ database/orders *", "Progressing", "Creating: waits for its replicas",
		"   ├─ replica/orders-0", "   └─ replica/orders-3", "Failed", "DiskFailed: disk sda does not answer", "      └─ secret/orders-3-key",
	}, "tree", kind)
	if strings.Contains(out, "Not looked at") {
		t.Errorf("an administrator may read all:\n%s", out)
	}
	f.expect(0, []string{`"asked": true`, `"object": "replica/orders-3"`, `"value": "False"`}, "tree", kind, "-o", "json")
	f.expect(0, []string{"Not shown: 3 more objects (--limit)."}, "tree", kind, "--limit", "2")
	f.expect(0, []string{"region/north *", "└─ database/orders"}, "tree", "regions."+group+"/north")
	f.expect(0, []string{"region/north", "database/orders", "replica/orders-1 *"}, "tree", "replicas."+group+"/orders-1")
	f.expect(1, []string{"database/orders is not ready: Creating: waits for its replicas\n└─ replica/orders-3: DiskFailed: disk sda does not answer\n"}, "why", kind)
	f.expect(0, []string{"replica/orders-1 is ready: status.conditions[type=\"Ready\"].status is True\nNothing is wrong."}, "why", "replicas."+group+"/orders-1")
	f.expect(1, []string{`databases.` + group + ` "none" not found in namespace "` + f.Namespace + `"`}, "why", "databases."+group+"/none")
	f.expect(1, []string{`the server doesn't have a resource type "unknownkinds"`}, "tree", "unknownkinds/a")
	f.expect(1, []string{"--foreign is about WebApps and APIGateways"}, "why", kind, "--foreign")

	// Who may read some of it sees that, and what is missing.
	f.allow("jack",
		rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{"databases"}, Verbs: []string{"get", "list"}},
		rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{"replicas"}, Verbs: []string{"list"}},
	)
	f.expect(0, []string{
		"region/north", "NotReadable: you may not read it", "└─ database/orders *", "   ├─ replica/orders-0",
		"Not looked at, because you may not read it: ", ", configmaps, ", ", secrets, ",
	}, "tree", kind, "--as", "jack")
	f.expect(1, []string{"is forbidden"}, "tree", "secrets/orders-3-key", "--as", "jack")
}

func TestTreeTellsThatAnOwnerIsGone(t *testing.T) {
	f := newFixture(t)
	config := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "left", OwnerReferences: []metav1.OwnerReference{
		{APIVersion: "v1", Kind: "ConfigMap", Name: "gone", UID: "1-2-3"},
	}}}
	if _, err := f.Kube.CoreV1().ConfigMaps(f.Namespace).Create(t.Context(), config, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	f.expect(0, []string{"configmap/gone", "Gone: it does not exist any more", "└─ configmap/left *"}, "tree", "cm/left")
	f.expect(1, []string{"configmap/left: nothing tells how it does: HasNoStatus: nothing writes a status of a ConfigMap"}, "why", "configmaps/left")
}
