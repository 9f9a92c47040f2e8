package operator

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/controller/apigateway"
	"github.com/slipway-dev/slipway/internal/controller/backup"
	"github.com/slipway-dev/slipway/internal/controller/gateway"
)

// kindsOf counts how often each kind is in a budget.
func kindsOf(counts map[string]int, budget map[client.Object]cache.ByObject) {
	seen := map[string]bool{} // two versions of a kind are one
	for object := range budget {
		kind := reflect.TypeOf(object).Elem().Name()
		if _, metadata := object.(*metav1.PartialObjectMetadata); metadata {
			kind = object.GetObjectKind().GroupVersionKind().Kind
		}
		if !seen[kind] {
			seen[kind] = true
			counts[kind]++
		}
	}
}

// TestTheCacheBudgetIsDocumented compares the table in docs/architecture.md with what is cached.
func TestTheCacheBudgetIsDocumented(t *testing.T) {
	cached := map[string]int{}
	limited := gateway.NewBudget(watched([]string{"team"}), true).Objects.ByObject
	whole := gateway.NewBudget(nil, false)
	maps.DeleteFunc(limited, func(object client.Object, _ cache.ByObject) bool {
		return fmt.Sprintf("%T", object) != "*v1.RoleBinding" // the rest is in both
	})
	for _, budget := range []map[client.Object]cache.ByObject{cacheOptions(Kinds(), nil).ByObject, apigateway.ExposureBudget(nil).ByObject, whole.Classes.ByObject, whole.Objects.ByObject, limited} {
		kindsOf(cached, budget)
	}
	kindsOf(cached, backup.NamedBudget(nil).ByObject)
	_, text, _ := strings.Cut(readFile(t, "../../docs/architecture.md"), "## The cache budget")
	text, _, _ = strings.Cut(text, "In addition,")
	stated := map[string]int{}
	for line := range strings.SplitSeq(text, "\n") {
		first, _, ok := strings.Cut(strings.TrimPrefix(line, "| "), " | ")
		if !ok || strings.HasPrefix(line, "|---") || first == "kind" {
			continue
		}
		first, _, _ = strings.Cut(first, " (")
		for _, kind := range strings.Split(first, ", ") {
			stated[kind]++
		}
	}
	if diff := cmp.Diff(cached, stated); diff != "" {
		t.Errorf("cached and documented (-want +got), of %q:\n%s", slices.Sorted(maps.Keys(cached)), diff)
	}
}
