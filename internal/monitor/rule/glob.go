package rule

import "strings"

// glob reports whether a text is what a pattern says, in which * stands for any text. It takes time in proportion to the two.
func glob(pattern, text string) bool {
	first, rest, more := strings.Cut(pattern, "*")
	if !more {
		return pattern == text
	}
	text, ok := strings.CutPrefix(text, first)
	if !ok {
		return false
	}
	parts := strings.Split(rest, "*")
	last := parts[len(parts)-1]
	for _, part := range parts[:len(parts)-1] {
		// The first place is as good as any other: what follows it may begin later all the same.
		at := strings.Index(text, part)
		if at < 0 {
			return false
		}
		text = text[at+len(part):]
	}
	return strings.HasSuffix(text, last)
}

func anyGlob(patterns []string, text string) bool {
	for _, pattern := range patterns {
		if glob(pattern, text) {
			return true
		}
	}
	return false
}

// covers reports whether a path is of a field, of something in it, or of something that it is in.
func covers(field, path string) bool {
	return within(field, path) || within(path, field)
}

func within(outer, inner string) bool {
	rest, ok := strings.CutPrefix(inner, outer)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
