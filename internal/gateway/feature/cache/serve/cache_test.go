package serve

import (
	"testing"

	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// What one Service has is not given as that of one that is reached in another way.
func TestAnotherWayToAServiceIsAnotherResponse(t *testing.T) {
	original := model.Backend{Namespace: "team", Service: "app", Port: 80}
	for name, change := range map[string]func(*model.Backend){
		"TLS":       func(b *model.Backend) { b.TLS = &model.BackendTLS{Identity: "other"} },
		"protocol":  func(b *model.Backend) { b.Protocol = model.ProtocolH2C },
		"port":      func(b *model.Backend) { b.Port = 81 },
		"namespace": func(b *model.Backend) { b.Namespace = "" },
	} {
		changed := original
		change(&changed)
		if got := Backend(&changed); got == Backend(&original) {
			t.Errorf("%s: both are %+v", name, got)
		}
	}
}
