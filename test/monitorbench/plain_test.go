//go:build monitorbench

package monitorbench

import (
	"context"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
)

// runPlain watches custom resources as tutorials do: it lists the definitions once, starts a dynamic informer for each, and
// writes a line for each change.
func runPlain(ctx context.Context, access *rest.Config) error {
	access.QPS = -1
	client, err := dynamic.NewForConfig(access)
	if err != nil {
		return err
	}
	definitions := schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
	list, err := client.Resource(definitions).List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	out, err := os.OpenFile(os.Getenv("BENCH_CHILD_TOLD"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	tell := func(object any) {
		if gone, is := object.(cache.DeletedFinalStateUnknown); is {
			object = gone.Obj
		}
		fmt.Fprintln(out, object.(*unstructured.Unstructured).GetResourceVersion(), time.Now().UnixNano())
	}
	factory := dynamicinformer.NewDynamicSharedInformerFactory(client, 0)
	for i := range list.Items {
		group, _, _ := unstructured.NestedString(list.Items[i].Object, "spec", "group")
		plural, _, _ := unstructured.NestedString(list.Items[i].Object, "spec", "names", "plural")
		versions, _, _ := unstructured.NestedSlice(list.Items[i].Object, "spec", "versions")
		version, _, _ := unstructured.NestedString(versions[0].(map[string]any), "name")
		informer := factory.ForResource(schema.GroupVersionResource{Group: group, Version: version, Resource: plural}).Informer()
		if _, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc: tell, UpdateFunc: func(_, now any) { tell(now) }, DeleteFunc: tell,
		}); err != nil {
			return err
		}
	}
	factory.Start(ctx.Done())
	factory.WaitForCacheSync(ctx.Done())
	serveDebug(func(*inside) {})
	<-ctx.Done()
	return nil
}
