package gatewayapi_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"

	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/model"
)

// Whatever a rule says about its time holds: no default of the gateway is shorter, and zero is no bound.
func TestNoDefaultCutsWhatARuleSaysAboutItsTime(t *testing.T) {
	of := func(text string) *gatewayv1.Duration { return new(gatewayv1.Duration(text)) }
	for name, test := range map[string]struct {
		in   *gatewayv1.HTTPRouteTimeouts
		want model.Timeouts
	}{
		"nothing":                      {nil, model.Timeouts{Backend: time.Minute}},
		"nothing in it":                {&gatewayv1.HTTPRouteTimeouts{}, model.Timeouts{Backend: time.Minute}},
		"a request":                    {&gatewayv1.HTTPRouteTimeouts{Request: of("90s")}, model.Timeouts{Request: 90 * time.Second, Patient: true}},
		"a short request":              {&gatewayv1.HTTPRouteTimeouts{Request: of("1s")}, model.Timeouts{Request: time.Second, Patient: true}},
		"a request without a bound":    {&gatewayv1.HTTPRouteTimeouts{Request: of("0s")}, model.Timeouts{Patient: true}},
		"a try":                        {&gatewayv1.HTTPRouteTimeouts{BackendRequest: of("90s")}, model.Timeouts{Attempt: 90 * time.Second, Patient: true}},
		"a try without a bound":        {&gatewayv1.HTTPRouteTimeouts{BackendRequest: of("0s")}, model.Timeouts{Patient: true}},
		"both":                         {&gatewayv1.HTTPRouteTimeouts{Request: of("3h"), BackendRequest: of("2h")}, model.Timeouts{Request: 3 * time.Hour, Attempt: 2 * time.Hour, Patient: true}},
		"a try, and no request":        {&gatewayv1.HTTPRouteTimeouts{Request: of("0s"), BackendRequest: of("2m")}, model.Timeouts{Attempt: 2 * time.Minute, Patient: true}},
		"a request, and no try":        {&gatewayv1.HTTPRouteTimeouts{Request: of("2m"), BackendRequest: of("0ms")}, model.Timeouts{Request: 2 * time.Minute, Patient: true}},
		"the longest that can be said": {&gatewayv1.HTTPRouteTimeouts{Request: of("99999h99999m99999s99999ms")}, model.Timeouts{Request: 99999 * (time.Hour + time.Minute + time.Second + time.Millisecond), Patient: true}},
	} {
		t.Run(name, func(t *testing.T) {
			built := gatewayapi.Build(gatewayapi.Input{
				Gateway: &gatewayv1.Gateway{
					ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "edge"},
					Spec:       gatewayv1.GatewaySpec{Listeners: []gatewayv1.Listener{{Name: "web", Port: 80, Protocol: gatewayv1.HTTPProtocolType}}},
				},
				HTTPRoutes: []*gatewayv1.HTTPRoute{{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "shop"}, Spec: gatewayv1.HTTPRouteSpec{
					CommonRouteSpec: gatewayv1.CommonRouteSpec{ParentRefs: []gatewayv1.ParentReference{{Name: "edge"}}},
					Rules:           []gatewayv1.HTTPRouteRule{{Matches: []gatewayv1.HTTPRouteMatch{{}}, Timeouts: test.in}},
				}}},
			})
			if len(built.Rules) != 1 || built.Rules[0].Fault != nil {
				t.Fatalf("got %+v", built.Rules)
			}
			if diff := cmp.Diff(test.want, built.Rules[0].Timeouts); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
