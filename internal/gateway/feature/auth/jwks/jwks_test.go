package jwks_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/slipway-dev/slipway/internal/gateway/feature/auth/jwks"
	"github.com/slipway-dev/slipway/internal/gateway/feature/auth/token"
)

func TestOnlyAKeySetIsTakenForOne(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public()}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		answer string
		good   bool
	}{
		"key set":      {string(set), true},
		"no key set":   {"canary", false},
		"empty set":    {`{"keys": []}`, false},
		"too large":    {string(set) + strings.Repeat(" ", token.MaxKeySet), false},
		"cut in a key": {string(set[:len(set)/2]), false},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Cache-Control", "max-age=60")
			_, _ = io.WriteString(w, test.answer)
		}))
		keys, fresh, err := jwks.Fetch(t.Context(), server.Client(), server.URL)
		server.Close()
		if (err == nil) != test.good || (keys != nil) != test.good || (test.good && fresh != time.Minute) {
			t.Errorf("%s: got %v, %v, %v", name, keys, fresh, err)
		}
		if err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: the error tells what was read: %v", name, err)
		}
	}
}
