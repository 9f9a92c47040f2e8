package crdcheck

import (
	"strconv"
	"strings"
)

// maxPath is how many bytes of a path are shown. The end of a path says more than its beginning.
const maxPath = 512

// path leads to a field of a schema or of an object. nil is the root. It grows by a step without a copy, and becomes text only
// when there is something to say about the field.
type path struct {
	parent *path
	name   string
	step   step
	index  int
}

type step int

const (
	stepName step = iota
	stepIndex
	stepItems
	stepValues
)

func (p *path) child(name string) *path { return &path{parent: p, name: name} }
func (p *path) item(index int) *path    { return &path{parent: p, step: stepIndex, index: index} }

// items leads to every item of a list, values to every value of a map.
func (p *path) items() *path  { return &path{parent: p, step: stepItems} }
func (p *path) values() *path { return &path{parent: p, step: stepValues} }

// String returns the path as .spec.hosts[*], or . for the root.
func (p *path) String() string {
	if p == nil {
		return "."
	}
	var steps []string
	length := 0
	for ; p != nil && length <= maxPath; p = p.parent {
		text := p.text()
		steps = append(steps, text)
		length += len(text)
	}
	out := &strings.Builder{}
	if p != nil || length > maxPath {
		out.WriteString("...")
		for length > maxPath && len(steps) > 1 {
			length -= len(steps[len(steps)-1])
			steps = steps[:len(steps)-1]
		}
	}
	for i := len(steps) - 1; i >= 0; i-- {
		out.WriteString(steps[i])
	}
	return out.String()
}

// key identifies a path. It is never cut.
func (p *path) key() string {
	key := &strings.Builder{}
	for _, at := range p.steps() {
		key.WriteString(strconv.Itoa(int(at.step)) + strconv.Itoa(at.index) + strconv.Quote(at.name))
	}
	return key.String()
}

// prefix returns the path as the beginning of a longer one.
func (p *path) prefix() string {
	if p == nil {
		return ""
	}
	return p.String()
}

func (p *path) text() string {
	switch p.step {
	case stepIndex:
		return "[" + strconv.Itoa(p.index) + "]"
	case stepItems:
		return "[*]"
	case stepValues:
		return ".*"
	default:
		return nameText(p.name)
	}
}

// nameText is a name behind its dot, or in brackets and quoted when it has other characters than names of fields usually have.
func nameText(name string) string {
	plain := name != ""
	for _, r := range name {
		plain = plain && (r == '_' || r == '-' || r == '$' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
	}
	if plain && len(name) <= maxValue {
		return "." + name
	}
	return "[" + strconv.QuoteToASCII(shorten(name, maxValue)) + "]"
}

// steps returns the paths on the way from the root, the field's own last.
func (p *path) steps() []*path {
	var steps []*path
	for ; p != nil; p = p.parent {
		steps = append(steps, p)
	}
	for i, j := 0, len(steps)-1; i < j; i, j = i+1, j-1 {
		steps[i], steps[j] = steps[j], steps[i]
	}
	return steps
}

// locate returns the steps to what the API server names in an error, as far as they exist in the object. The API server's own
// text has two forms: spec.hosts[0].name of schemas, where a name may have dots in it, and spec.labels[app] of rules. So the
// names are looked up in the object. Of two names that fit, the longer is tried first.
func locate(object any, text string) *path {
	found, _ := locateFrom(nil, object, strings.TrimPrefix(text, "."), maxSteps)
	return found
}

// maxSteps bounds how deep an object is, and how many steps are tried in one error's text.
const maxSteps = 200

// locateFrom returns the deepest path that it finds and how much of the text is left.
func locateFrom(from *path, value any, text string, depth int) (*path, string) { //nolint:gocognit // one case for each shape of a value
	if text == "" || depth == 0 {
		return from, text
	}
	best, left := from, text
	switch value := value.(type) {
	case map[string]any:
		for _, form := range []struct{ open, close string }{{"", ""}, {".", ""}, {"[", "]"}} {
			rest, ok := strings.CutPrefix(text, form.open)
			if !ok {
				continue
			}
			for _, end := range ends(rest) {
				child, found := value[rest[:end]]
				after, closed := strings.CutPrefix(rest[end:], form.close)
				if !found || !closed {
					continue
				}
				deeper, remains := locateFrom(from.child(rest[:end]), child, after, depth-1)
				if best == from || len(remains) < len(left) {
					best, left = deeper, remains
				}
				if left == "" {
					return best, left
				}
			}
		}
	case []any:
		number, after, ok := strings.Cut(strings.TrimPrefix(text, "["), "]")
		index, err := strconv.Atoi(number)
		if ok && err == nil && strings.HasPrefix(text, "[") && index >= 0 && index < len(value) {
			return locateFrom(from.item(index), value[index], after, depth-1)
		}
	}
	return best, left
}

// maxEnds bounds how many ends of a name are tried.
const maxEnds = 32

// ends returns where a name at the beginning of the text may end, the longest first.
func ends(text string) []int {
	var found []int
	for i := 0; i < len(text) && len(found) < maxEnds; i++ {
		if text[i] == '.' || text[i] == '[' || text[i] == ']' {
			found = append(found, i)
		}
	}
	if len(found) < maxEnds {
		found = append(found, len(text))
	}
	for i, j := 0, len(found)-1; i < j; i, j = i+1, j-1 {
		found[i], found[j] = found[j], found[i]
	}
	return found
}
