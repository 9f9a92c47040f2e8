package token_test

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/slipway-dev/slipway/internal/gateway/feature/auth/token"
)

var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

var (
	rsaKey = sync.OnceValue(func() *rsa.PrivateKey { return must(rsa.GenerateKey(rand.Reader, 2048)) })
	ecKey  = sync.OnceValue(func() *ecdsa.PrivateKey { return must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)) })
	edKey  = sync.OnceValue(func() ed25519.PrivateKey {
		_, key, err := ed25519.GenerateKey(rand.Reader)
		return must(key, err)
	})
)

func must[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// sign makes a token with the claims, signed by go-jose.
func sign(t testing.TB, algorithm jose.SignatureAlgorithm, key any, id, claims string) string {
	t.Helper()
	options := (&jose.SignerOptions{}).WithType("JWT")
	if id != "" {
		options.WithHeader("kid", id)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: algorithm, Key: key}, options)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign([]byte(claims))
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// keySet returns a key set as an issuer publishes it.
func keySet(t *testing.T, keys ...jose.JSONWebKey) []byte {
	t.Helper()
	text, err := json.Marshal(jose.JSONWebKeySet{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func parse(t *testing.T, text []byte) *token.Keys {
	t.Helper()
	keys, err := token.ParseKeys(text)
	if err != nil {
		t.Fatal(err)
	}
	return keys
}

// claims returns valid claims, with the given ones changed.
func claims(t testing.TB, over map[string]any) string {
	t.Helper()
	all := map[string]any{"iss": "https://issuer.example.com", "aud": "shop", "sub": "alice", "exp": now.Add(time.Minute).Unix()}
	for name, value := range over {
		all[name] = value
		if value == nil {
			delete(all, name)
		}
	}
	text, err := json.Marshal(all)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var rules = token.Rules{Issuer: "https://issuer.example.com", Audiences: []string{"shop", "admin"}}

func TestATokenIsTakenForWhatItSaysAndNoLonger(t *testing.T) {
	keys := parse(t, keySet(t, jose.JSONWebKey{Key: ecKey().Public(), KeyID: "a"}))
	at := func(d time.Duration) int64 { return now.Add(d).Unix() }
	for name, test := range map[string]struct {
		over  map[string]any
		valid bool
	}{
		"good":                               {nil, true},
		"another issuer":                     {map[string]any{"iss": "https://evil.example.com"}, false},
		"no issuer":                          {map[string]any{"iss": nil}, false},
		"issuer in upper case":               {map[string]any{"iss": "HTTPS://issuer.example.com"}, false},
		"another audience":                   {map[string]any{"aud": "shop2"}, false},
		"no audience":                        {map[string]any{"aud": nil}, false},
		"one of several audiences":           {map[string]any{"aud": []string{"other", "admin"}}, true},
		"empty list of audiences":            {map[string]any{"aud": []string{}}, false},
		"audience that is no text":           {map[string]any{"aud": 1}, false},
		"expired within the leeway":          {map[string]any{"exp": at(-29 * time.Second)}, true},
		"expired":                            {map[string]any{"exp": at(-31 * time.Second)}, false},
		"never expires":                      {map[string]any{"exp": nil}, false},
		"expiry as text":                     {map[string]any{"exp": "2999-01-01"}, false},
		"not valid yet within the leeway":    {map[string]any{"nbf": at(29 * time.Second)}, true},
		"not valid yet":                      {map[string]any{"nbf": at(31 * time.Second)}, false},
		"issued in the future":               {map[string]any{"iat": at(31 * time.Second)}, false},
		"issued a moment ago by fast clocks": {map[string]any{"iat": at(10 * time.Second)}, true},
	} {
		_, err := keys.Verify(sign(t, jose.ES256, ecKey(), "a", claims(t, test.over)), rules, now)
		if (err == nil) != test.valid {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if _, err := keys.Verify(sign(t, jose.ES256, ecKey(), "a", claims(t, map[string]any{"aud": nil})), token.Rules{Issuer: rules.Issuer}, now); err != nil {
		t.Errorf("where every audience is good: %v", err)
	}
}

func TestEveryKindOfPublicKeyVerifies(t *testing.T) {
	for algorithm, key := range map[jose.SignatureAlgorithm]any{
		jose.RS256: rsaKey(), jose.RS512: rsaKey(), jose.PS256: rsaKey(), jose.ES256: ecKey(), jose.EdDSA: edKey(),
	} {
		private := jose.JSONWebKey{Key: key}
		keys := parse(t, keySet(t, private.Public()))
		got, err := keys.Verify(sign(t, algorithm, key, "", claims(t, nil)), rules, now)
		if err != nil || got.Subject() != "alice" {
			t.Errorf("%s: got %v, %v", algorithm, got, err)
		}
	}
}

// encode encodes a part of a token.
func encode(text string) string { return base64.RawURLEncoding.EncodeToString([]byte(text)) }

func TestForgedTokensAreRefused(t *testing.T) {
	public := jose.JSONWebKey{Key: rsaKey().Public(), KeyID: "a"}
	keys := parse(t, keySet(t, public, jose.JSONWebKey{Key: ecKey().Public(), KeyID: "b", Algorithm: "ES256"}))
	good := claims(t, nil)
	signed := sign(t, jose.RS256, rsaKey(), "a", good)
	parts := strings.Split(signed, ".")
	stranger := must(rsa.GenerateKey(rand.Reader, 2048))
	strangers := must(json.Marshal(jose.JSONWebKey{Key: stranger.Public()}))
	der := must(x509.MarshalPKIXPublicKey(rsaKey().Public()))
	asPEM := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	if _, err := keys.Verify(signed, rules, now); err != nil {
		t.Fatalf("the real one: %v", err)
	}
	for name, text := range map[string]string{
		"empty":                          "",
		"no token":                       "a.b.c",
		"two parts":                      parts[0] + "." + parts[1],
		"no signature":                   parts[0] + "." + parts[1] + ".",
		"alg none":                       encode(`{"alg":"none"}`) + "." + parts[1] + ".",
		"alg None":                       encode(`{"alg":"None","kid":"a"}`) + "." + parts[1] + "." + parts[2],
		"no alg":                         encode(`{"kid":"a"}`) + "." + parts[1] + "." + parts[2],
		"other claims":                   parts[0] + "." + encode(strings.Replace(good, "alice", "admin", 1)) + "." + parts[2],
		"another algorithm of the key":   encode(`{"alg":"PS256","kid":"a"}`) + "." + parts[1] + "." + parts[2],
		"algorithm of another key":       encode(`{"alg":"ES256","kid":"a"}`) + "." + parts[1] + "." + parts[2],
		"a MAC with the key in PEM":      sign(t, jose.HS256, asPEM, "a", good),
		"a MAC with the key in DER":      sign(t, jose.HS256, der, "a", good),
		"a MAC with the modulus":         sign(t, jose.HS512, rsaKey().N.Bytes(), "a", good),
		"a stranger's key":               sign(t, jose.RS256, stranger, "a", good),
		"a stranger's key, without name": sign(t, jose.RS256, stranger, "", good),
		"a stranger's key in the header": encode(`{"alg":"RS256","jwk":`+string(strangers)+`}`) + "." + strings.SplitN(sign(t, jose.RS256, stranger, "", good), ".", 2)[1],
		"an address in the header":       encode(`{"alg":"RS256","kid":"a","jku":"https://evil.example.com"}`) + "." + parts[1] + "." + parts[2],
		"something critical":             encode(`{"alg":"RS256","kid":"a","crit":["x"],"x":1}`) + "." + parts[1] + "." + parts[2],
		"JSON, not compact":              `{"payload":"` + parts[1] + `","protected":"` + parts[0] + `","signature":"` + parts[2] + `"}`,
		"white space":                    " " + signed,
		"twice":                          signed + "." + signed,
		"a claim twice":                  sign(t, jose.RS256, rsaKey(), "a", strings.Replace(good, "{", `{"iss":"x",`, 1)),
		"claims that are no object":      sign(t, jose.RS256, rsaKey(), "a", `"iss"`),
		"longer than a token may be":     sign(t, jose.RS256, rsaKey(), "a", claims(t, map[string]any{"pad": strings.Repeat("a", token.MaxToken)})),
	} {
		if got, err := keys.Verify(text, rules, now); err == nil {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestAKeyThatIsNotKnownIsToldFromABadSignature(t *testing.T) {
	keys := parse(t, keySet(t, jose.JSONWebKey{Key: ecKey().Public(), KeyID: "a"}))
	stranger := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	for id, unknown := range map[string]bool{"a": false, "b": true, "": false} {
		_, err := keys.Verify(sign(t, jose.ES256, stranger, id, claims(t, nil)), rules, now)
		if err == nil || errors.Is(err, token.ErrUnknownKey) != unknown {
			t.Errorf("key %q: got %v", id, err)
		}
	}
}

func TestOfManyKeysOnlyAFewAreTried(t *testing.T) {
	var set []jose.JSONWebKey
	for i := range 8 {
		set = append(set, jose.JSONWebKey{Key: must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader)).Public(), KeyID: fmt.Sprint(i)})
	}
	keys := parse(t, keySet(t, append(set, jose.JSONWebKey{Key: ecKey().Public(), KeyID: "last"})...))
	for id, valid := range map[string]bool{"last": true, "": false} {
		if _, err := keys.Verify(sign(t, jose.ES256, ecKey(), id, claims(t, nil)), rules, now); (err == nil) != valid {
			t.Errorf("key %q: got %v", id, err)
		}
	}
}

func TestOnlyPublicKeysForSignaturesAreTaken(t *testing.T) {
	usable := string(must(json.Marshal(jose.JSONWebKey{Key: ecKey().Public(), KeyID: "good"})))
	for name, test := range map[string]struct {
		set    string
		usable bool
	}{
		"no JSON":                  {"canary", false},
		"another document":         {`{"a": 1}`, false},
		"no keys":                  {`{"keys": []}`, false},
		"keys that are no list":    {`{"keys": {}}`, false},
		"a secret":                 {`{"keys": [{"kty": "oct", "k": "Y2FuYXJ5Y2FuYXJ5Y2FuYXJ5Y2FuYXJ5Y2FuYXJ5"}]}`, false},
		"a kind that nobody knows": {`{"keys": [{"kty": "canary"}]}`, false},
		"half a key":               {`{"keys": [{"kty": "RSA", "e": "AQAB"}]}`, false},
		"a short RSA key":          {string(keySet(t, jose.JSONWebKey{Key: must(rsa.GenerateKey(rand.Reader, 1024)).Public()})), false},
		"a key for encryption":     {strings.Replace(`{"keys": [`+usable+`]}`, `"kty"`, `"use":"enc","kty"`, 1), false},
		"an algorithm of others":   {strings.Replace(`{"keys": [`+usable+`]}`, `"kty"`, `"alg":"RS256","kty"`, 1), false},
		"a MAC's algorithm":        {strings.Replace(`{"keys": [`+usable+`]}`, `"kty"`, `"alg":"HS256","kty"`, 1), false},
		"one good among others":    {`{"keys": [{"kty": "canary"}, 1, ` + usable + `]}`, true},
		"a private key":            {string(keySet(t, jose.JSONWebKey{Key: ecKey(), KeyID: "good"})), true},
		"too large":                {`{"keys": [` + usable + `]` + strings.Repeat(" ", token.MaxKeySet) + `}`, false},
	} {
		keys, err := token.ParseKeys([]byte(test.set))
		if (err == nil) != test.usable {
			t.Errorf("%s: got %v", name, err)
		}
		if err != nil && strings.Contains(err.Error(), "canary") {
			t.Errorf("%s: the error tells what was read: %v", name, err)
		}
		if err != nil {
			continue
		}
		if _, err := keys.Verify(sign(t, jose.ES256, ecKey(), "good", claims(t, nil)), rules, now); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestClaimsAsText(t *testing.T) {
	keys := parse(t, keySet(t, jose.JSONWebKey{Key: ecKey().Public()}))
	text := fmt.Sprintf(`{"iss":%q,"aud":"shop","exp":%d,
		"sub":"alice","id":12345678901234567,"rate":1.50,"admin":true,"none":null,"groups":["a,b","c"],"org":{"name":"x","unit":{"id":7}},
		"https://example.com/role":"owner","org.name":"dotted","line":"a\nX-Admin: 1","blank":" a","umlaut":"Müller","empty":""}`, rules.Issuer, now.Unix())
	got, err := keys.Verify(sign(t, jose.ES256, ecKey(), "", text), rules, now)
	if err != nil {
		t.Fatal(err)
	}
	const missing = "-"
	for name, wanted := range map[string]string{
		"sub": "alice", "id": "12345678901234567", "rate": "1.50", "admin": "true", "none": missing, "groups": `["a,b","c"]`,
		"org": `{"name":"x","unit":{"id":7}}`, "org.unit.id": "7", "org.unit.none": missing, "sub.x": missing, "org.": missing, "": missing,
		"https://example.com/role": "owner", "org.name": "dotted", "line": missing, "blank": missing, "umlaut": "Müller", "empty": "",
	} {
		value, found := got.Text(name)
		if !found {
			value = missing
		}
		if value != wanted {
			t.Errorf("%s: got %q, want %q", name, value, wanted)
		}
	}
}
