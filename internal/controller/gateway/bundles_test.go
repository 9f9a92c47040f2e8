package gateway

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
)

// Who may add a policy to one namespace, or to a few, must not fill the Secret with the copies.
func TestAuthoritiesOfTenantsAreBounded(t *testing.T) {
	type one struct {
		namespace string
		size      int
		fits      bool
	}
	for name, bundles := range map[string][]one{
		"small ones":                {{"a", 1000, true}, {"a", 1000, true}, {"b", 1000, true}},
		"as much as a tenant may":   {{"a", maxOfNamespace, true}, {"b", 1, true}},
		"more than a tenant may":    {{"a", maxOfNamespace + 1, false}, {"a", 1, true}},
		"more of a tenant together": {{"a", maxOfNamespace - 1, true}, {"a", 2, false}, {"a", 1, true}},
		"more of all":               {{"a", maxOfNamespace, true}, {"b", maxOfNamespace, true}, {"c", maxOfNamespace, true}, {"d", 1, false}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &scope{input: gatewayapi.Input{Bundles: map[types.NamespacedName]gatewayapi.Bundle{}}}
			used := map[string]int{}
			for i, b := range bundles {
				name := types.NamespacedName{Namespace: b.namespace, Name: fmt.Sprint(i)}
				s.input.Bundles[name] = gatewayapi.Bundle{}
				s.boundBundle(name, b.size, used)
				if got := s.input.Bundles[name].Problem == ""; got != b.fits {
					t.Errorf("bundle %d is copied: %v, want %v", i, got, b.fits)
				}
			}
			if used[""] > maxBundles {
				t.Errorf("%d bytes are copied", used[""])
			}
		})
	}
}

func TestANewPolicyDoesNotTakeTheRoomOfOlderOnes(t *testing.T) {
	made := func(namespace string, second int64) *gatewayv1.BackendTLSPolicy {
		return &gatewayv1.BackendTLSPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "p", CreationTimestamp: metav1.NewTime(time.Unix(second, 0))}}
	}
	var order []string
	for _, policy := range byAge([]*gatewayv1.BackendTLSPolicy{made("a", 3), made("c", 1), made("b", 1), made("z", 0)}) {
		order = append(order, policy.Namespace)
	}
	if diff := cmp.Diff([]string{"z", "b", "c", "a"}, order); diff != "" {
		t.Error(diff)
	}
}
