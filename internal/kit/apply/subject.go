package apply

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func kindOf(c Configuration) schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(*c.GetAPIVersion(), *c.GetKind())
}

func subject(c Configuration) string {
	return fmt.Sprintf("%s %q", *c.GetKind(), *c.GetName())
}
