package table_test

import (
	"net"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/internal/gateway/table"
)

func TestParseHostTakesOneSpellingForAnother(t *testing.T) {
	for text, want := range map[string][3]string{ // name, port, forwarded form
		"a":                     {"a", "", "a"},
		"a.example.com":         {"a.example.com", "", "a.example.com"},
		"A.Example.COM":         {"a.example.com", "", "a.example.com"},
		"a.example.com.":        {"a.example.com", "", "a.example.com"},
		"a.example.com:":        {"a.example.com", "", "a.example.com"},
		"A.example.com.:":       {"a.example.com", "", "a.example.com"},
		"a.example.com:8080":    {"a.example.com", "8080", "a.example.com:8080"},
		"a.example.com.:8080":   {"a.example.com", "8080", "a.example.com:8080"},
		"a:0":                   {"a", "0", "a:0"},
		"a:80":                  {"a", "80", "a:80"},
		"a:65535":               {"a", "65535", "a:65535"},
		"xn--bcher-kva.example": {"xn--bcher-kva.example", "", "xn--bcher-kva.example"},
		"a--b.1.c-2":            {"a--b.1.c-2", "", "a--b.1.c-2"},
		"10.0.0.1":              {"10.0.0.1", "", "10.0.0.1"},
		"10.0.0.1:80":           {"10.0.0.1", "80", "10.0.0.1:80"},
		"[::1]":                 {"[::1]", "", "[::1]"},
		"[::1]:":                {"[::1]", "", "[::1]"},
		"[::1]:80":              {"[::1]", "80", "[::1]:80"},
		"[2001:DB8:0::1]:80":    {"[2001:db8::1]", "80", "[2001:db8::1]:80"},
		"[::ffff:10.0.0.1]":     {"[::ffff:10.0.0.1]", "", "[::ffff:10.0.0.1]"},
		strings.Repeat("a", 63): {strings.Repeat("a", 63), "", strings.Repeat("a", 63)},
		longHost(253) + ".:1":   {longHost(253), "1", longHost(253) + ":1"},
	} {
		host, err := table.ParseHost(text)
		if err != nil || host.Name != want[0] || host.Port != want[1] || host.String() != want[2] {
			t.Errorf("%q is %+v, %v", text, host, err)
		}
	}
}

// longHost returns a name of n characters.
func longHost(n int) string {
	return strings.Repeat("abcdefg.", n/8) + strings.Repeat("x", n%8)
}

func TestParseHostRefusesWhatIsNone(t *testing.T) {
	for _, text := range []string{
		"", ".", "..", "a..", "a..b", ".a", ":", ":80", "a:80:80", "a::80", "a:b", "a:+1", "a:-1", "a: 1", "a:080", "a:00", "a:65536", "a:100000000000000000000",
		"a,b", "a,", "a;b", "a;", "a/b", "a/", "a?b", "a?", "a#", "a@b", "user@a", "user:pass@a:80", "a b", " a", "a ", "a\tb", "a\x00", "a_b", "_a", "*.a", "*",
		"a%2eb", "%61", "ä", "a\xff", "a\r\n", "-a", "a-", "a.-b", "a-.b", "a!", "a$b", "a&b", "a'b", "(a)", "a+b", "a=b", "a~b", `a"`, `a\b`, "a|b", "{a}", "<a>",
		"::1", "2001:db8::1", "[", "]", "[]", "[a]", "[::1", "::1]", "[::1]a", "[::1]80", "[::1]:80:80", "[::1].", "a[::1]", "a[b]", "[::1%25eth0]", "[fe80::1%eth0]", "[10.0.0.1]", "[v1.x]", "[[::1]]",
		strings.Repeat("a", 64), longHost(254), longHost(253) + "..",
	} {
		if host, err := table.ParseHost(text); err == nil {
			t.Errorf("%q is %+v", text, host)
		}
	}
}

func TestParsingAPlainHostAllocatesNothing(t *testing.T) {
	for _, text := range []string{"a.example.com", "a.example.com:8080", "10.0.0.1:80"} {
		if n := testing.AllocsPerRun(100, func() { _, _ = table.ParseHost(text) }); n != 0 {
			t.Errorf("%q: %v allocations", text, n)
		}
	}
}

var (
	referenceName = regexp.MustCompile(`\A(?i:[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?(\.[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?)*)\z`)
	referencePort = regexp.MustCompile(`\A(|0|[1-9][0-9]{0,4})\z`)
)

// referenceHost parses a host in a simple and slow way.
func referenceHost(text string) (name, port string, ok bool) {
	brackets := regexp.MustCompile(`\A(\[[0-9a-fA-F:.]*\])(?::(.*))?\z`).FindStringSubmatch(text)
	if brackets != nil {
		ip := net.ParseIP(strings.Trim(brackets[1], "[]"))
		if ip == nil || !strings.Contains(brackets[1], ":") {
			return "", "", false
		}
		name, port = brackets[1], brackets[2]
	} else {
		parts := strings.Split(text, ":")
		if len(parts) > 2 {
			return "", "", false
		}
		name = strings.ToLower(strings.TrimSuffix(parts[0], "."))
		if len(name) > 253 || !referenceName.MatchString(name) {
			return "", "", false
		}
		if len(parts) == 2 {
			port = parts[1]
		}
	}
	number, _ := strconv.Atoi("0" + port)
	return name, port, referencePort.MatchString(port) && number <= 65535
}

func FuzzParseHost(f *testing.F) {
	for _, seed := range []string{"a", "A.b.:80", "[::1]:", "[2001:DB8::0:1]:443", "a:80:80", "a,b", "a..", "[::1", "10.0.0.1.", "a:0080"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		host, err := table.ParseHost(text)
		name, port, ok := referenceHost(text)
		if (err == nil) != ok {
			t.Fatalf("%q is %+v, %v; the reference says %v", text, host, err, ok)
		}
		if err != nil {
			return
		}
		if again, err := table.ParseHost(host.String()); err != nil || again != host {
			t.Errorf("%q is %+v, and once more %+v, %v", text, host, again, err)
		}
		if host.Port != port || (name[0] != '[' && host.Name != name) {
			t.Errorf("%q is %+v, want %s and %s", text, host, name, port)
		}
		if name[0] == '[' && !net.ParseIP(strings.Trim(host.Name, "[]")).Equal(net.ParseIP(strings.Trim(name, "[]"))) {
			t.Errorf("%q has another address: %s", text, host.Name)
		}
	})
}
