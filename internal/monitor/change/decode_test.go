package change

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestDecodeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"nothing":                        {"", errSyntax},
		"half an object":                 {`{"a":1`, errSyntax},
		"two values":                     {`{} {}`, errSyntax},
		"a comma too many":               {`[1,]`, errSyntax},
		"a number with a leading zero":   {`01`, errSyntax},
		"a number that ends with a dot":  {`1.`, errSyntax},
		"a line break in a string":       {"\"a\nb\"", errSyntax},
		"a key twice":                    {`{"a":1,"b":2,"a":3}`, errDuplicate},
		"a key twice, once escaped":      {`{"token":1,"t\u006fken":2}`, errDuplicate},
		"bytes that are not UTF-8":       {"\"\xff\"", errUnicode},
		"a half surrogate":               {`"\ud800"`, errUnicode},
		"two first halves":               {`"\ud800\ud800"`, errUnicode},
		"too deep":                       {strings.Repeat("[", MaxDepth+1) + strings.Repeat("]", MaxDepth+1), errDeep},
		"a million brackets":             {strings.Repeat("[", 1_000_000), errDeep},
		"too many values":                {"[" + strings.Repeat("1,", MaxValues) + "1]", errMany},
		"too large":                      {`"` + strings.Repeat("a", MaxBytes) + `"`, errLarge},
		"an escape that does not exist":  {`"\x41"`, errSyntax},
		"an escape that does not end":    {`"\u00`, errSyntax},
		"a backslash at the end":         {`"\`, errSyntax},
		"a word that is none":            {`nul`, errSyntax},
		"a sign in a codepoint":          {`"\u+041"`, errSyntax},
		"a member without a value":       {`{"a"}`, errSyntax},
		"a member whose key is a number": {`{1:2}`, errSyntax},
	} {
		if _, err := decode(c.text); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}

func TestDecodeKeepsWhatIsThere(t *testing.T) {
	deep := strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth)
	for text, want := range map[string]string{
		"" + ` { "b" : [ 1 , 2.50 , -0 , 1E+400 ] , "a" : null } `: `{"a":null,"b":[1,2.50,-0,1E+400]}`,
		`"\u0041\n\/\ud83d\ude00\u2028\u001f<&>"`:                  "\"A\\n/😀\u2028\\u001f<&>\"",
		`9007199254740993`:                   `9007199254740993`,
		`{"":{"":[[],{}]}}`:                  `{"":{"":[[],{}]}}`,
		`[true,false,"",0]`:                  `[true,false,"",0]`,
		deep:                                 deep,
		`{"z":1,"y":2,"x":3,"é":4,"a\"b":5}`: `{"a\"b":5,"x":3,"y":2,"z":1,"é":4}`,
	} {
		root, err := decode(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		if got := root.canonical(); got != want {
			t.Errorf("%s is written as %s, want %s", text, got, want)
		}
	}
}

// What decode reads means the same to the standard library, and what it refuses has one of a few reasons to be refused.
func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,2.5e-3,"x\ud83d\ude00"],"b":{"c":null,"d":true}}`, `"\ud800"`, `{"a":1,"a":2}`, `[1,2`, ` [ ] `, `-0.0E-0`, "\"\x80\"",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		root, err := decode(text)
		if err != nil {
			refused := errors.Is(err, errDuplicate) || errors.Is(err, errDeep) || errors.Is(err, errMany) || errors.Is(err, errLarge)
			if errors.Is(err, errUnicode) {
				refused = !utf8.ValidString(text) || strings.Contains(strings.ToLower(text), `\ud`)
			}
			if json.Valid([]byte(text)) && !refused {
				t.Fatalf("%q is valid, and refused: %v", text, err)
			}
			return
		}
		canonical := root.encode(nil)
		if got, want := model(t, canonical), model(t, []byte(text)); !reflect.DeepEqual(got, want) {
			t.Fatalf("%q became %q", text, canonical)
		}
		again, err := decode(string(canonical))
		if err != nil || !again.equal(&root) || !bytes.Equal(again.encode(nil), canonical) {
			t.Fatalf("%q is not written in one way: %q (%v)", text, canonical, err)
		}
		if c := root.clone(); !c.equal(&root) {
			t.Fatal("a copy differs")
		}
	})
}

// model reads JSON with the standard library.
func model(t *testing.T, text []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return value
}

// The member that is found without reading the rest is the one that a reader finds.
func FuzzFindMember(f *testing.F) {
	f.Add(`{"a":{"metadata":1},"metadata":{"name":"x"},"b":"}"}`)
	f.Add(`{"x":[{"y":"\""}],"metadata" : 12 }`)
	f.Add(`{"metadata":1,"metadata":2}`)
	f.Fuzz(func(t *testing.T, text string) {
		found, ok := findMember(text, "metadata")
		if ok && (found.start < 0 || found.end > len(text) || found.start > found.end) {
			t.Fatalf("%q: %+v", text, found)
		}
		root, err := decode(text)
		if err != nil || root.typ != objectNode || strings.Contains(text, `\u`) {
			return
		}
		member := root.member("metadata")
		if (member != nil) != ok {
			t.Fatalf("%q: found %v, a reader %v", text, ok, member)
		}
		if member == nil {
			return
		}
		value, err := decode(text[found.start:found.end])
		if err != nil || !value.equal(member) {
			t.Fatalf("%q: found %q (%v)", text, text[found.start:found.end], err)
		}
	})
}
