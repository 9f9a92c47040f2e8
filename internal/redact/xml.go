package redact

import "strings"

// element finds the secret of an element of XML with the name of one, or of the element after one that names it.
func (f *finder) element(at int) {
	local, end := elementName(f.text, at+1)
	if local == "" {
		return
	}
	secret := f.names.Meaning(local).HidesText()
	named := local == "key" || local == "name" || local == "string" || local == "n"
	if !secret && !named {
		return
	}
	closing := strings.IndexByte(f.text[end:min(len(f.text), end+maxLook)], '>')
	if closing < 0 {
		return
	}
	closing += end
	if inside := strings.TrimSpace(f.text[end:closing]); inside != "" && inside != "/" && !strings.Contains(inside, "=") {
		return // words in brackets
	}
	if f.names.Meaning(local) == About && !strings.Contains(f.text[closing:min(len(f.text), closing+maxCommand)], "</") {
		return // a placeholder
	}
	switch {
	case secret:
		if !f.attributes(end, closing) && f.text[closing-1] != '/' {
			f.contents(closing + 1)
		}
	case f.text[closing-1] != '/':
		f.afterName(closing+1, local)
	}
}

// elementName returns the name of an element without its namespace, and where it ends.
func elementName(text string, at int) (local string, end int) {
	end = at
	for end < len(text) && end-at < 128 && (isKeyByte(text[end]) || text[end] == ':') && text[end] != '/' {
		end++
	}
	local = text[at:end]
	return local[strings.LastIndexByte(local, ':')+1:], end
}

// afterName finds the secret in the element after one whose text is the name of a secret, and that of a lone element with the name key.
func (f *finder) afterName(at int, local string) {
	name, rest, found := strings.Cut(f.text[at:min(len(f.text), at+maxLook)], "</")
	if !found || strings.Contains(name, "<") {
		return
	}
	_, rest, found = strings.Cut(rest, ">")
	next := strings.TrimLeft(rest, " \t\r\n")
	if !found || next == "" {
		return
	}
	name = strings.TrimSpace(name)
	alone := strings.HasPrefix(next, "</")
	switch {
	case alone && local == "key" && len(name) >= leastSecret && !strings.Contains(name, "/") && !isInnocentValue(name):
		f.add(at, at+len(strings.TrimRight(f.text[at:at+strings.Index(f.text[at:], "</")], " \t\r\n")))
	case !alone && next[0] == '<' && f.names.Meaning(name).HidesText():
		_, after, _ := strings.Cut(next, ">")
		if begin := strings.IndexByte(next, '>'); begin > 0 && next[begin-1] != '/' {
			f.contents(min(len(f.text), at+maxLook) - len(after))
		}
	}
}

// isValueName reports whether an attribute has the value of its element.
func isValueName(name string) bool {
	switch strings.ToLower(name[strings.LastIndexByte(name, ':')+1:]) {
	case "value", "val", "text", "content", "data", "string", "plain", "plaintext":
		return true
	}
	return false
}

// attributes finds the value of an element in the attributes of its tag.
func (f *finder) attributes(from, to int) bool {
	found := false
	for at := from; at < to; at++ {
		if f.text[at] != '=' {
			continue
		}
		start := at
		for start > from && (isLetter(f.text[start-1]) || f.text[start-1] == ':') {
			start--
		}
		quote := at + 1 + len(f.text[at+1:to]) - len(strings.TrimLeft(f.text[at+1:to], "\\ "))
		if quote >= to || f.text[quote] != '"' && f.text[quote] != '\'' {
			continue
		}
		end := to
		if closing := strings.IndexByte(f.text[quote+1:to], f.text[quote]); closing >= 0 {
			end = quote + 1 + closing
		}
		if isValueName(f.text[start:at]) && !isInnocentValue(f.text[quote+1:end]) {
			f.add(quote+1, end)
			found = true
		}
		at = end
	}
	return found
}

const (
	// maxComment is how long a comment in XML is at most that is passed over.
	maxComment = 2048
	// maxTags is how many tags may be before a text within an element.
	maxTags = 16
)

// contents finds all texts within an element, of whatever elements they are, except those that say where a secret is or whose.
func (f *finder) contents(at int) bool {
	found, depth, tags := false, 0, 0
	for at = f.blank(at); at < len(f.text) && tags < maxTags; at = f.blank(at) {
		tags++
		rest := f.text[at:]
		switch {
		case strings.HasPrefix(rest, "<!--"):
			at += commentLength(rest)
		case strings.HasPrefix(rest, "</"):
			end := strings.IndexByte(rest[:min(len(rest), maxLook)], '>')
			if depth--; depth < 0 || end < 0 {
				return found
			}
			at += end + 1
		case rest[0] == '<' && !strings.HasPrefix(rest, "<![CDATA["):
			next, empty, attribute := f.inner(at)
			if next == at {
				return found
			}
			found = found || attribute
			at = next
			if !empty {
				depth++
			}
		default:
			end := f.closing.next(f.text, "</", at)
			if f.innerText(at, end) {
				found, tags = true, 0
			}
			at = end
		}
	}
	return found
}

// commentLength is how long a comment is, all of the text if it has no end nearby.
func commentLength(text string) int {
	end := strings.Index(text[:min(len(text), maxComment)], "-->")
	if end < 0 {
		return len(text)
	}
	return end + len("-->")
}

// innerText finds the text of an element.
func (f *finder) innerText(at, end int) bool {
	text := strings.TrimRight(f.text[at:end], " \t\r\n")
	if isInnocentValue(text) {
		return false
	}
	f.add(at, at+len(text))
	return true
}

// inner passes over the tag of an element within another one, and over its text if that is no secret, and finds what is in the
// attributes of one without a text. It does not move on from what is no tag.
func (f *finder) inner(at int) (next int, empty, found bool) {
	name, end := elementName(f.text, at+1)
	closing := strings.IndexByte(f.text[end:min(len(f.text), end+maxLook)], '>')
	if name == "" || closing < 0 {
		return at, false, false
	}
	closing += end
	if f.text[closing-1] == '/' {
		return closing + 1, true, f.attributes(end, closing)
	}
	if f.isInnocentElement(name) {
		return f.closing.next(f.text, "</", closing+1), false, false
	}
	return closing + 1, false, false
}

// isInnocentElement reports whether an element within a secret says whose or where it is.
func (f *finder) isInnocentElement(name string) bool {
	switch name = strings.ToLower(name); name {
	case "name", "namespace", "user", "username", "login", "id", "type", "path", "file", "description", "scope", "key":
		return true
	}
	meaning := f.names.Meaning(name)
	return meaning == Reference || meaning == File
}

// escapedElement finds the text of an element with the name of a secret in XML whose signs are written in another way.
func (f *finder) escapedElement(at int, opening, closing string) {
	local, end := elementName(f.text, at+len(opening))
	if local == "" || !f.names.Meaning(local).HidesText() {
		return
	}
	for range 3 {
		tag := strings.Index(f.text[end:min(len(f.text), end+maxLook)], closing)
		if tag < 0 {
			return
		}
		start := f.blank(end + tag + len(closing))
		rest := f.text[start:]
		if !strings.HasPrefix(rest, opening) {
			text, _, _ := strings.Cut(rest, opening)
			if !isInnocentValue(text) {
				f.add(start, start+len(strings.TrimRight(text, " \t\r\n")))
			}
			return
		}
		if strings.HasPrefix(rest, opening+"/") {
			return
		}
		end = start
	}
}
