package redact

import "strings"

// value is what follows a separator.
type value struct {
	// start is where it begins, and word what is there up to a space, of which no more is read than is needed to judge it.
	start int
	word  string
	// spaced reports whether there is a space or a quote before it.
	spaced bool
	// quote is the quote that it begins with, 0 for none. escaped reports whether a backslash is before it.
	quote   byte
	escaped bool
	// block reports whether it is in the next lines, which are indented more than indent. nested reports whether these have names of their
	// own.
	block, nested bool
	indent        int
}

// valueAfter returns what follows a separator. If nothing follows in the line, it is what is in the next lines, if these go on with it.
func (f *finder) valueAfter(at int) value {
	v := value{start: at + 1}
	limit := min(len(f.text), at+1+maxLook)
	for v.start < limit {
		c := f.text[v.start]
		if c == '"' || c == '\'' || c == '`' {
			v.quote, v.escaped = c, v.start > 0 && f.text[v.start-1] == '\\'
		} else if c != ' ' && c != '\t' && c != '\r' && c != '\\' {
			break
		}
		v.spaced = true
		v.start++
		if v.quote != 0 && v.start < limit && f.text[v.start] == v.quote {
			return value{start: v.start, spaced: true} // an empty text
		}
	}
	v.word = wordAt(f.text, v.start, limit)
	isBlock := f.text[at] == ':' && v.quote == 0 && v.word != "" &&
		(v.word[0] == '|' || v.word[0] == '>') && strings.Trim(v.word, "|>+-0123456789") == ""
	if isBlock || v.start < limit && f.text[v.start] == '\n' && v.quote == 0 {
		f.intoBlock(&v, at, limit, isBlock)
	}
	return v
}

// intoBlock moves a value to the next line, if that belongs to it: after a colon, one that is indented more or an item of a list, as
// in YAML; else one that begins with a quote, or follows a backslash.
func (f *finder) intoBlock(v *value, at, limit int, scalar bool) {
	line := at
	for line > 0 && at-line < maxLook && f.text[line-1] != '\n' {
		line--
	}
	v.indent = indentOf(f.text, line)
	next := f.lineEnd(v.start) + 1
	for next < limit && strings.IndexByte(" \t\r\n", f.text[next]) >= 0 {
		next++
	}
	if next >= limit || !f.continues(v, at, next, scalar) {
		v.word = ""
		return
	}
	v.block, v.spaced = true, true
	first, _, _ := strings.Cut(f.text[next:min(len(f.text), next+maxLook)], "\n")
	v.nested = !scalar && strings.Contains(first, ":") && (!strings.HasPrefix(first, "- ") || f.pointsOrRefers(memberName(first)))
	v.start = next
	for v.start < limit && (f.text[v.start] == '-' || f.text[v.start] == ' ') {
		v.start++
	}
	if c := f.text[min(v.start, limit-1)]; !scalar && first != "" && first[0] == c && (c == '"' || c == '\'') {
		v.quote, v.block = c, false
		v.start++
	}
	v.word = wordAt(f.text, v.start, limit)
	if v.word == "" {
		v.block = false
	}
}

// pointsOrRefers reports whether a member of an object under the name of a secret says which secret it is, so that the object is none.
func (f *finder) pointsOrRefers(name string) bool {
	return name != "" && (PointsBeside(name) && !strings.EqualFold(name, "value") || f.names.Meaning(name) == Reference)
}

// continues reports whether what begins in another line belongs to a value whose line has nothing after the separator.
func (f *finder) continues(v *value, at, next int, scalar bool) bool {
	indent := next - 1 - strings.LastIndexByte(f.text[at:next], '\n') - at
	switch c := f.text[next]; {
	case f.text[v.start-1] == '\\', c == '"', c == '\'':
		return true
	case f.text[at] != ':':
		return false
	case scalar, indent > v.indent:
		return true
	default:
		return strings.HasPrefix(f.text[next:], "- ")
	}
}

func wordAt(text string, start, limit int) string {
	end := start
	for end < limit && text[end] > ' ' {
		end++
	}
	return text[start:max(start, end)]
}

func indentOf(text string, line int) int {
	at := line
	for at < len(text) && (text[at] == ' ' || text[at] == '\t') {
		at++
	}
	return at - line
}

// valueEnd is where a value ends. wholeLine reports whether it goes on to the end of its line.
func (f *finder) valueEnd(v value, wholeLine bool) int {
	switch {
	case v.block:
		return f.blockEnd(v)
	case v.quote != 0:
		return f.quoteEnd(v)
	case wholeLine:
		return trimmedEnd(f.text, v.start, f.lineEnd(v.start))
	}
	if v.start == len(f.text) {
		return v.start
	}
	for i := v.start + max(1, markerLength(f.text[v.start:])); i < len(f.text); i++ {
		if f.endsValue(v.start, i) {
			return i
		}
	}
	return len(f.text)
}

// endsValue reports whether a value without quotes ends before a place. A quote may be part of it, unless something ends there.
func (f *finder) endsValue(start, i int) bool {
	switch c := f.text[i]; c {
	case '"', '\'', '`':
		return f.text[start] == c || i+1 == len(f.text) || strings.IndexByte(" \t\r\n,;:.)]}>/\\\"'`", f.text[i+1]) >= 0
	case '<':
		return f.text[start] == c || i+1 == len(f.text) || strings.IndexByte(" \t\r\n/!", f.text[i+1]) >= 0
	case ',', ';', '&':
		return f.beginsNext(i + 1)
	case ')', ']', '}':
		return i+1 == len(f.text) || strings.IndexByte(" \t\r\n.,;:)]}\"'", f.text[i+1]) >= 0
	case '\\':
		return i+1 < len(f.text) && strings.IndexByte("\"'nrt", f.text[i+1]) >= 0
	default:
		return c <= ' '
	}
}

// beginsNext reports whether what follows is the next of several settings, or nothing.
func (f *finder) beginsNext(at int) bool {
	limit := min(len(f.text), at+64)
	for i := at; i < limit; i++ {
		c := f.text[i]
		if c == '=' || c == ':' {
			return i > at
		}
		if !isKeyByte(c) {
			return i == at && (c <= ' ' || c == '"' || c == '\'' || c == '\\')
		}
	}
	return at == len(f.text)
}

func (f *finder) quoteEnd(v value) int {
	for i := v.start; i < len(f.text); i++ {
		switch f.text[i] {
		case v.quote:
			if v.escaped {
				return i - 1
			}
			if length := quoteInside(f.text[i:], v.quote); length > 0 {
				i += length - 1
				continue
			}
			return i
		case '\\':
			if !v.escaped || i+1 < len(f.text) && f.text[i+1] == '\\' {
				i++
			}
		}
	}
	return len(f.text)
}

// quoteInside is how long what stands for a quote in a text in quotes is, with which a text begins: two of them in SQL and YAML, and
// what ends and begins again in a shell.
func quoteInside(text string, quote byte) int {
	for _, inside := range []string{`''`, `'\''`, `'"'"'`} {
		if quote == '\'' && strings.HasPrefix(text, inside) {
			return len(inside)
		}
	}
	return 0
}

// blockEnd is the end of the lines that belong to a block.
func (f *finder) blockEnd(v value) int {
	end := f.lineEnd(v.start)
	for end < len(f.text) {
		line := end + 1
		text := line + indentOf(f.text, line)
		blank := text >= len(f.text) || f.text[text] == '\n' || f.text[text] == '\r'
		item := text-line == v.indent && strings.HasPrefix(f.text[min(text, len(f.text)):], "- ")
		if !blank && text-line <= v.indent && !item {
			break
		}
		end = f.lineEnd(min(line, len(f.text)))
	}
	return trimmedEnd(f.text, v.start, end)
}

// trimmedEnd is the end of a part of a text without the spaces after it.
func trimmedEnd(text string, start, end int) int {
	return start + len(strings.TrimRight(text[start:end], " \t\r\n"))
}

// isInnocentValue reports whether a value is none, a switch, the name of a variable that has it, or what stands in place of a secret.
func isInnocentValue(value string) bool {
	if value == "" || isVariable(value) || isMarker(value) || isFieldPath(value) || IsPath(strings.TrimRight(value, "\"'\\,;)}]")) {
		return true
	}
	switch strings.ToLower(strings.TrimRight(value, "\"'`\\,;)}]")) {
	case "", "true", "false", "null", "nil", "none", "<nil>", "{", "[", "&", "&&", "***", "xxxxx", "redacted", "<redacted>", "[redacted]":
		return true
	}
	return false
}

// IsPath reports whether a value is the path of a file, in small letters. That is no secret, whatever its name says.
func IsPath(value string) bool {
	return len(value) > 1 && value[0] == '/' && isLetter(value[1]) && strings.IndexByte(value[1:], '/') > 0 &&
		strings.Trim(value, "abcdefghijklmnopqrstuvwxyz0123456789/._-") == ""
}

// isFieldPath reports whether a value is the path of a field, as our own messages name one: (spec.envFrom[0].secretRef).
func isFieldPath(value string) bool {
	value = strings.TrimRight(strings.TrimLeft(value, "(\""), ")\",.;:")
	return isField(value) && strings.IndexFunc(value, func(r rune) bool {
		return r > 'z' || !isLetter(byte(r)) && !isDigit(byte(r)) && !strings.ContainsRune(`.[]"_-`, r)
	}) < 0
}

// isVariable reports whether a value is $(NAME) or ${NAME}, for which something else is put in later.
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

// isTag reports whether a value is that of an image: a version, latest, or a digest.
func isTag(value string) bool {
	value = strings.TrimPrefix(value, "v")
	return value != "" && (isDigit(value[0]) && strings.ContainsAny(value, ".@") || strings.HasPrefix(value, "latest") ||
		strings.HasPrefix(value, "sha256"))
}
