package token_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/slipway-dev/slipway/internal/gateway/feature/auth/token"
)

// An accepted token contains exactly what the issuer signed, whatever is sent.
func FuzzVerify(f *testing.F) {
	private := jose.JSONWebKey{Key: edKey(), KeyID: "a"}
	set, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{private.Public()}})
	if err != nil {
		f.Fatal(err)
	}
	keys, err := token.ParseKeys(set)
	if err != nil {
		f.Fatal(err)
	}
	signed := sign(f, jose.EdDSA, edKey(), "a", claims(f, nil))
	said := signed[:strings.LastIndexByte(signed, '.')]
	f.Add(signed)
	f.Add(said + ".")
	f.Add(encode(`{"alg":"none"}`) + "." + encode(claims(f, nil)) + ".")
	f.Add(sign(f, jose.HS256, []byte(strings.Repeat("k", 32)), "a", claims(f, nil)))
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := keys.Verify(text, rules, now); err == nil && text[:strings.LastIndexByte(text, '.')] != said {
			t.Errorf("accepted: %q", text)
		}
	})
}

// The text of a claim can always be a header value, whatever the claim contains.
func FuzzClaims(f *testing.F) {
	f.Add(`{"a": {"b": "c"}}`, "a.b")
	f.Add(`{"a": "b\r\nX-Admin: 1"}`, "a")
	f.Add(`{"a": ["\u0000", " "]}`, "a")
	f.Fuzz(func(t *testing.T, text, name string) {
		var claims token.Claims
		if json.Unmarshal([]byte(text), &claims) != nil {
			return
		}
		value, _ := claims.Text(name)
		if strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f }) || strings.Trim(value, " \t") != value {
			t.Errorf("%q of %q is %q", name, text, value)
		}
	})
}
