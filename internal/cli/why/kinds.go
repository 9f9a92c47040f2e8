package why

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/cli/command"
)

// Kind is how why explains the objects of some kinds. What Load returns explains itself, so that nothing can be loaded that is not
// explained.
type Kind struct {
	// Group and Names are the kinds.
	Group string
	Names []string
	// Load reads an object with everything that its tree needs.
	Load func(ctx context.Context, c *command.AnyClients, asked named) (explained, error)
}

// kinds are the kinds that why explains by themselves. Of all others it follows owner references (loadAny).
var kinds = []Kind{
	{Group: slipwayv1alpha1.GroupName, Names: []string{"WebApp"}, Load: loadWebApp},
	{Group: slipwayv1alpha1.GroupName, Names: []string{"APIGateway"}, Load: loadNamedGateway},
	{Group: slipwayv1alpha1.GroupName, Names: []string{"Backup"}, Load: loadBackup},
	{Group: slipwayv1alpha1.GroupName, Names: []string{"BackupRun"}, Load: loadRun},
	{Group: slipwayv1alpha1.GroupName, Names: []string{"Restore"}, Load: loadRestore},
	{Group: gatewayv1.GroupName, Names: []string{command.KindGateway}, Load: loadStandardGateway},
	{Group: gatewayv1.GroupName, Names: standardRoutes, Load: loadStandardRoute},
}

// kindOf finds how a kind is explained. It returns nil for one that has no row of its own.
func kindOf(info command.KindInfo) *Kind {
	for i := range kinds {
		if kinds[i].Group == info.Group && slices.Contains(kinds[i].Names, info.Kind) {
			return &kinds[i]
		}
	}
	return nil
}

// named is the object that the user named.
type named struct {
	kind command.KindInfo
	name string
	// object is the object as it was found. Nil where a client of Slipway reads it.
	object *unstructured.Unstructured
}

// relative is the object as the first of its family.
func (n named) relative() *relative {
	return &relative{kind: n.kind, namespace: n.object.GetNamespace(), name: n.object.GetName(), uid: n.object.GetUID(), object: n.object}
}

// explained is an object with everything that its tree needs.
type explained interface {
	// facts are what is found of objects of every kind.
	facts() *findings
	// explain builds the tree: each object with a problem, below the object that it belongs to.
	explain() whyView
}
