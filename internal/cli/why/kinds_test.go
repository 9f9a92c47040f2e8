package why

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
)

// TestEveryKindIsInOneRow: a kind is found in the row that names it, and those of Slipway are kinds that the plugin knows.
func TestEveryKindIsInOneRow(t *testing.T) {
	for i := range kinds {
		for _, name := range kinds[i].Names {
			info := command.KindInfo{GroupVersionResource: schema.GroupVersionResource{Group: kinds[i].Group}, Kind: name}
			if kindOf(info) != &kinds[i] {
				t.Errorf("%s of %s is in two rows", name, kinds[i].Group)
			}
			known := slices.ContainsFunc(command.OurKinds, func(k *command.OurKind) bool { return k.Info().Kind == name })
			if kinds[i].Group == slipwayv1alpha1.GroupName && !known {
				t.Errorf("the plugin knows no %s", name)
			}
		}
	}
	velero := schema.GroupVersionResource{Group: "velero.io"}
	if kindOf(command.KindInfo{Kind: "Pod"}) != nil || kindOf(command.KindInfo{GroupVersionResource: velero, Kind: "Backup"}) != nil {
		t.Error("a kind of others is explained as one of ours")
	}
}
