package change

import (
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// escaped reads the rest of a string in which an escape was met. The string began at start.
func (d *decoder) escaped(start int) (string, error) {
	text := append(make([]byte, 0, 2*(d.at-start)+64), d.text[start:d.at]...)
	for d.at < len(d.text) {
		c := d.text[d.at]
		d.at++
		switch {
		case c == '"':
			if !utf8.Valid(text) {
				return "", errUnicode
			}
			return string(text), nil
		case c < ' ':
			return "", errSyntax
		case c != '\\':
			text = append(text, c)
		default:
			var err error
			if text, err = d.escape(text); err != nil {
				return "", err
			}
		}
	}
	return "", errSyntax
}

// escape reads what follows a backslash and adds what it stands for.
func (d *decoder) escape(text []byte) ([]byte, error) {
	if d.at == len(d.text) {
		return nil, errSyntax
	}
	c := d.text[d.at]
	d.at++
	switch c {
	case '"', '\\', '/':
		return append(text, c), nil
	case 'b':
		return append(text, '\b'), nil
	case 'f':
		return append(text, '\f'), nil
	case 'n':
		return append(text, '\n'), nil
	case 'r':
		return append(text, '\r'), nil
	case 't':
		return append(text, '\t'), nil
	case 'u':
		return d.codepoint(text)
	}
	return nil, errSyntax
}

// codepoint reads the digits after \u, and those of the second half of a surrogate pair.
func (d *decoder) codepoint(text []byte) ([]byte, error) {
	first, err := d.hex()
	if err != nil {
		return nil, err
	}
	if !utf16.IsSurrogate(first) {
		return utf8.AppendRune(text, first), nil
	}
	if len(d.text)-d.at < 2 || d.text[d.at:d.at+2] != `\u` {
		return nil, errUnicode
	}
	d.at += 2
	second, err := d.hex()
	if err != nil {
		return nil, err
	}
	pair := utf16.DecodeRune(first, second)
	if pair == utf8.RuneError {
		return nil, errUnicode
	}
	return utf8.AppendRune(text, pair), nil
}

func (d *decoder) hex() (rune, error) {
	if len(d.text)-d.at < 4 {
		return 0, errSyntax
	}
	value, err := strconv.ParseUint(d.text[d.at:d.at+4], 16, 16)
	if err != nil {
		return 0, errSyntax
	}
	d.at += 4
	return rune(value), nil
}
