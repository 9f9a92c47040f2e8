//go:build apitest

package app

import (
	"context"
	"fmt"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	kube "sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/monitor/api"
	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// TestEditsOfADescriptionRecordNothing: each edit of a definition makes the API server end its watches, and often show every object
// again. Of objects that nobody has changed nothing is recorded.
func TestEditsOfADescriptionRecordNothing(t *testing.T) {
	const objects, edits = 20, 5
	ctx := t.Context()
	namespace := env.Namespace(t)
	for n := range objects {
		if err := env.Client.Create(ctx, newApp(namespace, fmt.Sprintf("app-%d", n))); err != nil {
			t.Fatal(err)
		}
	}
	reader := startMonitor(t, t.TempDir())
	recorded := func(want int) {
		t.Helper()
		environment.Eventually(t, func() error {
			answer := api.Changes{}
			if err := reader.ask("changes?kind=webapps.slipway.dev&limit=500&namespace="+namespace, &answer); err != nil {
				return err
			}
			if len(answer.Changes) < want {
				return fmt.Errorf("%d of %d changes are recorded", len(answer.Changes), want)
			}
			if len(answer.Changes) > want {
				t.Fatalf("%d changes are recorded, and there were %d: %+v", len(answer.Changes), want, answer.Changes[0])
			}
			return nil
		})
	}
	recorded(objects)
	for n := range edits {
		edited := editDescription(ctx, t, fmt.Sprintf("edit %d", n))
		environment.Eventually(t, func() error {
			answer := api.Definitions{}
			if err := reader.ask("definitions?name=webapps.slipway.dev", &answer); err != nil {
				return err
			}
			if newest := answer.Versions[0].Generation; newest != edited {
				return fmt.Errorf("generation %d of the definition is known, want %d", newest, edited)
			}
			return nil
		})
	}
	if err := env.Client.Create(ctx, newApp(namespace, "last")); err != nil {
		t.Fatal(err)
	}
	recorded(objects + 1)
}

// editDescription returns the generation of the definition.
func editDescription(ctx context.Context, t *testing.T, text string) int64 {
	t.Helper()
	definition := &apiextensionsv1.CustomResourceDefinition{}
	definition.Name = "webapps.slipway.dev"
	if err := env.Client.Get(ctx, kube.ObjectKeyFromObject(definition), definition); err != nil {
		t.Fatal(err)
	}
	before := definition.DeepCopy()
	definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Description = text
	if err := env.Client.Patch(ctx, definition, kube.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	return definition.Generation
}
