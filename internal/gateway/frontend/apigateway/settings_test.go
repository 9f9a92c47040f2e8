package apigateway

import (
	"reflect"
	"strings"
	"testing"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/feature/list"
)

// A field of a route that is accepted and not read would not be enforced. Each that a policy has too is read as that of a policy.
func TestASettingOfARouteIsRead(t *testing.T) {
	elsewhere := map[string]bool{"maxBodyBytes": true} // addActions: a file may say 0
	route := reflect.TypeFor[slipwayv1alpha1.Route]()
	read := 0
	for i := range route.NumField() {
		name, _, _ := strings.Cut(route.Field(i).Tag.Get("json"), ",")
		of := reflect.TypeFor[slipwayv1alpha1.GatewayPolicySettings]()
		field, shared := of.FieldByName(route.Field(i).Name)
		if !shared || field.Type != route.Field(i).Type || elsewhere[name] {
			continue
		}
		spec := &slipwayv1alpha1.Route{}
		reflect.ValueOf(spec).Elem().Field(i).Set(reflect.New(field.Type.Elem()))
		if settings := settingsOf(spec); !list.Named(name).Asked(&settings) {
			t.Errorf("%s of a route is not read", name)
		}
		read++
	}
	if read != list.Count-2 { // backends is for policies alone
		t.Errorf("%d settings are read", read)
	}
}
