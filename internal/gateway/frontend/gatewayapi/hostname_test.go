package gatewayapi

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhichNamesAListenerServesOfARoute(t *testing.T) {
	tests := map[string]struct {
		listener string
		route    []string
		want     []string
	}{
		"neither names one":                    {"", nil, []string{""}},
		"only the listener":                    {"a.example.com", nil, []string{"a.example.com"}},
		"only the route":                       {"", []string{"a.example.com", "*.example.org"}, []string{"a.example.com", "*.example.org"}},
		"the same":                             {"a.example.com", []string{"a.example.com"}, []string{"a.example.com"}},
		"another":                              {"a.example.com", []string{"b.example.com"}, nil},
		"some of the route":                    {"a.example.com", []string{"b.example.com", "a.example.com"}, []string{"a.example.com"}},
		"below the listener":                   {"*.example.com", []string{"a.example.com", "b.a.example.com"}, []string{"a.example.com", "b.a.example.com"}},
		"a wildcard is not the name itself":    {"*.example.com", []string{"example.com"}, nil},
		"nor a name that ends the same":        {"*.example.com", []string{"myexample.com", "*.myexample.com"}, nil},
		"the listener is below the route":      {"a.example.com", []string{"*.example.com"}, []string{"a.example.com"}},
		"a wildcard within one":                {"*.example.com", []string{"*.a.example.com"}, []string{"*.a.example.com"}},
		"a wildcard around one":                {"*.a.example.com", []string{"*.example.com"}, []string{"*.a.example.com"}},
		"wildcards beside each other":          {"*.a.example.com", []string{"*.b.example.com"}, nil},
		"capitals":                             {"a.example.com", []string{"A.Example.com"}, []string{"a.example.com"}},
		"two that come to the same":            {"a.example.com", []string{"*.example.com", "a.example.com"}, []string{"a.example.com"}},
		"every name below one":                 {"", []string{"*.example.com"}, []string{"*.example.com"}},
		"a wildcard is not the whole of a top": {"*.com", []string{"*.example.com", "com"}, []string{"*.example.com"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, served(tc.listener, tc.route)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}
