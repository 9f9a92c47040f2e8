package token_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/slipway-dev/slipway/internal/gateway/feature/auth/token"
)

func TestWhatCountsAsAValueOfAClaim(t *testing.T) {
	for text, test := range map[string]struct {
		claim  string
		values []string
		has    bool
	}{
		`{"role": "admin"}`:                                  {"role", []string{"owner", "admin"}, true},
		`{"role": "user"}`:                                   {"role", []string{"owner", "admin"}, false},
		`{"role": "Admin"}`:                                  {"role", []string{"admin"}, false},
		`{"role": " admin"}`:                                 {"role", []string{"admin"}, false},
		`{"role": "admin user"}`:                             {"role", []string{"admin"}, false},
		`{"role": "admin,user"}`:                             {"role", []string{"admin"}, false},
		`{}`:                                                 {"role", []string{"admin"}, false},
		`{"role": null}`:                                     {"role", []string{"null"}, false},
		`{"role": {"admin": true}}`:                          {"role", []string{"admin", `{"admin":true}`}, false},
		`{"groups": ["a", "b"]}`:                             {"groups", []string{"b"}, true},
		`{"groups": ["a", ["b"], {"b": 1}, null]}`:           {"groups", []string{"b", "null", `["b"]`}, false},
		`{"groups": []}`:                                     {"groups", []string{"", "[]"}, false},
		`{"level": 3}`:                                       {"level", []string{"3"}, true},
		`{"level": -3}`:                                      {"level", []string{"-3"}, true},
		`{"level": 12345678901234567890123}`:                 {"level", []string{"12345678901234567890123"}, true},
		`{"level": 12345678901234567890124}`:                 {"level", []string{"12345678901234567890123"}, false},
		`{"level": 1e0}`:                                     {"level", []string{"1", "1e0"}, false},
		`{"level": 1.0}`:                                     {"level", []string{"1", "1.0"}, false},
		`{"level": -0}`:                                      {"level", []string{"0", "-0"}, false},
		`{"verified": true}`:                                 {"verified", []string{"true"}, true},
		`{"verified": false}`:                                {"verified", []string{"true"}, false},
		`{"org": {"role": "admin"}}`:                         {"org.role", []string{"admin"}, true},
		`{"org.role": "admin"}`:                              {"org.role", []string{"admin"}, true},
		`{"https://a.example/role": "admin"}`:                {"https://a.example/role", []string{"admin"}, true},
		`{"org.role": "admin", "org": {"role": "user"}}`:     {"org.role", []string{"admin", "user"}, false},
		`{"org.role": "admin", "org": "user"}`:               {"org.role", []string{"admin"}, true},
		`{"a.b": {"c": "admin"}}`:                            {"a.b.c", []string{"admin"}, true},
		`{"a.b": {"c": "user"}, "a": {"b": {"c": "admin"}}}`: {"a.b.c", []string{"admin"}, false},
		`{"a": {"b.c": "user", "b": {"c": "admin"}}}`:        {"a.b.c", []string{"admin"}, false},
		`{"org": [{"role": "admin"}]}`:                       {"org.role", []string{"admin"}, false},
		`{"Role": "admin"}`:                                  {"role", []string{"admin"}, false},
		`{"Role": "user", "role": "admin"}`:                  {"role", []string{"admin"}, false},
		`{"org": {"role": "admin"}, "ORG": {"ROLE": 1}}`:     {"org.role", []string{"admin"}, false},
		`{"scope": "read write"}`:                            {"scope", []string{"write"}, true},
		`{"scp": "read write"}`:                              {"scp", []string{"write"}, true},
		`{"scope": "readwrite"}`:                             {"scope", []string{"write"}, false},
		`{"scope": "read\twrite"}`:                           {"scope", []string{"write"}, false},
		`{"scope": ["read", "write"]}`:                       {"scope", []string{"write"}, true},
		`{"scope": ["read write"]}`:                          {"scope", []string{"write"}, false},
		`{"role": "\ud800"}`:                                 {"role", []string{"\ufffd"}, false},
	} {
		var claims token.Claims
		if err := json.Unmarshal([]byte(text), &claims); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if has := claims.Has(test.claim, test.values); has != test.has {
			t.Errorf("%s of %s has one of %q: %v", test.claim, text, test.values, has)
		}
	}
}

func TestATokenThatNamesAClaimTwiceIsNoToken(t *testing.T) {
	keys := parse(t, keySet(t, jose.JSONWebKey{Key: edKey().Public(), KeyID: "a"}))
	const valid = `"iss": "https://issuer.example.com", "aud": "shop", "sub": "alice", "exp": 32503680000`
	for text, accepted := range map[string]bool{
		`{` + valid + `}`: true,
		`{` + valid + `, "a": {"role": 1}, "b": {"role": 1}}`:                   true,
		`{` + valid + `, "a": [{"role": 1}, {"role": 1}, "role", "role"]}`:      true,
		`{` + valid + `, "role": "user", "role": "admin"}`:                      false,
		`{` + valid + `, "role": "user", "\u0072ole": "admin"}`:                 false,
		`{` + valid + `, "a": {"role": "user", "role": "admin"}}`:               false,
		`{` + valid + `, "a": [{"role": "user", "b": [], "role": "admin"}]}`:    false,
		`{` + valid + `, "a": {"b": {"c": "role"}, "d": "b", "b": {"c": "e"}}}`: false,
		`{` + valid + `, "a": {"ro\ud800le": "user", "ro\ud801le": "admin"}}`:   false,
		`{` + valid + `, "exp": 32503680000}`:                                   false,
	} {
		signed := sign(t, jose.EdDSA, edKey(), "a", text)
		_, err := keys.Verify(signed, token.Rules{Issuer: "https://issuer.example.com"}, now)
		if (err == nil) != accepted {
			t.Errorf("%s: got %v", text, err)
		}
	}
}

// Whoever is let in by a claim, every reader of the token finds a claim that lets in: those who take the first of two or the last,
// who ignore case, and who prefer one of the ways through dots.
func FuzzRequiredClaims(f *testing.F) {
	for _, text := range []string{
		`{"a": "b"}`, `{"a": ["b", 1, true]}`, `{"a": {"c": "b"}}`, `{"a.c": "b"}`, `{"a": "b", "A": "c"}`, `{"a": "b", "a": "c"}`,
		`{"a": {"c": "b", "c": 1}}`, `{"a": 1e0}`, `{"a": [["b"]]}`, `{"scope": "b c"}`, `{"a": {"C": "b"}, "a.c": "b"}`,
	} {
		for _, name := range []string{"a", "a.c", "scope"} {
			f.Add(text, name, "b")
			f.Add(text, name, "1")
		}
	}
	f.Fuzz(func(t *testing.T, text, name, value string) {
		var claims token.Claims
		if json.Unmarshal([]byte(text), &claims) != nil || !claims.Has(name, []string{value}) {
			return
		}
		found := lenient(members(t, text), name)
		if len(found) == 0 {
			t.Fatalf("%q of %q let in, and no reader finds it", name, text)
		}
		for _, one := range found {
			if !slices.Contains(one, value) {
				t.Errorf("%q of %q lets %q in, and a reader finds %q", name, text, value, one)
			}
		}
	})
}

// member is a name with its value: text, a list of values, or members.
type member struct {
	name  string
	value any
}

// members reads an object without a map, so that nothing is lost.
func members(t *testing.T, text string) []member {
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	value := readValue(t, decoder)
	object, _ := value.([]member)
	return object
}

func readValue(t *testing.T, decoder *json.Decoder) any {
	word, err := decoder.Token()
	if err != nil {
		t.Fatal(err)
	}
	switch word {
	case json.Delim('{'):
		object := []member{}
		for decoder.More() {
			name := fmt.Sprint(readValue(t, decoder))
			object = append(object, member{name, readValue(t, decoder)})
		}
		_, err = decoder.Token()
		if err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
		return object
	case json.Delim('['):
		list := []any{}
		for decoder.More() {
			list = append(list, readValue(t, decoder))
		}
		_, _ = decoder.Token()
		return list
	}
	return fmt.Sprint(word)
}

// lenient returns the values of each claim that some reader finds.
func lenient(object []member, name string) [][]string {
	var found [][]string
	for _, one := range object {
		if strings.EqualFold(one.name, name) {
			found = append(found, valuesOf(one.value, name))
		}
		first, rest, more := strings.Cut(name, ".")
		if inner, is := one.value.([]member); is && more && strings.EqualFold(one.name, first) {
			found = append(found, lenient(inner, rest)...)
		}
	}
	return found
}

func valuesOf(value any, name string) []string {
	switch value := value.(type) {
	case string:
		if strings.EqualFold(name, "scope") || strings.EqualFold(name, "scp") {
			return append(strings.Split(value, " "), value)
		}
		return []string{value}
	case []any:
		var texts []string
		for _, one := range value {
			if text, is := one.(string); is {
				texts = append(texts, text)
			}
		}
		return texts
	}
	return nil
}
