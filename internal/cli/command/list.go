package command

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// List reads all objects of a kind page by page, at most maxListed of them. Without a namespace it reads those of all.
func List[T any](
	ctx context.Context, c *AnyClients, kind KindInfo, namespace string, read func(*unstructured.Unstructured) (T, error),
) ([]T, error) {
	client := dynamic.ResourceInterface(c.Objects.Resource(kind.GroupVersionResource))
	if namespace != corev1.NamespaceAll {
		client = c.Objects.Resource(kind.GroupVersionResource).Namespace(namespace)
	}
	var all []T
	options := metav1.ListOptions{Limit: PageSize}
	for len(all) < maxListed {
		page, err := client.List(ctx, options)
		if err != nil {
			return nil, err
		}
		for i := range page.Items {
			one, err := read(&page.Items[i])
			if err != nil {
				return nil, err
			}
			all = append(all, one)
		}
		if options.Continue = page.GetContinue(); options.Continue == "" {
			break
		}
	}
	return all, nil
}
