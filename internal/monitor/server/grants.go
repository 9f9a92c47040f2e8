package server

import (
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/slipway-dev/slipway/internal/monitor/change"
	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/web/rights"
)

// grants are the rights of a user as the history asks for them.
type grants struct{ *rights.Rights }

// share tells what the user may see of the history of a kind in a namespace, which is empty for objects that have none.
func (g grants) share(kind schema.GroupResource, namespace string) store.Share {
	share := g.Share(kind, namespace)
	return store.Share{All: share.All, Of: (*change.Tenure)(share.Of)}
}

// sees reports whether the user may see an object of a kind in a namespace.
func (g grants) sees(kind schema.GroupResource, namespace string, o change.Origin) bool {
	share := g.share(kind, namespace)
	return share.All || share.Of.Has(o)
}
