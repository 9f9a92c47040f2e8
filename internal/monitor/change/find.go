package change

// span is a part of a text.
type span struct{ start, end int }

// findMember finds the value of a member in the text of an object that is not read as a whole: too large, or not strictly JSON. The
// last of several counts, as it does for the API server. It does not recurse, and goes over the text once.
func findMember(text, name string) (span, bool) {
	d := decoder{text: text}
	if d.next() != '{' {
		return span{}, false
	}
	d.at++
	result, found := span{}, false
	for d.next() == '"' {
		start := d.at
		if !d.skipString() {
			return result, found
		}
		key := text[start+1 : d.at-1]
		if d.next() != ':' {
			return result, found
		}
		d.at++
		d.space()
		start = d.at
		if !d.skipValue() {
			return result, found
		}
		if key == name {
			result, found = span{start: start, end: d.at}, true
		}
		if d.next() != ',' {
			return result, found
		}
		d.at++
	}
	return result, found
}

// skipString moves behind a string, false if it does not end.
func (d *decoder) skipString() bool {
	for d.at++; d.at < len(d.text); d.at++ {
		switch d.text[d.at] {
		case '"':
			d.at++
			return true
		case '\\':
			d.at++
		}
	}
	return false
}

// skipValue moves behind a value, false if it does not end.
func (d *decoder) skipValue() bool {
	depth := 0
	for d.at < len(d.text) {
		switch d.text[d.at] {
		case '"':
			if !d.skipString() {
				return false
			}
			if depth == 0 {
				return true
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return true
			}
			depth--
			if depth == 0 {
				d.at++
				return true
			}
		case ',':
			if depth == 0 {
				return true
			}
		}
		d.at++
	}
	return false
}
