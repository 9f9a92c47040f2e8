package table

import (
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

const (
	maxHostLength  = 253 // RFC 1035, 2.3.4, as text
	maxLabelLength = 63
)

var errHost = errors.New("the host is neither a DNS name nor an IP address, with a port or without")

// Host is the host of a request.
type Host struct {
	// Name is a DNS name in lower case without a final dot, an IPv4 address, or an IPv6
	// address in brackets.
	Name string
	// Port is a number without leading zeros, or empty.
	Port string

	text string
}

// String returns the host as it is forwarded: the name, and the port if there is one.
func (h Host) String() string { return h.text }

// ParseHost reads a Host field, an :authority, or the authority of a target in absolute form:
//
//	host  = name [ "." ] [ ":" [ port ] ]  /  "[" IPv6 address "]" [ ":" [ port ] ]
//	name  = label *( "." label ), at most 253 characters
//	label = letters, digits and hyphens, none at an end; at most 63 characters
//	port  = 0 to 65535, without leading zeros
//
// The dot and the colon without port are left out of the result, and letters are lower
// case. All else is an error. Where nothing is left out it allocates nothing.
func ParseHost(text string) (Host, error) {
	var name, rest string
	var err error
	if strings.HasPrefix(text, "[") {
		end := strings.IndexByte(text, ']') + 1
		name, rest = text[:end], text[end:]
		name, err = parseIPv6(name)
	} else {
		end := strings.IndexByte(text, ':')
		if end < 0 {
			end = len(text)
		}
		name, rest = text[:end], text[end:]
		name, err = parseName(name)
	}
	if err != nil {
		return Host{}, err
	}
	port := strings.TrimPrefix(rest, ":")
	if rest != "" && rest[0] != ':' || !isPort(port) {
		return Host{}, errHost
	}
	host := Host{Name: name, Port: port, text: text}
	switch {
	case port == "":
		host.text = name
	case len(text) != len(name)+1+len(port) || !strings.HasPrefix(text, name):
		host.text = name + ":" + port
	}
	return host, nil
}

// parseName returns a DNS name or an IPv4 address, in lower case and without a final dot.
func parseName(name string) (string, error) {
	name = strings.TrimSuffix(name, ".")
	if name == "" || len(name) > maxHostLength {
		return "", errHost
	}
	start := 0 // of the label
	for i := 0; i <= len(name); i++ {
		if i < len(name) && name[i] != '.' {
			if !isLabelByte(name[i]) {
				return "", errHost
			}
			continue
		}
		if i == start || i-start > maxLabelLength || name[start] == '-' || name[i-1] == '-' {
			return "", errHost
		}
		start = i + 1
	}
	return strings.ToLower(name), nil
}

func isLabelByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-'
}

// parseIPv6 returns an address in brackets, in its shortest form. It refuses a zone,
// because a zone has a meaning only on the client's machine.
func parseIPv6(name string) (string, error) {
	if len(name) < 2 {
		return "", errHost // no closing bracket
	}
	address, err := netip.ParseAddr(name[1 : len(name)-1])
	if err != nil || !address.Is6() || address.Zone() != "" {
		return "", errHost
	}
	if canonical := address.String(); canonical != name[1:len(name)-1] {
		return "[" + canonical + "]", nil
	}
	return name, nil
}

// isPort reports whether a text is a port or empty.
func isPort(text string) bool {
	if text == "" {
		return true
	}
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	port, err := strconv.ParseUint(text, 10, 16)
	return err == nil && (text[0] != '0' || port == 0 && len(text) == 1)
}
