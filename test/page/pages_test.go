//go:build pagetest

package page

import (
	"net/url"

	"github.com/slipway-dev/slipway/internal/monitor/change"
)

func toObject(of change.Kind, namespace, name string) string {
	params := url.Values{"kind": {of.GroupResource().String()}, "namespace": {namespace}, "name": {name}}
	return "#/object?" + params.Encode()
}
