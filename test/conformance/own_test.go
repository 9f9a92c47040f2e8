//go:build conformance

package conformance

import (
	"embed"
	"fmt"
	"maps"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"k8s.io/apimachinery/pkg/types"
	gatewayv1 "sigs.k8s.io/gateway-api/apis/v1"
	pb "sigs.k8s.io/gateway-api/conformance/echo-basic/grpcechoserver"
	"sigs.k8s.io/gateway-api/conformance/utils/grpc"
	"sigs.k8s.io/gateway-api/conformance/utils/http"
	"sigs.k8s.io/gateway-api/conformance/utils/kubernetes"
	"sigs.k8s.io/gateway-api/conformance/utils/suite"
	"sigs.k8s.io/gateway-api/pkg/features"
)

//go:embed own/*.yaml
var ownManifests embed.FS

// own are tests of ours for what the specification says and the suite does not try, in the suite's form. They are named as in
// the suite's next version where that has one. The report knows nothing of them.
var own = []suite.ConformanceTest{
	{
		ShortName: "OwnHTTPRouteRetryConnectionError", Manifests: []string{"own/retry.yaml"}, Test: testRetryConnectionError,
		Features: []features.FeatureName{features.SupportHTTPRouteRetry, features.SupportHTTPRouteRetryConnectionError},
	},
	{
		ShortName: "OwnHTTPRouteRetryBackendTimeout", Manifests: []string{"own/retry.yaml"}, Test: testRetryBackendTimeout,
		Features: []features.FeatureName{
			features.SupportHTTPRouteRetry, features.SupportHTTPRouteRetryBackendTimeout, features.SupportHTTPRouteRequestTimeout,
			features.SupportHTTPRouteBackendTimeout,
		},
	},
	{ShortName: "OwnGatewayPreserveForeignConditions", Manifests: []string{"own/foreign-status.yaml"}, Test: testForeignConditions},
	{ShortName: "OwnHTTPRoutePreserveForeignStatus", Manifests: []string{"own/foreign-status.yaml"}, Test: testForeignParents},
	{ShortName: "OwnGatewayNameMaximumLength", Manifests: []string{"own/name-length.yaml"}, Test: testNameLength},
	{ShortName: "OwnHTTPRouteRuleOrder", Manifests: []string{"own/rule-order.yaml"}, Test: testRuleOrder},
	{ShortName: "OwnGRPCRouteMultipleGateways", Manifests: []string{"own/grpc-multiple-gateways.yaml"}, Test: testGRPCMultipleGateways},
}

func infra(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: suite.InfrastructureNamespace, Name: name}
}

// accepted waits until a Gateway serves HTTPRoutes, and returns its address.
func accepted(t *testing.T, s *suite.ConformanceTestSuite, gateway string, routes ...string) string {
	t.Helper()
	names := make([]types.NamespacedName, 0, len(routes))
	for _, route := range routes {
		names = append(names, infra(route))
	}
	return kubernetes.GatewayAndHTTPRoutesMustBeAccepted(t, s.Client, s.TimeoutConfig, s.ControllerName, kubernetes.NewGatewayRef(infra(gateway)), names...)
}

// retrying is a request to a backend that fails some times before it answers, in a way that the query names.
type retrying struct {
	path  string
	query url.Values
	codes []int
}

func (r retrying) run(t *testing.T, s *suite.ConformanceTestSuite, address string) {
	t.Helper()
	http.AwaitConvergence(t, s.TimeoutConfig.RequiredConsecutiveSuccesses, s.TimeoutConfig.MaxTimeToConsistency, func(time.Duration) bool {
		// The backend counts the attempts of each.
		query := maps.Clone(r.query)
		query.Set("uuid", uuid.NewString())
		expected := http.ExpectedResponse{
			Request:   http.Request{Path: r.path + "?" + query.Encode()},
			Response:  http.Response{StatusCodes: r.codes},
			Backend:   suite.InfraBackendServiceNameV3,
			Namespace: suite.InfrastructureNamespace,
		}
		request := http.MakeRequest(t, &expected, address, "HTTP", "http")
		seen, response, err := s.RoundTripper.CaptureRoundTrip(request)
		if err == nil {
			err = http.CompareRoundTrip(t, &request, seen, response, expected)
		}
		if err != nil {
			t.Logf("%s: %v", request.URL.RequestURI(), err)
		}
		return err == nil
	})
}

// A route without codes tries again what broke off, and no more often than it says.
func testRetryConnectionError(t *testing.T, s *suite.ConformanceTestSuite) {
	address := accepted(t, s, "same-namespace", "own-retry")
	for name, test := range map[string]retrying{
		"answered after two resets":    {query: url.Values{"succeedAfter": {"2"}}, codes: []int{200}},
		"answered by the last attempt": {query: url.Values{"succeedAfter": {"3"}}, codes: []int{200}},
		// A kept connection that ends before the response has begun is no attempt: the backend may have closed it as idle.
		"more resets than there are retries": {query: url.Values{"succeedAfter": {"5"}}, codes: []int{502}},
	} {
		test.path = "/retry/connection"
		t.Run(name, func(t *testing.T) { test.run(t, s, address) })
	}
}

// An attempt that takes too long is tried again, as long as the request has time.
func testRetryBackendTimeout(t *testing.T, s *suite.ConformanceTestSuite) {
	address := accepted(t, s, "same-namespace", "own-retry")
	slow := func(failures, delay string) url.Values {
		return url.Values{"responseCode": {"500"}, "succeedAfter": {failures}, "delayRetry": {delay}}
	}
	for name, test := range map[string]retrying{
		"answered after two slow attempts":         {path: "/retry/backend-timeout", query: slow("2", "300ms"), codes: []int{200}},
		"slow once more than there are retries":    {path: "/retry/backend-timeout", query: slow("3", "300ms"), codes: []int{504}},
		"tried again within the request's timeout": {path: "/retry/request-timeout", query: slow("1", "0s"), codes: []int{200}},
		"the request's timeout ends the retries":   {path: "/retry/request-timeout", query: slow("4", "150ms"), codes: []int{504}},
	} {
		t.Run(name, func(t *testing.T) { test.run(t, s, address) })
	}
}

// Nothing in a name is too long for the children made of it.
func testNameLength(t *testing.T, s *suite.ConformanceTestSuite) {
	address := accepted(t, s, strings.Repeat("g", 253), strings.Repeat("r", 253))
	http.MakeRequestAndExpectEventuallyConsistentResponse(t, s.RoundTripper, s.TimeoutConfig, address, http.ExpectedResponse{
		Request: http.Request{Path: "/"}, Response: http.Response{StatusCodes: []int{200}},
		Backend: suite.InfraBackendServiceNameV1, Namespace: suite.InfrastructureNamespace,
	})
}

// Of equal matches in one route the first wins, and only of equal ones.
func testRuleOrder(t *testing.T, s *suite.ConformanceTestSuite) {
	address := accepted(t, s, "same-namespace", "own-rule-order")
	for name, test := range map[string]struct {
		path, backend string
		headers       map[string]string
	}{
		"equal matches":                   {path: "/equal", backend: "infra-backend-v1"},
		"a longer path stands behind":     {path: "/longer", backend: "infra-backend-v3"},
		"nothing more specific":           {path: "/other", backend: "infra-backend-v2"},
		"as many headers, and both match": {path: "/other", backend: "infra-backend-v3", headers: map[string]string{"color": "blue", "size": "big", "shape": "round"}},
		"as many headers, one matches":    {path: "/other", backend: "infra-backend-v1", headers: map[string]string{"color": "blue", "shape": "round"}},
		"a longer path beats headers":     {path: "/equal", backend: "infra-backend-v1", headers: map[string]string{"color": "blue", "size": "big"}},
	} {
		t.Run(name, func(t *testing.T) {
			http.MakeRequestAndExpectEventuallyConsistentResponse(t, s.RoundTripper, s.TimeoutConfig, address, http.ExpectedResponse{
				Request:  http.Request{Host: "order.example.com", Path: test.path, Headers: test.headers},
				Response: http.Response{StatusCodes: []int{200}}, Backend: test.backend, Namespace: suite.InfrastructureNamespace,
			})
		})
	}
}

// A GRPCRoute of two Gateways is served by both, and one of one Gateway by that alone.
func testGRPCMultipleGateways(t *testing.T, s *suite.ConformanceTestSuite) {
	reached := func(gateway string, routes ...string) string {
		names := make([]types.NamespacedName, 0, len(routes))
		for _, route := range routes {
			names = append(names, infra(route))
		}
		return kubernetes.GatewayAndRoutesMustBeAccepted(t, s.Client, s.TimeoutConfig, s.ControllerName, kubernetes.NewGatewayRef(infra(gateway)), &gatewayv1.GRPCRoute{}, true, names...)
	}
	both, shared := reached("same-namespace", "own-grpc-shared", "own-grpc-dedicated"), reached("all-namespaces", "own-grpc-shared")
	for i, test := range []struct {
		address string
		want    grpc.ExpectedResponse
	}{
		{address: both, want: grpc.ExpectedResponse{EchoRequest: &pb.EchoRequest{}, Backend: "grpc-infra-backend-v1"}},
		{address: both, want: grpc.ExpectedResponse{EchoTwoRequest: &pb.EchoRequest{}, Backend: "grpc-infra-backend-v2"}},
		{address: shared, want: grpc.ExpectedResponse{EchoRequest: &pb.EchoRequest{}, Backend: "grpc-infra-backend-v1"}},
		{address: shared, want: grpc.ExpectedResponse{EchoTwoRequest: &pb.EchoRequest{}, Response: grpc.Response{Code: codes.Unimplemented}}},
	} {
		test.want.Namespace = suite.InfrastructureNamespace
		t.Run(fmt.Sprintf("%d to %s", i, test.address), func(t *testing.T) {
			grpc.MakeRequestAndExpectEventuallyConsistentResponse(t, s.GRPCClient, s.TimeoutConfig, test.address, test.want)
		})
	}
}
