package change

import "unicode/utf8"

// encode writes a value as canonical JSON: keys in order, no white space, numbers as they were, as few escapes as JSON allows.
// Values that are the same are the same bytes.
func (n *node) encode(to []byte) []byte {
	switch n.typ {
	case stringNode:
		return appendString(to, n.text)
	case numberNode, boolNode:
		return append(to, n.text...)
	case objectNode:
		to = append(to, '{')
		for i := range n.nodes {
			if i > 0 {
				to = append(to, ',')
			}
			to = append(appendString(to, n.nodes[i].key), ':')
			to = n.nodes[i].encode(to)
		}
		return append(to, '}')
	case listNode:
		to = append(to, '[')
		for i := range n.nodes {
			if i > 0 {
				to = append(to, ',')
			}
			to = n.nodes[i].encode(to)
		}
		return append(to, ']')
	default:
		return append(to, "null"...)
	}
}

// canonical is a value as canonical JSON.
func (n *node) canonical() string { return string(n.encode(nil)) }

const hexDigits = "0123456789abcdef"

// appendString writes a string of valid UTF-8.
func appendString(to []byte, text string) []byte {
	to = append(to, '"')
	done := 0
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c >= utf8.RuneSelf || c >= ' ' && c != '"' && c != '\\' {
			continue
		}
		to = append(to, text[done:i]...)
		done = i + 1
		switch c {
		case '"', '\\':
			to = append(to, '\\', c)
		case '\n':
			to = append(to, '\\', 'n')
		case '\r':
			to = append(to, '\\', 'r')
		case '\t':
			to = append(to, '\\', 't')
		default:
			to = append(to, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
		}
	}
	return append(append(to, text[done:]...), '"')
}
