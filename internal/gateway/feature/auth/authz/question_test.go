package authz_test

import (
	"runtime"
	"slices"
	"strings"
	"testing"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/slipway-dev/slipway/internal/gateway/feature/auth/authz"
	"github.com/slipway-dev/slipway/internal/gateway/upstream"
)

func TestFieldsOfOneNameAreJoined(t *testing.T) {
	many := func(name, value string) []upstream.Field {
		return slices.Repeat([]upstream.Field{{Name: name, Value: value}}, 13_000)
	}
	for name, test := range map[string]struct {
		fields []upstream.Field
		want   map[string]string
	}{
		"none":            {},
		"one of each":     {[]upstream.Field{{Name: "X-A", Value: "1"}, {Name: "Cookie", Value: "b=2"}}, map[string]string{"x-a": "1", "cookie": "b=2"}},
		"several":         {[]upstream.Field{{Name: "X-A", Value: "1"}, {Name: "X-B", Value: ""}, {Name: "x-a", Value: ""}, {Name: "X-A", Value: "3"}}, map[string]string{"x-a": "1,,3", "x-b": ""}},
		"cookies":         {[]upstream.Field{{Name: "Cookie", Value: "a=1"}, {Name: "cookie", Value: "b=2"}}, map[string]string{"cookie": "a=1; b=2"}},
		"many lines":      {many("X-A", "b"), map[string]string{"x-a": strings.Repeat(",b", 13_000)[1:]}},
		"many cookies":    {many("Cookie", "a"), map[string]string{"cookie": strings.Repeat("; a", 13_000)[2:]}},
		"many empty ones": {many("X-A", ""), map[string]string{"x-a": strings.Repeat(",", 12_999)}},
	} {
		t.Run(name, func(t *testing.T) {
			question := authz.Question{Method: "GET", Path: "/", Fields: test.fields}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			framed, err := question.Encode()
			runtime.ReadMemStats(&after)
			if err != nil {
				t.Fatal(err)
			}
			if bytes := after.TotalAlloc - before.TotalAlloc; bytes > 2<<20 {
				t.Errorf("%d bytes", bytes)
			}
			var request authv3.CheckRequest
			if err := proto.Unmarshal(framed[5:], &request); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, request.GetAttributes().GetRequest().GetHttp().GetHeaders()); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
