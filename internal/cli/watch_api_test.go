//go:build apitest

package cli

import (
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

func TestWatchFollowsKindsThatComeAndGo(t *testing.T) {
	f := newFixture(t)
	group := f.Namespace + ".example.com"
	first := f.install(group, "Early", apiextensionsv1.NamespaceScoped)
	f.make(first, "Early", f.Namespace, "a", nil, ready("True", "Ok", ""))
	running := f.follow("watch")
	running.until("Watching ")

	patch := []byte(`{"spec":{"size":3},"metadata":{"labels":{"team":"a"}}}`)
	if _, err := f.dynamic().Resource(first).Namespace(f.Namespace).Patch(t.Context(), "a", types.MergePatchType, patch, metav1.PatchOptions{FieldManager: "kubectl-edit"}); err != nil {
		t.Fatal(err)
	}
	running.until("Updated early/a in " + f.Namespace)
	running.until("+ .metadata.labels")
	running.until("+ .spec")

	later := f.install(group, "Later", apiextensionsv1.ClusterScoped)
	f.make(later, "Later", "", "b", nil, ready("False", "DiskFailed", "sda"))
	running.until("later/b")
	if err := f.dynamic().Resource(later).Delete(t.Context(), "b", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	running.until("Deleted later/b")
	running.stop()
	running.ends(130, "")
}

func TestWatchOfOneObjectAndWithoutRights(t *testing.T) {
	f := newFixture(t)
	group := f.Namespace + ".example.com"
	things := f.install(group, "Thing", apiextensionsv1.NamespaceScoped)
	f.make(things, "Thing", f.Namespace, "a", nil, nil)
	f.make(things, "Thing", f.Namespace, "b", nil, nil)
	running := f.follow("watch", "things."+group+"/a", "-o", "json")
	// In JSON no line says that the watch has begun: both objects change until a change was seen, which is one of a.
	seen := make(chan string, 1)
	go func() {
		running.lines.Scan()
		seen <- running.lines.Text()
	}()
	for i := range 1000 {
		patch := []byte(`{"spec":{"size":` + string(rune('0'+i%10)) + `}}`)
		for _, name := range []string{"b", "a"} {
			if _, err := f.dynamic().Resource(things).Namespace(f.Namespace).Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case line := <-seen:
			if !strings.Contains(line, `"name":"a"`) || !strings.Contains(line, `"path":".spec`) {
				t.Errorf("printed %s", line)
			}
			running.stop()
			running.ends(130, "")
			f.allow("joe", rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{"things"}, Verbs: []string{"get"}})
			f.expect(1, []string{"you may not list the kinds of the cluster"}, "watch", "--as", "joe")
			f.expect(1, []string{`the server doesn't have a resource type "nothings"`}, "watch", "nothings")
			return
		default:
		}
	}
	t.Fatal("no change was seen")
}
