package redact

import (
	"strings"

	"github.com/slipway-dev/slipway/internal/redact/gitleaks"
)

// classes counts what a text consists of.
type classes struct {
	lower, upper, digits, hex, signs, others int
	// changes counts how often a letter or digit is of another sort than the one before it.
	changes int
}

func classesOf(text string) classes {
	var c classes
	before := byte(0)
	for i := range len(text) {
		sort := byte(0)
		switch b := text[i]; {
		case b >= 'a' && b <= 'z':
			c.lower++
			sort = 1
		case isUpper(b):
			c.upper++
			sort = 2
		case isDigit(b):
			c.digits++
			sort = 3
		case strings.IndexByte("-_./:", b) >= 0:
			c.signs++
		default:
			c.others++
		}
		if b := text[i] | 0x20; isDigit(text[i]) || b >= 'a' && b <= 'f' {
			c.hex++
		}
		if sort != 0 && before != 0 && sort != before {
			c.changes++
		}
		if sort != 0 {
			before = sort
		}
	}
	return c
}

// Opaque reports whether a value is hardly a word, a name, a number, a version, a time, an address or a path: what it means cannot be
// read. It is for values whose names leave it open whether they are secrets.
func Opaque(value string) bool {
	value = strings.Trim(value, "\"'\\,;.()[]{}")
	if len(value) < 6 || len(value) > maxLook || strings.ContainsAny(value, " \t\n/@{}<>") || strings.Contains(value, "..") ||
		isMarker(value) {
		return false
	}
	c := classesOf(value)
	letters := c.lower + c.upper
	if c.digits == 0 || letters == 0 || isVersion(value) || isQuantity(value) || isUUID(value) {
		return false
	}
	return c.lower > 0 && c.upper > 0 && c.changes >= 2 || c.others > 0 && strings.IndexByte("$&", value[0]) < 0 ||
		c.signs == 0 && c.changes >= 3
}

func isVersion(value string) bool {
	value = strings.TrimPrefix(value, "v")
	return value != "" && isDigit(value[0]) && (strings.Contains(value, ".") || strings.Contains(value, "alpha") ||
		strings.Contains(value, "beta") || strings.Contains(value, "-") || strings.Contains(value, ":"))
}

// isQuantity reports whether a value is a number with a unit.
func isQuantity(value string) bool {
	return len(strings.TrimLeft(value, "0123456789.")) <= 2
}

func isUUID(value string) bool {
	return len(value) == 36 && value[8] == '-' && value[13] == '-' && value[18] == '-' && value[23] == '-'
}

// isRunByte reports whether a character may stand in base64, of either sort.
func isRunByte(c byte) bool { return isLetter(c) || isDigit(c) || isRunSign(c) }

func isRunSign(c byte) bool { return c == '+' || c == '/' || c == '-' || c == '_' }

// runEnd is where a run of such characters ends, with what fills it up.
func runEnd(text string, at int) int {
	for at < len(text) && isRunByte(text[at]) {
		at++
	}
	for fill := 0; at < len(text) && text[at] == '=' && fill < 2; fill++ {
		at++
	}
	return at
}

const (
	// leastRandom and mostRandom are how long a run is of which the looks are judged. A longer one is a certificate, a file, or
	// something that was packed, and not known to be a secret.
	leastRandom, mostRandom = 20, 128
	// awsSecret is how long a secret key of AWS is.
	awsSecret = 40
)

// random looks at a run: it may be a text in base64, or a secret because it looks random.
func (f *finder) random(start, end int) {
	if end-start < leastEncoded {
		return
	}
	switch f.encoded(start, end) {
	case textInside:
		return
	case secretInside:
		f.add(start, f.run)
		return
	}
	for start < end && isRunSign(f.text[start]) && end-start > awsSecret {
		start++
	}
	run := f.text[start:end]
	if len(run) < leastRandom || len(run) > mostRandom || isPublic(f.text, start) {
		return
	}
	if isRandom(strings.TrimRight(run, "=")) {
		f.add(start, end)
	}
}

// isRandom reports whether a run of characters looks as if it was drawn: capital and small letters and digits in turn. Hexadecimal
// digits do not: those are digests, identifiers, and names that Kubernetes makes.
func isRandom(run string) bool {
	c := classesOf(run)
	length := c.lower + c.upper + c.digits
	if c.lower < 2 || c.upper < 2 || c.digits < 1 || length < leastRandom*3/4 || c.hex == length || isUUID(run) {
		return false
	}
	// Of what is drawn 62 of 100 follow one of another sort; in names of several words, each with a capital letter, it is a third.
	least, entropy := 45, 3.5
	switch {
	case len(run) == awsSecret:
		least, entropy = 30, 4.4
	case strings.ContainsAny(run, "/_-"):
		least = 50
	}
	return 100*c.changes >= least*length && gitleaks.Entropy(run) >= entropy
}

// isPublic reports whether a run is no secret by what it begins with or what is before it: a digest, a public key, a certificate.
func isPublic(text string, start int) bool {
	before := strings.ToLower(text[max(0, start-8):start])
	for _, name := range []string{
		"sha1-", "sha256-", "sha384-", "sha512-", "sha256:", "sha512:", "sha1:", "md5:", "h1:", "etag: ", "etag:",
	} {
		if strings.HasSuffix(before, name) {
			return true
		}
	}
	run := text[start:min(len(text), start+8)]
	for _, head := range []string{"AAAA", "MII", "MIG", "MFk", "MCow", "sha256-", "sha384-", "sha512-", "sha1-"} {
		if strings.HasPrefix(run, head) {
			return true
		}
	}
	return false
}
