package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"strconv"
	"strings"
	"testing"
)

// knownForms are texts that repeat a value in other forms.
func knownForms(value string) map[string]string {
	inJSON, _ := json.Marshal(value)
	again, _ := json.Marshal(string(inJSON))
	return map[string]string{
		"as it is": value, "quoted": strconv.Quote(value), "in JSON": string(inJSON), "in JSON twice": string(again),
		"of a query": url.QueryEscape(value), "of a path": url.PathEscape(value), "hex": hex.EncodeToString([]byte(value)),
		"HEX": strings.ToUpper(hex.EncodeToString([]byte(value))), "base64": base64.StdEncoding.EncodeToString([]byte(value)),
		"raw base64": base64.RawURLEncoding.EncodeToString([]byte(value)), "base64 after 1": base64.StdEncoding.EncodeToString([]byte("u" + value)),
		"base64 after 2": base64.StdEncoding.EncodeToString([]byte("u:" + value)), "in shell": "'" + strings.ReplaceAll(value, "'", `'\''`) + "'",
		"cut after":             "x " + value[:len(value)-1],
		"of encodeURIComponent": percent(value, "-_.!~*'()", "%%%02X"), "of encodeURI": percent(value, "-_.!~*'();/?:@&=+$,#", "%%%02X"),
		"percent in small letters": percent(value, "-_.~", "%%%02x"), "all in percent": percent(value, "", "%%%02X"),
		"percent twice":  percent(percent(value, "-_.~", "%%%02X"), "-_.~", "%%%02X"),
		"percent thrice": url.QueryEscape(url.PathEscape(percent(value, "-_.~", "%%%02x"))),
		"in HTML":        html.EscapeString(value), "in XML": escapeEach(value, "&<>\"'", "&#x%X;"), "in HTML by number": escapeEach(value, "&<>\"'+", "&#%d;"),
		"in HTML twice": html.EscapeString(html.EscapeString(value)), "in JSON of PHP": strings.ReplaceAll(inner(string(inJSON)), "/", `\/`),
		"in JSON of .NET": escapeEach(value, "\"&'+<>\\\t", `\u%04X`), "in JSON in ASCII": strconv.QuoteToASCII(value), "in Python": escapeEach(value, "'\\\t", `\x%02x`),
		"JSON in a query": url.QueryEscape(string(inJSON)), "a query in JSON": string(quoted(url.QueryEscape(value))), "HTML in JSON": string(quoted(html.EscapeString(value))),
		"in double quotes of a shell": `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`).Replace(value) + `"`,
		"in quotes of a shell within": `'` + strings.ReplaceAll(value, "'", `'"'"'`) + `'`, "in SQL": "'" + strings.ReplaceAll(value, "'", "''") + "'",
		"base64 for URLs": base64.URLEncoding.EncodeToString([]byte(value)), "base64 after 2 for URLs": base64.RawURLEncoding.EncodeToString([]byte("u:" + value)),
		"base64 twice":      base64.StdEncoding.EncodeToString([]byte(base64.StdEncoding.EncodeToString([]byte("user:" + value)))),
		"base64 in percent": url.QueryEscape(base64.StdEncoding.EncodeToString([]byte(value))), "percent in base64": base64.StdEncoding.EncodeToString([]byte(url.QueryEscape(value))),
		"base64 of JSON": base64.StdEncoding.EncodeToString([]byte(`{"a":` + string(inJSON) + `}`)), "base64 in JSON of PHP": strings.ReplaceAll(base64.StdEncoding.EncodeToString([]byte(value)), "/", `\/`),
	}
}

// percent writes all bytes but letters, digits and some others in a format.
func percent(value, keep, format string) string {
	var out strings.Builder
	for _, c := range []byte(value) {
		if isLetter(c) && keep != "" || isDigit(c) && keep != "" || strings.IndexByte(keep, c) >= 0 {
			out.WriteByte(c)
		} else {
			fmt.Fprintf(&out, format, c)
		}
	}
	return out.String()
}

// escapeEach writes some characters in a format.
func escapeEach(value, characters, format string) string {
	var out strings.Builder
	for _, r := range value {
		if strings.ContainsRune(characters, r) {
			fmt.Fprintf(&out, format, r)
		} else {
			out.WriteRune(r)
		}
	}
	return out.String()
}

func quoted(value string) []byte {
	raw, _ := json.Marshal(value)
	return raw
}

func TestKnownValuesInAllForms(t *testing.T) {
	for _, value := range []string{"Zo9 & <x>'\"\\y", "a/b+c&d=e'f\"g$h\\i", "!s(e)c*r~e't", "😀s3cr-t/ß", "swordfish", "pass\tword$%&", "ÄÖÜßéè-ñandú", strings.Repeat("long value ", 60)} {
		r := New(Value{Text: value, Marker: "$DB"})
		for name, form := range knownForms(value) {
			got := r.Clean(form)
			for _, other := range []string{form, strings.Trim(form, `"'=`)} {
				if strings.Contains(got, other) {
					t.Errorf("%s of %q: %q", name, value, got)
				}
			}
			if middle := form[len(form)/3 : 2*len(form)/3]; len(middle) > 4 && strings.Contains(got, middle) {
				t.Errorf("%s of %q: %q is left in %q", name, value, middle, got)
			}
		}
	}
}

// Of a value in base64 no character is left, whatever is before and after it, filled up or not, in either alphabet.
func TestOfAValueInBase64NothingIsLeft(t *testing.T) {
	for length := 8; length < 14; length++ {
		value := "Zo9?>~ñ-x7Qw2e4R"[:length]
		r := New(Value{Text: value, Marker: "$DB"})
		for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawStdEncoding, base64.URLEncoding, base64.RawURLEncoding} {
			for _, before := range []string{"", "u", "u:", "u:v"} {
				for _, after := range []string{"", "\n", "@h", ":1\n"} {
					text := "sent " + encoding.EncodeToString([]byte(before+value+after)) + "\nthe end"
					if got := r.Clean(text); got != "sent $DB\nthe end" && got != "sent (secret)\nthe end" {
						t.Errorf("%q between %q and %q: %q is %q", value, before, after, text, got)
					}
				}
			}
		}
	}
}

// What stands in place of values depends on these alone, not on the order of a map or on values that are not in the text.
func TestCleanIsTheSameEachTime(t *testing.T) {
	values := []Value{{Name: "A", Text: "swordfish", Marker: "$A"}, {Name: "B", Text: "swordfish-long", Marker: "$B"}, {Name: "C", Text: "swordfish", Marker: "$C"}}
	const text = "swordfish-long, swordfish and c3dvcmRmaXNoLWxvbmc="
	for range 50 {
		if got := New(values...).Clean(text); got != "$B, $A and $B" {
			t.Fatalf("%q", got)
		}
		for i := range 100 {
			values = append(values, Value{Name: fmt.Sprint("X", i), Text: fmt.Sprint("another value ", i)})
		}
		values = values[:103]
	}
}

// What is a part of a value is as secret as the whole.
func TestPartsOfKnownValues(t *testing.T) {
	for _, test := range []struct{ name, value, text, want string }{
		{"final line end", "swordfish\n", "login with swordfish refused", "login with $V refused"},
		{"one line", "user=app\nsecond line here\n", "bad: second line here!", "bad: $V!"},
		{"password of a URL", "postgres://app:s3cr-t@db/app?sslmode=disable", "user app: s3cr-t is wrong, sslmode disable", "user app: $V is wrong, sslmode disable"},
		{"escaped password of a URL", "postgres://app:s3%2Fcr-t@db/app", "for s3/cr-t", "for $V"},
		{"query of a URL", "https://host/x?sig=swordfish", "swordfish", "$V"},
		{"user of a URL", "https://swordfish@host/x", "swordfish", "$V"},
		{"part of a DSN", "host=db password=swordfish user=app", "refused swordfish of app", "refused $V of app"},
		{"member of JSON", `{"a":"b","password":"swordfish"}`, "refused swordfish", "refused $V"},
		{"beginning", "a long swordfish", "x a long sword", "x (secret)"},
		{"end", "a long swordfish", "swordfish x", "(secret) x"},
		{"quotes", `"swordfish"`, "swordfish", "$V"},
	} {
		if got := New(Value{Name: "V", Text: test.value, Marker: "$V"}).Clean(test.text); got != test.want {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
	}
}

func TestMarkersHoldNoValue(t *testing.T) {
	r := New(Value{Text: "PGPASS", Marker: "$PGPASSWORD"}, Value{Text: "secret", Marker: "$B"}, Value{Text: "x***y*", Marker: "$C"})
	for _, text := range []string{"PGPASS", "secret", "xsecrety*", "(secret)", "x***y*"} {
		got := r.Clean(text)
		for _, value := range []string{"PGPASS", "secret", "x***y*"} {
			if strings.Contains(got, value) {
				t.Errorf("%q: %q", text, got)
			}
		}
	}
}

// The text around a value and how it is cut into writes change nothing.
func TestWriterHidesAcrossWrites(t *testing.T) {
	r := New(Value{Text: "swordfish one\nswordfish two\n", Marker: "$V"})
	text := "begin\nlogin swordfish one\nswordfish two refused\n-----BEGIN PRIVATE KEY-----\nMIIEcanary\ncanary\n-----END PRIVATE KEY-----\nend " +
		strings.Repeat("x", 2*maxLine) + " swordfish two and no end"
	for _, size := range []int{1, 2, 3, 7, 100, 4096, 1 << 20} {
		var out strings.Builder
		w := NewWriter(&out, r)
		for at := 0; at < len(text); at += size {
			if n, err := fmt.Fprint(w, text[at:min(len(text), at+size)]); err != nil || n == 0 {
				t.Fatal(n, err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		got := out.String()
		for _, secret := range []string{"swordfish", "canary", "MIIE"} {
			if strings.Contains(got, secret) {
				t.Errorf("%d: %s is left: %.200q", size, secret, got)
			}
		}
		for _, rest := range []string{"begin\nlogin $V", " refused\n", "end xxx", "x $V and no end"} {
			if !strings.Contains(got, rest) {
				t.Errorf("%d: %q is lost: %.200q", size, rest, got)
			}
		}
	}
}

// Whatever the value and the text are, no value is left, and a second pass changes nothing.
func FuzzClean(f *testing.F) {
	f.Add("swordfish", "DB", "login with swordfish refused")
	f.Add("a***b", "X", "aa***bb")
	f.Add("postgres://a:b@c?d=e", "URL", "password=postgres://a:b@c?d=e")
	f.Add("secret", "SECRET", "token: secret secretsecret")
	f.Add("-----BEGIN PRIVATE KEY-----\nabc\n", "K", "x -----BEGIN PRIVATE KEY-----\\nabc")
	f.Add("user:pass", "BASIC", "dXNlcjpwYXNz <password>x</password> curl -u a:b")
	f.Fuzz(func(t *testing.T, value, name, text string) {
		if len(value) > 1000 || len(text) > 4000 {
			return
		}
		r := New(Value{Name: name, Text: value, Marker: "$" + name})
		got := r.Clean(text)
		if len(value) >= least && strings.Contains(got, value) {
			t.Errorf("%q is left in %q", value, got)
		}
		if again := r.Clean(got); again != got {
			t.Errorf("%q becomes %q", got, again)
		}
		if len(defaultNames.Find(text)) > 0 != defaultNames.Holds(text) {
			t.Errorf("%q: found, and not held", text)
		}
		var out strings.Builder
		w := NewWriter(&out, r)
		for _, part := range []string{text[:len(text)/2], text[len(text)/2:]} {
			_, _ = w.Write([]byte(part))
		}
		_ = w.Close()
		if len(value) >= least && !strings.Contains(value, "\n") && strings.Contains(out.String(), value) {
			t.Errorf("%q is left in the stream %q", value, out.String())
		}
	})
}
