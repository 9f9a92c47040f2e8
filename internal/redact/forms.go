package redact

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"html"
	"net/url"
	"strconv"
	"strings"
)

// maxEncoded bounds how many parts of a value are looked for in other forms than their own.
const maxEncoded = 256

// form is a text that is looked for because of a value.
type form struct {
	text string
	// base64 reports whether it is a part of what the value becomes in base64. The characters around it may have some bits of the value.
	base64 bool
}

// formsOf are the texts that are looked for because of a value.
func formsOf(v Value) []form {
	shortest := least
	if v.Secret {
		shortest = leastSecret
	}
	var forms []form
	for i, p := range partsOf(v) {
		if len(p.text) < min(shortest, p.least) {
			continue
		}
		forms = appendPieces(forms, form{text: p.text}, piece)
		if i >= maxEncoded {
			continue
		}
		for _, encoded := range encodedForms(p.text) {
			if len(encoded.text) >= min(shortest, p.least) {
				forms = appendPieces(forms, encoded, piece)
			}
		}
		if whole := base64.StdEncoding.EncodeToString([]byte(p.text)); len(whole) > 64 {
			// Programs break lines of base64 after so many characters.
			forms = appendPieces(appendPieces(forms, form{whole, true}, 76), form{whole, true}, 64)
		}
	}
	return forms
}

// encodedForms are the forms of a text besides its own.
func encodedForms(text string) []form {
	var forms []form
	for _, encoded := range encodingsOf(text) {
		forms = append(forms, form{text: encoded})
	}
	for offset := range 3 {
		for _, encoded := range inBase64(text, offset) {
			forms = append(forms, form{encoded, true})
		}
	}
	return forms
}

// appendPieces adds a form, in pieces if it is long. The last piece has what is left, and of the one before as much as it takes.
func appendPieces(forms []form, whole form, size int) []form {
	if len(whole.text) <= size {
		return append(forms, whole)
	}
	for start := 0; start+size <= len(whole.text); start += size {
		forms = append(forms, form{whole.text[start : start+size], whole.base64})
	}
	return append(forms, form{whole.text[len(whole.text)-size:], whole.base64})
}

// valuePart is a part of a value that is hidden by itself, if it is so long at least.
type valuePart struct {
	text  string
	least int
}

// partsOf are the parts of a value, the whole first.
func partsOf(v Value) []valuePart {
	parts := []valuePart{{v.Text, least}}
	add := func(text string, shortest int) {
		if text != "" && text != v.Text {
			parts = append(parts, valuePart{text, shortest})
		}
	}
	trimmed := strings.TrimSpace(v.Text)
	add(trimmed, least)
	add(strings.Trim(trimmed, `"'`), least)
	for _, span := range defaultNames.Find(v.Text) {
		add(strings.TrimSpace(v.Text[span.Start:span.End]), leastSecret)
	}
	for _, word := range strings.Fields(v.Text) {
		if strings.Contains(word, "://") {
			addressParts(word, add)
		}
	}
	if v.Secret || defaultNames.Meaning(v.Name).HidesText() {
		// A list of secrets, or a user with a password.
		for _, word := range strings.FieldsFunc(v.Text, func(r rune) bool { return strings.ContainsRune(" \t\r\n,;", r) }) {
			add(word, least)
			if _, password, found := strings.Cut(word, ":"); found && !strings.HasPrefix(password, "//") {
				add(password, least)
			}
		}
	}
	if strings.Contains(trimmed, "\n") {
		for line := range strings.Lines(trimmed) {
			add(strings.TrimSpace(line), least)
		}
	}
	return parts
}

// addressParts adds what may be secret in a URL: the user with the password, and the values of the query.
func addressParts(address string, add func(string, int)) {
	_, rest, _ := strings.Cut(address, "://")
	rest = strings.Trim(rest, `"'`)
	authority := rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority = rest[:end]
	}
	if at := strings.LastIndexByte(authority, '@'); at >= 0 {
		user, password, found := strings.Cut(authority[:at], ":")
		add(authority[:at], least)
		if found {
			addDecoded(password, leastSecret, add)
		} else {
			addDecoded(user, least, add)
		}
	}
	_, query, _ := strings.Cut(rest, "?")
	query, fragment, _ := strings.Cut(query, "#")
	addDecoded(fragment, least, add)
	if strings.Contains(query, "&") {
		add(query, least)
	}
	for setting := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(setting, "=")
		if !commonSettings[strings.ToLower(value)] || defaultNames.Meaning(name).HidesText() {
			addDecoded(value, least, add)
		}
	}
}

// commonSettings are values of queries that would be found everywhere.
var commonSettings = listed(`disable disabled enable enabled require required prefer verify-ca verify-full allow default public primary
	secondary read-write read-only utf8mb4 unicode master replica`)

func addDecoded(text string, shortest int, add func(string, int)) {
	add(text, shortest)
	if decoded, err := url.QueryUnescape(text); err == nil && decoded != text {
		add(decoded, shortest)
	}
	if decoded, err := url.PathUnescape(text); err == nil && decoded != text {
		add(decoded, shortest)
	}
}

// encodingsOf are the forms in which programs write a text, besides its own and base64.
func encodingsOf(text string) []string {
	query, path := url.QueryEscape(text), url.PathEscape(text)
	quoted := inner(strconv.Quote(text))
	return []string{
		query, path, lowerPercent(query), lowerPercent(path), strings.ReplaceAll(query, "+", "%20"), url.User(text).String(),
		quoted, inner(strconv.QuoteToASCII(text)), inJSON(text, true), inJSON(text, false), inJSON(quoted, true), inJSON(quoted, false),
		inJSON(inJSON(text, false), false), inJSON(inJSON(text, true), true),
		html.EscapeString(text), strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&apos;").Replace(text),
		strings.ReplaceAll(text, "'", `'\''`), strings.ReplaceAll(text, "'", `'"'"'`), strings.ReplaceAll(text, "'", "''"),
		strings.ReplaceAll(text, `"`, `""`), escapedForShell(text), strings.ReplaceAll(text, "$", "$$"),
		hex.EncodeToString([]byte(text)), strings.ToUpper(hex.EncodeToString([]byte(text))),
	}
}

func inner(quoted string) string { return quoted[1 : len(quoted)-1] }

func inJSON(text string, forHTML bool) string {
	var out strings.Builder
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(forHTML)
	_ = encoder.Encode(text) // a text: never fails
	return inner(strings.TrimSuffix(out.String(), "\n"))
}

// lowerPercent writes the digits after each % in small letters.
func lowerPercent(text string) string {
	lower := []byte(text)
	for i := 0; i+2 < len(lower); i++ {
		if lower[i] == '%' {
			copy(lower[i+1:i+3], strings.ToLower(string(lower[i+1:i+3])))
		}
	}
	return string(lower)
}

// escapedForShell has a backslash before each character that means something in a shell.
func escapedForShell(text string) string {
	var out strings.Builder
	for i := range len(text) {
		if c := text[i]; c < 0x80 && !isLetter(c) && !isDigit(c) && strings.IndexByte("_-./:=@%+,", c) < 0 {
			out.WriteByte('\\')
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

// inBase64 is what a text becomes in base64 of either alphabet after so many other bytes, without the characters that depend on what is
// around it.
func inBase64(text string, offset int) []string {
	padded := append(make([]byte, offset), text...)
	start, end := (offset*8+5)/6, len(padded)*8/6
	if start >= end {
		return nil
	}
	return []string{base64.RawStdEncoding.EncodeToString(padded)[start:end], base64.RawURLEncoding.EncodeToString(padded)[start:end]}
}
