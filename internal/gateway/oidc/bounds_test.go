package oidc

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestAnswersToRequestsForTokensAreReadInBounds(t *testing.T) {
	for name, test := range map[string]struct {
		size   int
		packed bool
		whole  bool
	}{
		"the largest":         {maxAnswer, false, true},
		"a larger one":        {maxAnswer + 1, false, false},
		"a gigantic one":      {8 << 20, false, false},
		"the largest, packed": {maxAnswer, true, true},
		"a larger one, which is small while it is packed": {maxAnswer + 1, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				out := io.Writer(w)
				if test.packed {
					w.Header().Set("Content-Encoding", "gzip")
					packed := gzip.NewWriter(w)
					defer packed.Close()
					out = packed
				}
				_, _ = io.WriteString(out, strings.Repeat("x", test.size))
			}))
			defer server.Close()
			client := NewHTTPClient()
			defer client.CloseIdleConnections()
			response, err := client.Get(server.URL)
			if err != nil {
				t.Fatal(err)
			}
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			_, bounded := errors.AsType[*http.MaxBytesError](err)
			if len(text) != min(test.size, maxAnswer) || bounded == test.whole || err == nil != test.whole {
				t.Errorf("%d bytes, %v", len(text), err)
			}
		})
	}
}
