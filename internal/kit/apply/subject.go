package apply

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func kindOf(c Configuration) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(*c.GetAPIVersion(), *c.GetKind())
}

func subject(c Configuration) string {
	return fmt.Sprintf("%s %q", *c.GetKind(), *c.GetName())
}

// namespaceOf is the namespace that a child is in. One that belongs to the whole cluster is in none.
func namespaceOf(c Configuration) string {
	if namespace := c.GetNamespace(); namespace != nil {
		return *namespace
	}
	return ""
}

// placed is a child as its owner reads of it. An owner that is in no namespace may have one of that name in each of several, so
// it is told which.
func placed(owner client.Object, c Configuration) string {
	if namespace := namespaceOf(c); owner.GetNamespace() == "" && namespace != "" {
		return fmt.Sprintf("%s in namespace %q", subject(c), namespace)
	}
	return subject(c)
}
