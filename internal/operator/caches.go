package operator

import (
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/controller/apigateway"
	"github.com/slipway-dev/slipway/internal/controller/backup"
	"github.com/slipway-dev/slipway/internal/controller/gateway"
)

// Cached is one cache of the operator, for the documentation.
type Cached struct {
	// Name tells them apart.
	Name string
	// Whole is its budget where the operator works in all namespaces, Limited where it is limited to some.
	Whole, Limited map[client.Object]cache.ByObject
}

// Caches are all caches of the operator: the manager's, and those of kinds that a cluster need not have or that only some controllers
// read.
func Caches() []Cached {
	some := []string{"some"}
	whole, limited := gateway.NewBudget(nil, false), gateway.NewBudget(watched(some), true)
	return []Cached{
		{"manager", cacheOptions(Kinds(), nil).ByObject, cacheOptions(Kinds(), some).ByObject},
		{"exposure", apigateway.ExposureBudget(nil).ByObject, apigateway.ExposureBudget(watched(some)).ByObject},
		{"classes", whole.Classes.ByObject, limited.Classes.ByObject},
		{"gateways", whole.Objects.ByObject, limited.Objects.ByObject},
		{"named", backup.NamedBudget(nil).ByObject, backup.NamedBudget(watched(some)).ByObject},
	}
}
