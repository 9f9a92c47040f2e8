package compress

import (
	"strconv"
	"strings"
)

// Coding is a content coding. The zero value is that of a body as it is.
type Coding uint8

// The content codings, with the names of RFC 9110 (8.4.1) and RFC 8878.
const (
	Identity Coding = iota
	Gzip
	Zstd
	codings
)

// String is the name in Content-Encoding.
func (c Coding) String() string { return [codings]string{"identity", "gzip", "zstd"}[c] }

// MarshalText returns the name.
func (c Coding) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// maxElements bounds the elements of Accept-Encoding that are read. Browsers send four.
const maxElements = 32

// unsaid is the weight of a coding that the client does not name. Weights are in thousandths.
const unsaid = -1

// accepted is what a client accepts.
type accepted struct {
	weights [codings]int
	others  int // the weight of "*"
}

// Negotiate chooses the coding for a client by its Accept-Encoding lines. preferred are the
// codings that may be used, the best first. The client's weights come before that order.
// Whatever cannot be understood leads to the body as it is.
func Negotiate(lines []string, preferred []Coding) Coding {
	if len(lines) == 0 {
		return Identity
	}
	in, ok := parseAccepted(lines)
	if !ok {
		return Identity
	}
	best, weight := Identity, max(in.weights[Identity], 1) // any coding that is accepted comes before a body that is not asked for
	for _, coding := range preferred {
		of := in.of(coding)
		if of > weight || of == weight && best == Identity {
			best, weight = coding, of
		}
	}
	return best
}

// of returns the weight of a coding. 0 means that it must not be used.
func (a *accepted) of(coding Coding) int {
	switch {
	case a.weights[coding] != unsaid:
		return a.weights[coding]
	case coding == Gzip:
		return max(a.others, 0)
	}
	return 0 // whoever accepts anything need not know what is younger than HTTP
}

// parseAccepted reads the lines. It returns false if there are too many elements.
func parseAccepted(lines []string) (accepted, bool) {
	in := accepted{others: unsaid}
	for i := range in.weights {
		in.weights[i] = unsaid
	}
	elements := 0
	for _, line := range lines {
		for line != "" {
			var element string
			element, line, _ = strings.Cut(line, ",")
			if elements++; elements > maxElements {
				return in, false
			}
			in.add(element)
		}
	}
	return in, true
}

// add notes an element. If a coding is named twice, the lower weight counts.
func (a *accepted) add(element string) {
	name, parameters, weighted := strings.Cut(element, ";")
	weight := 1000
	if weighted {
		weight = parseWeight(parameters)
	}
	var known *int
	switch name = strings.Trim(name, " \t"); {
	case name == "*":
		known = &a.others
	case strings.EqualFold(name, "gzip"), strings.EqualFold(name, "x-gzip"): // RFC 9110, 8.4.1.3
		known = &a.weights[Gzip]
	case strings.EqualFold(name, "zstd"):
		known = &a.weights[Zstd]
	case strings.EqualFold(name, "identity"):
		known = &a.weights[Identity]
	default:
		return
	}
	if *known == unsaid || weight < *known {
		*known = weight
	}
}

// parseWeight reads a weight such as q=0.5, in thousandths. It is 0 for anything else.
func parseWeight(text string) int {
	text = strings.Trim(text, " \t")
	if len(text) < 3 || len(text) > len("q=0.000") || (text[0] != 'q' && text[0] != 'Q') || text[1] != '=' {
		return 0
	}
	whole, digits, _ := strings.Cut(text[2:], ".")
	if len(whole) != 1 || len(digits) > 3 || strings.Trim(digits, "0123456789") != "" {
		return 0
	}
	fraction, _ := strconv.Atoi((digits + "000")[:3])
	switch {
	case whole == "0":
		return fraction
	case whole == "1" && fraction == 0:
		return 1000
	}
	return 0
}
