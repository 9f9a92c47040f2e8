package redact

import "strings"

// assignment finds a secret that gets its value at the separator (= or :) in a text, as in password=..., "token": "...", a line of
// YAML, a flag or the query of a URL.
func (f *finder) assignment(at int) {
	from, to, colon := operatorAt(f.text, at)
	if to < at {
		return
	}
	key, start, quoted := keyBefore(f.text, from)
	if key == "" {
		return
	}
	if strings.EqualFold(key, "name") || strings.EqualFold(key, "key") {
		if f.variable(start, at) {
			return
		}
	}
	if colon && start > 0 && f.text[start-1] == '$' {
		return // a variable in a sentence
	}
	meaning := f.names.Meaning(strings.TrimLeft(key, "-"))
	if meaning < File && !isSignature(key) {
		return
	}
	v := f.valueAfter(to)
	switch {
	case v.quote == 0 && f.isReference(v, colon):
		return
	case isInnocentValue(v.word), meaning == File && v.word[0] == '/',
		meaning == Doubt && !Opaque(v.word) && !f.isLoneKey(start, key, v, colon), isCount(key, v.word, meaning):
		return
	case v.block && v.nested && !strings.HasSuffix(key, "chpasswd"):
		return
	case v.quote == 0 && v.word[0] == '{' && f.pointsOrRefers(memberName(v.word[1:])):
		return
	case !colon, quoted, isHeaderName(key) && isHeaderValue(v):
	case !f.colonAssigns(start, at, key, v, meaning):
		return
	}
	f.add(v.start, f.valueEnd(v, f.isLine(start, from, key, v, colon)))
}

// operatorAt returns where an operator begins that has a colon or an equals sign at a place, where its last character is, and whether
// it is only a colon: :=, ==, =>, !=, ||= and the like are one. Of the second character of one the last is before the place.
func operatorAt(text string, at int) (from, to int, colon bool) {
	if text[at] == '=' && at > 0 && (text[at-1] == '=' || text[at-1] == ':') {
		return at, at - 1, false
	}
	for from = at; text[at] == '=' && from > 0 && at-from < 2 && strings.IndexByte("!+?|&~", text[from-1]) >= 0; {
		from--
	}
	for to = at; to+1 < len(text) && to-at < 2 && (text[to+1] == '=' || text[to+1] == '>' && text[to] == '='); {
		to++
	}
	return from, to, text[at] == ':' && to == at
}

// colonAssigns tells an assignment with a colon from a sentence ("cannot get token: not found") and from the tag of an image.
func (f *finder) colonAssigns(start, at int, key string, v value, meaning Meaning) bool {
	if v.block {
		return true
	}
	if v.spaced && f.beginsEntry(start) && !isField(key) {
		return v.quote != 0 || v.block || !f.isSentence(key, v)
	}
	if v.spaced {
		line, _, _ := strings.Cut(f.text[at+1:min(len(f.text), at+1+maxLook)], "\n")
		return len(strings.Fields(line)) == 1 || strings.IndexByte(",;\"'", v.word[len(v.word)-1]) >= 0 || Opaque(v.word) ||
			Made(v.word) && !strings.HasSuffix(v.word, ":") && !strings.HasSuffix(strings.ToLower(key), "secret")
	}
	return meaning >= Doubt && meaning != About && !strings.Contains(key, "/") && !isTag(v.word)
}

// isLoneKey reports whether a value is that of a member or setting with just the name key, and nothing beside or above it says that it
// names something.
func (f *finder) isLoneKey(start int, key string, v value, colon bool) bool {
	word := strings.TrimRight(v.word, "\"'\\,;:.)}]")
	if !strings.EqualFold(strings.TrimLeft(key, "-"), "key") || strings.ContainsAny(word, "/:=<>(){}[]") || len(word) < leastSecret ||
		v.block {
		return false
	}
	return (!colon || f.beginsEntry(start)) && !f.names.Meaning(word).HidesText() && !f.pointsTo(start)
}

// isField reports whether a key is the path of a field, as errors of Kubernetes begin.
func isField(key string) bool {
	return strings.HasPrefix(key, "spec.") || strings.HasPrefix(key, "status.") || strings.HasPrefix(key, "metadata.")
}

// isReference reports whether there is an anchor of YAML where a value is, or none because the next setting of a query follows.
func (f *finder) isReference(v value, colon bool) bool {
	if !strings.HasPrefix(v.word, "&") {
		return false
	}
	if !v.spaced {
		return f.beginsNext(v.start + 1)
	}
	return colon && strings.IndexFunc(v.word[1:], func(r rune) bool { return r > 'z' || !isKeyByte(byte(r)) }) < 0 &&
		strings.TrimSpace(f.text[v.start+len(v.word):min(f.lineEnd(v.start), v.start+maxLook)]) == ""
}

// plurals are the ends of names of which there may be some.
var plurals = []string{"secrets", "tokens", "credentials", "keys", "passwords"}

// isCount reports whether a value says how many there are, as in secrets=10.
func isCount(key, word string, meaning Meaning) bool {
	return strings.Trim(word, "0123456789,;.\"'\\") == "" && (meaning == About || endsWith(strings.ToLower(key), plurals))
}

// isSentence reports whether at least three words follow in a line, and nothing but words. A passphrase has such, too.
func (f *finder) isSentence(key string, v value) bool {
	if strings.Contains(strings.ToLower(key), "pass") || isHeaderName(key) {
		return false
	}
	line := f.text[v.start:min(len(f.text), v.start+maxLook)]
	if end := strings.IndexByte(line, '\n'); end >= 0 {
		line = line[:end]
	}
	count := 0
	for word := range strings.FieldsSeq(line) {
		if count++; Made(word) || Opaque(word) {
			return false
		}
	}
	return count >= 3
}

// beginsEntry reports whether a key at a place begins a line, or a member of an object.
func (f *finder) beginsEntry(start int) bool {
	before := strings.TrimRight(f.text[max(0, start-maxLook):start], " \t-\"'\\")
	return before == "" || strings.IndexByte("\n{[,", before[len(before)-1]) >= 0
}

// isLine reports whether a value goes on to the end of the line: that of a header, one of YAML, or a setting with spaces around its sign.
func (f *finder) isLine(start, at int, key string, v value, colon bool) bool {
	if v.quote != 0 || !colon && f.text[at-1] > ' ' {
		return false
	}
	if colon && isHeaderName(key) {
		return true
	}
	before := strings.TrimRight(f.text[max(0, start-maxLook):start], " \t-")
	return v.spaced && (before == "" || before[len(before)-1] == '\n')
}

func isHeaderName(key string) bool {
	key = strings.ToLower(key)
	return strings.HasSuffix(key, "authorization") || strings.HasSuffix(key, "cookie")
}

// isHeaderValue tells the value of a header from a sentence: it begins with a scheme, or looks like no word.
func isHeaderValue(v value) bool {
	switch strings.ToLower(v.word) {
	case "basic", "bearer", "token", "digest", "negotiate", "apikey":
		return true
	}
	return strings.Contains(v.word, "=") || Opaque(v.word)
}

// keyBefore returns the word in front of a separator, where it begins, and whether it is in quotes.
func keyBefore(text string, at int) (key string, start int, quoted bool) {
	end := at
	for end > 0 && (text[end-1] == ' ' || text[end-1] == '\t') {
		end--
	}
	for item := itemLength(text[:end]); item > 0 && at < len(text) && text[at] == '='; item = itemLength(text[:end]) {
		end -= item
	}
	bracket := false
	if at < len(text) && text[at] == '=' {
		before := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(text[max(0, end-3):end], "]"), "%5D"), "%5d")
		bracket = len(before) < min(3, end)
		end -= min(3, end) - len(before)
	}
	for end > 0 && (text[end-1] == '"' || text[end-1] == '\'' || text[end-1] == '\\') {
		end--
		quoted = true
	}
	start = end
	for start > 0 && end-start < 128 && isKeyByte(text[start-1]) {
		start--
	}
	if bracket && start > 0 && text[start-1] == '%' && len(text[start:end]) > 2 {
		start += len("5B")
	}
	return text[start:end], start, quoted
}

// itemLength is how long [] or a number in brackets is that a text ends with, 0 if it does not.
func itemLength(text string) int {
	rest, found := strings.CutSuffix(text, "]")
	opening := "["
	if !found {
		if rest, found = strings.CutSuffix(text, "%5D"); !found {
			return 0
		}
		opening = "%5B"
	}
	for len(rest) > 0 && len(text)-len(rest) < 12 && isDigit(rest[len(rest)-1]) {
		rest = rest[:len(rest)-1]
	}
	if rest, found = strings.CutSuffix(rest, opening); !found {
		return 0
	}
	return len(text) - len(rest)
}

func isKeyByte(c byte) bool {
	return isLetter(c) || isDigit(c) || c == '_' || c == '-' || c == '.' || c == '/'
}

// variable finds the value of a variable whose name is that of a secret: the name, and then the word value, or what an element has
// in it whose key is that.
func (f *finder) variable(start, at int) bool {
	name := at + 1
	for name < len(f.text) && name < at+maxLook && strings.IndexByte(" \t\"'\\", f.text[name]) >= 0 {
		name++
	}
	end := name
	for end < len(f.text) && end-name < 128 && isKeyByte(f.text[end]) {
		end++
	}
	if !f.names.Meaning(f.text[name:end]).HidesText() {
		return false
	}
	if tag := strings.LastIndexByte(f.text[max(0, at-maxLook):at], '<'); tag >= 0 && f.attributes(max(0, at-maxLook)+tag, at) {
		return true
	}
	rest := f.text[end:min(len(f.text), end+2*maxLook)]
	if close := strings.IndexByte(rest, '>'); close >= 0 && close < 8 && f.contents(end+close+1) {
		return true
	}
	word := strings.Index(rest, "value")
	if word < 0 || strings.HasPrefix(rest[word:], "valueFrom") {
		return false
	}
	separator := strings.IndexAny(rest[word:], ":=")
	if separator < 0 || strings.Trim(rest[word+len("value"):word+separator], " s\"'\\") != "" || !f.isBeside(start, end+word) {
		return false
	}
	v := f.valueAfter(end + word + separator)
	if of := strings.TrimRight(v.word, "\"'\\,"); isInnocentValue(v.word) || of == "0" || of == "1" {
		return false // a switch of a setting
	}
	f.add(v.start, f.valueEnd(v, v.spaced && v.quote == 0))
	return true
}

// isBeside reports whether a member of an object at a place belongs to the same one as another one before it. In lines of their own they
// are in the same column.
func (f *finder) isBeside(one, other int) bool {
	if strings.IndexByte(f.text[one:other], '\n') < 0 {
		return true
	}
	begin := func(at int) (string, int) {
		from := max(0, at-maxLook)
		line := from + strings.LastIndexByte(f.text[from:at], '\n') + 1
		return strings.Trim(f.text[line:at], " \t-\"'"), at - line
	}
	before, column := begin(one)
	beside, otherColumn := begin(other)
	return before != "" || beside != "" || column == otherColumn
}

// isSignature finds the parts of a URL that let everybody in who has it.
func isSignature(key string) bool {
	return strings.EqualFold(key, "sig") || strings.EqualFold(key, "X-Amz-Signature") || strings.EqualFold(key, "X-Goog-Signature") ||
		strings.EqualFold(key, "signature") || strings.EqualFold(key, "X-Amz-Credential")
}
