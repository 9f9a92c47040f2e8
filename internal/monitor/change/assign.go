package change

import "strings"

// assigns tells whether a secret gets its value at the separator (= or :) in a text, as in password=..., "token": "...", a line of
// YAML, a flag or the query of a URL.
func (w *words) assigns(text string, at int) bool {
	key, start, quoted := keyBefore(text, at)
	if key == "" {
		return false
	}
	if strings.EqualFold(key, "name") || strings.EqualFold(key, "key") {
		return w.namesSecret(text[at+1:])
	}
	meaning := w.meaning(strings.TrimLeft(key, "-"))
	if meaning < fileName && !isSignature(key) {
		return false
	}
	value, spaced := valueAfter(text, at)
	if isInnocentValue(value) || meaning == fileName && value[0] == '/' {
		return false
	}
	if text[at] == '=' || quoted {
		return true
	}
	return colonAssigns(text, start, at, key, value, spaced, meaning)
}

// colonAssigns tells an assignment with a colon from a sentence ("cannot get token: not found") and from the tag of an image.
func colonAssigns(text string, start, at int, key, value string, spaced bool, meaning nameMeaning) bool {
	before := strings.TrimRight(text[:start], " \t-\"'")
	if spaced && (before == "" || before[len(before)-1] == '\n' || strings.IndexByte("{[,", before[len(before)-1]) >= 0) {
		return true
	}
	if spaced {
		line, _, _ := strings.Cut(text[at+1:min(len(text), at+1+maxLook)], "\n")
		return len(strings.Fields(line)) == 1 || strings.IndexByte(",;\"'", value[len(value)-1]) >= 0
	}
	return meaning >= wordName && meaning != aboutName && !strings.Contains(key, "/") && !isTag(value)
}

// keyBefore returns the word in front of a separator, where it begins, and whether it is in quotes.
func keyBefore(text string, at int) (key string, start int, quoted bool) {
	end := at
	for end > 0 && (text[end-1] == ' ' || text[end-1] == '\t') {
		end--
	}
	for end > 0 && (text[end-1] == '"' || text[end-1] == '\'' || text[end-1] == '\\') {
		end--
		quoted = true
	}
	start = end
	for start > 0 && end-start < 128 && isKeyByte(text[start-1]) {
		start--
	}
	return text[start:end], start, quoted
}

func isKeyByte(c byte) bool {
	return isLetter(c) || isDigit(c) || c == '_' || c == '-' || c == '.' || c == '/'
}

// valueAfter returns what follows a separator up to a space, and whether there was a space before it. If nothing follows in the
// line, it is the next line, unless that begins with a name of its own.
func valueAfter(text string, at int) (value string, spaced bool) {
	rest := text[at+1 : min(len(text), at+1+maxLook)]
	trimmed := strings.TrimLeft(rest, " \t\r\"'\\")
	spaced = trimmed != rest
	if strings.HasPrefix(trimmed, "\n") {
		next, _, _ := strings.Cut(strings.TrimLeft(trimmed, " \t\r\n"), "\n")
		if !strings.HasPrefix(next, "- ") && strings.Contains(next, ":") {
			return "", true
		}
		trimmed, spaced = strings.TrimLeft(next, "- "), true
	}
	end := 0
	for end < len(trimmed) && trimmed[end] > ' ' {
		end++
	}
	return trimmed[:end], spaced
}

// namesSecret finds lists of variables in a text: the name of a secret, and then the word value.
func (w *words) namesSecret(rest string) bool {
	name := strings.TrimLeft(rest, " \t\"'\\")
	end := 0
	for end < len(name) && end < 128 && isKeyByte(name[end]) {
		end++
	}
	if !w.meaning(name[:end]).hidesText() {
		return false
	}
	rest = name[end:]
	return strings.Contains(rest[:min(len(rest), 512)], "value")
}

// isSignature finds the parts of a URL that let everybody in who has it.
func isSignature(key string) bool {
	return strings.EqualFold(key, "sig") || strings.EqualFold(key, "X-Amz-Signature") || strings.EqualFold(key, "X-Goog-Signature")
}

// isInnocentValue tells that a value is none, a switch, or the name of a variable that has it.
func isInnocentValue(value string) bool {
	if value == "" || value[0] == '&' || isVariable(value) {
		return true
	}
	switch strings.ToLower(strings.TrimRight(value, "\"'\\,;)}]")) {
	case "", "true", "false", "null", "nil", "none", "<nil>":
		return true
	}
	return false
}

// isVariable tells whether a value is $(NAME) or ${NAME}, for which something else is put in later.
func isVariable(value string) bool {
	value = strings.TrimRight(value, "\"'\\,;")
	if len(value) < 4 || value[0] != '$' {
		return false
	}
	if ends := value[1:2] + value[len(value)-1:]; ends != "()" && ends != "{}" {
		return false
	}
	for i := 2; i < len(value)-1; i++ {
		if c := value[i]; !isLetter(c) && !isDigit(c) && c != '_' {
			return false
		}
	}
	return true
}

// isTag tells whether a value is that of an image: a version, latest, or a digest.
func isTag(value string) bool {
	value = strings.TrimPrefix(value, "v")
	return value != "" && (isDigit(value[0]) && strings.ContainsAny(value, ".@") || strings.HasPrefix(value, "latest") ||
		strings.HasPrefix(value, "sha256"))
}
