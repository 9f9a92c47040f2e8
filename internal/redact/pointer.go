package redact

import "strings"

// PointsBeside reports whether a member of that name beside one called key makes that the name of something: of a toleration, a selector,
// a reference.
func PointsBeside(name string) bool {
	switch name = strings.ToLower(name); name {
	case "name", "operator", "effect", "path", "topologykey", "weight", "namespace", "kind", "property", "apiversion", "audience",
		"optional", "bucket", "type", "field", "label", "order":
		return true
	}
	return strings.HasPrefix(name, "value")
}

// PointsBelow reports whether an object of that name has something called key that is a name: a reference.
func PointsBelow(name string) bool {
	return endsWith(strings.ToLower(name), []string{"ref", "reference", "selector", "extract", "source"})
}

// nearLines is how many lines before and after one are looked at.
const nearLines = 6

// pointsTo reports whether a member called key, at a place of a text, is the name of something.
func (f *finder) pointsTo(start int) bool {
	from, to := max(0, start-maxLook), min(len(f.text), start+maxLook)
	line := from + strings.LastIndexByte(f.text[from:start], '\n') + 1
	if opening := strings.LastIndexByte(f.text[line:start], '{'); opening >= 0 {
		inside, _, _ := strings.Cut(f.text[line+opening+1:to], "}")
		for member := range strings.SplitSeq(inside, ",") {
			if PointsBeside(memberName(member)) {
				return true
			}
		}
		before := strings.TrimRight(f.text[line:line+opening], " \t\"':=\\")
		return PointsBelow(before[strings.LastIndexAny(before, " \t\"'{,\\")+1:])
	}
	if rest, _, _ := strings.Cut(f.text[start:to], "\n"); strings.Contains(strings.ToLower(rest), "value") ||
		strings.LastIndexByte(f.text[line:start], '<') > strings.LastIndexByte(f.text[line:start], '>') {
		return true // what has a value of its own
	}
	return pointsAbove(f.text[from:line], f.text[line:start]) || pointsAfter(f.text[start:to], start-line)
}

// pointsAbove reports whether a line before a member says that it is the name of something. indent is what is before it in its line.
func pointsAbove(before, indent string) bool {
	for range nearLines {
		if before == "" || strings.Contains(indent, "-") {
			return false // the first member of an item
		}
		before = before[:len(before)-1]
		line := before[strings.LastIndexByte(before, '\n')+1:]
		before = before[:len(before)-len(line)]
		name, at := memberAt(line)
		if at < len(indent) {
			return PointsBelow(name)
		}
		if at == len(indent) && PointsBeside(name) {
			return true
		}
		indent = strings.Repeat(" ", len(indent))
	}
	return false
}

// pointsAfter reports whether a line after a member in a column says that it is the name of something.
func pointsAfter(text string, column int) bool {
	_, rest, _ := strings.Cut(text, "\n")
	for range nearLines {
		next, after, found := strings.Cut(rest, "\n")
		name, at := memberAt(next)
		if at < column || !found && name == "" {
			return false
		}
		if at == column && PointsBeside(name) {
			return !strings.HasPrefix(strings.TrimLeft(next, " "), "- ")
		}
		rest = after
	}
	return false
}

// memberAt returns the name of the member in a line of YAML or JSON, and the column that it is in.
func memberAt(line string) (name string, column int) {
	trimmed := strings.TrimLeft(line, " \t-\"'")
	return memberName(trimmed), len(line) - len(trimmed)
}

func memberName(text string) string {
	end := strings.IndexAny(text, ":=")
	if end < 0 {
		return ""
	}
	return strings.Trim(text[:end], " \t-\"'\\")
}
