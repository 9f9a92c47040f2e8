package table

import (
	"errors"
	"strings"
)

// Path is a request's path in the forms that a gateway needs.
type Path struct {
	// Forward is the path for the backend: as received, with "." and ".." resolved.
	Forward string
	// Match is the path for Table.Match: Forward without empty segments and with decoded
	// escapes. %2F stays escaped, because it does not separate segments.
	Match string

	// received is the path as received, if a backend may read it in another way than the
	// gateway. It is empty if the path has only one meaning.
	received string
}

// These are the errors of ParsePath. The answer to such a request is 400.
var (
	errPathRelative  = errors.New("the path does not begin with a slash")
	errPathCharacter = errors.New("the path holds a character that does not belong there")
	errPathEscape    = errors.New("the path holds an escape that is none")
	errPathControl   = errors.New("the path holds an escaped control character")
	errPathHidden    = errors.New("the path hides a '..' beside an escaped slash, a backslash or a semicolon")
)

// ParsePath parses the path of a request, escaped as received and without the query. It
// allocates nothing for a plain path.
func ParsePath(escaped string) (Path, error) {
	if escaped == "" || escaped[0] != '/' {
		return Path{}, errPathRelative
	}
	plain := true
	for i := 0; i < len(escaped); i++ {
		switch c := escaped[i]; {
		case c <= ' ' || c == 0x7f || c == '?' || c == '#':
			return Path{}, errPathCharacter
		case c == '%' || c == '\\' || c == ';' || c >= 0x80:
			plain = false
		case c == '/' && i+1 < len(escaped) && (escaped[i+1] == '/' || escaped[i+1] == '.'):
			plain = false
		}
	}
	if plain {
		return Path{Forward: escaped, Match: escaped}, nil
	}
	return resolve(escaped)
}

// resolve removes "." and ".." from a path.
func resolve(escaped string) (Path, error) {
	raw := strings.Split(escaped[1:], "/")
	forward, match := make([]string, 0, len(raw)), make([]string, 0, len(raw))
	for i, segment := range raw {
		decoded, err := decode(segment)
		if err != nil {
			return Path{}, err
		}
		if !isDots(decoded) {
			forward, match = append(forward, segment), append(match, decoded)
			continue
		}
		if n := len(forward); decoded == ".." && n > 0 {
			forward, match = forward[:n-1], match[:n-1]
		}
		if i == len(raw)-1 {
			forward, match = append(forward, ""), append(match, "") // a/.. is a directory, so it keeps its slash
		}
	}
	return Path{Forward: "/" + strings.Join(forward, "/"), Match: joinSegments(match), received: escaped}, nil
}

// parseSpecPath parses a path of the spec. It refuses an escaped "." or "..", and an escaped
// control character, because requests with one may be refused.
func parseSpecPath(escaped string) (Path, error) {
	path, err := ParsePath(escaped)
	if err != nil || path.received == "" {
		return path, err
	}
	if hidesControl(path.received) {
		return Path{}, errPathControl
	}
	if !everyReading(func(reading string) bool { return !hasDots(reading) }, path.Forward) {
		return Path{}, errPathHidden
	}
	return path, nil
}

// joinSegments removes empty segments, except the last one, which stands for a slash at the
// end.
func joinSegments(segments []string) string {
	path := &strings.Builder{}
	for _, segment := range segments {
		if segment != "" {
			path.WriteByte('/')
			path.WriteString(segment)
		}
	}
	if n := len(segments); n == 0 || segments[n-1] == "" {
		path.WriteByte('/')
	}
	return path.String()
}

// decode decodes the escapes of a segment, except %2F.
func decode(segment string) (string, error) {
	if strings.IndexByte(segment, '%') < 0 {
		return segment, nil
	}
	decoded := make([]byte, 0, len(segment))
	for i := 0; i < len(segment); i++ {
		if segment[i] != '%' {
			decoded = append(decoded, segment[i])
			continue
		}
		if i+2 >= len(segment) {
			return "", errPathEscape
		}
		high, low := unhex(segment[i+1]), unhex(segment[i+2])
		if high < 0 || low < 0 {
			return "", errPathEscape
		}
		i += 2
		switch c := byte(high<<4 | low); c {
		case 0:
			return "", errPathCharacter
		case '/':
			decoded = append(decoded, "%2F"...)
		default:
			decoded = append(decoded, c)
		}
	}
	return string(decoded), nil
}

func unhex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	default:
		return -1
	}
}
