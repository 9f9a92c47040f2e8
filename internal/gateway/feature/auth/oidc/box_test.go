package oidc

import (
	"bytes"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/gateway/feature/auth"
)

const (
	secret = "a client secret of some length"
	older  = "the client secret before that"
)

func newTestBox(t *testing.T, secrets []string, context ...string) *box {
	t.Helper()
	b, err := newBox(secrets, context...)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestOnlyTheSameSecretContextAndPurposeOpenABox(t *testing.T) {
	sealed := newTestBox(t, []string{secret}, "gateway", "route", "issuer", "client").seal(forSession, []byte("hello"))
	for name, test := range map[string]struct {
		secrets []string
		context []string
		what    purpose
		opens   bool
	}{
		"the same":                        {[]string{secret}, []string{"gateway", "route", "issuer", "client"}, forSession, true},
		"a newer secret beside it":        {[]string{older, secret}, []string{"gateway", "route", "issuer", "client"}, forSession, true},
		"another secret":                  {[]string{older}, []string{"gateway", "route", "issuer", "client"}, forSession, false},
		"another gateway":                 {[]string{secret}, []string{"gatewax", "route", "issuer", "client"}, forSession, false},
		"another route":                   {[]string{secret}, []string{"gateway", "routf", "issuer", "client"}, forSession, false},
		"another issuer":                  {[]string{secret}, []string{"gateway", "route", "issues", "client"}, forSession, false},
		"another client":                  {[]string{secret}, []string{"gateway", "route", "issuer", "clienu"}, forSession, false},
		"another purpose":                 {[]string{secret}, []string{"gateway", "route", "issuer", "client"}, forLogin, false},
		"the same text, divided in other": {[]string{secret}, []string{"gatewayroute", "", "issuer", "client"}, forSession, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, opens := newTestBox(t, test.secrets, test.context...).open(test.what, sealed)
			if opens != test.opens || opens && string(got) != "hello" {
				t.Errorf("got %q, %v", got, opens)
			}
		})
	}
}

func TestAShortSecretIsRefused(t *testing.T) {
	for _, secrets := range [][]string{nil, {""}, {strings.Repeat("x", auth.MinClientSecret-1)}, {secret, "short"}} {
		if _, err := newBox(secrets, "x"); err == nil {
			t.Errorf("%q was taken", secrets)
		}
	}
}

func testClient(t *testing.T, change func(*Config)) *Client {
	t.Helper()
	config := Config{
		Gateway: "APIGateway a/b", Scope: "one", Issuer: "https://issuer.test", ClientID: "shop", Secrets: []string{secret},
		RedirectPath: "/oauth2/callback", Length: time.Hour,
	}
	if change != nil {
		change(&config)
	}
	c, err := NewClient(config, &Traffic{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

var now = time.Unix(1_800_000_000, 0)

func kept(t *testing.T, c *Client, s *Session) Cookies {
	t.Helper()
	set, err := c.Keep(browser(nil), s)
	if err != nil {
		t.Fatal(err)
	}
	cookies := Cookies{}
	for _, cookie := range set {
		cookies[cookie.Name] = cookie.Value
	}
	return cookies
}

func browser(cookies Cookies) *Browser {
	return &Browser{Scheme: "https", Host: "shop.test", Cookies: cookies, Now: now}
}

func randomText(n int) string {
	text := make([]byte, n)
	for i := range text {
		text[i] = byte('a' + rand.N(26))
	}
	return string(text)
}

func TestASessionSurvivesItsCookies(t *testing.T) {
	c := testClient(t, nil)
	for _, size := range []int{0, 100, 3000, 5000, 9000} {
		want := &Session{IDToken: randomText(size), RefreshToken: "r", Expires: now.Unix() + 60, Ends: now.Unix() + 3600}
		cookies := kept(t, c, want)
		got, found := c.Session(browser(cookies))
		if !found {
			t.Fatalf("%d bytes: no session in %d cookies", size, len(cookies))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%d bytes: %s", size, diff)
		}
		for name, value := range cookies {
			if len(name)+len(value) > 4000 {
				t.Errorf("%d bytes: cookie %s has %d bytes, which browsers throw away", size, name, len(value))
			}
		}
	}
	if _, err := c.Keep(browser(nil), &Session{IDToken: randomText(15000), Ends: now.Unix() + 9}); KindOf(err) != TooLarge {
		t.Errorf("a session that is too large for cookies: %v", err)
	}
}

func TestASessionEnds(t *testing.T) {
	c := testClient(t, nil)
	b := browser(kept(t, c, &Session{IDToken: "x", Ends: now.Unix() + 60}))
	for after, want := range map[time.Duration]bool{0: true, 59 * time.Second: true, time.Minute: false, time.Hour: false} {
		b.Now = now.Add(after)
		if _, found := c.Session(b); found != want {
			t.Errorf("after %v: %v", after, found)
		}
	}
}

// TestNothingThatWeHaveNotEncryptedIsASession changes cookies in all ways in which a client can.
func TestNothingThatWeHaveNotEncryptedIsASession(t *testing.T) {
	c := testClient(t, nil)
	one := kept(t, c, &Session{IDToken: randomText(9000), Ends: now.Unix() + 3600})
	two := kept(t, c, &Session{IDToken: randomText(9000), Ends: now.Unix() + 3600})
	j := jar{prefix: c.prefix, secure: true}
	for name, change := range map[string]func(Cookies){
		"the last piece missing":        func(in Cookies) { delete(in, j.piece(len(one)-1)) },
		"the first piece missing":       func(in Cookies) { delete(in, j.piece(0)) },
		"a piece empty":                 func(in Cookies) { in[j.piece(1)] = "" },
		"pieces swapped":                func(in Cookies) { in[j.piece(1)], in[j.piece(2)] = in[j.piece(2)], in[j.piece(1)] },
		"a piece of another session":    func(in Cookies) { in[j.piece(1)] = two[j.piece(1)] },
		"a piece twice":                 func(in Cookies) { in[j.piece(2)] = in[j.piece(1)] },
		"one piece less in the count":   func(in Cookies) { in[j.piece(0)] = strconv.Itoa(len(one)-1) + in[j.piece(0)][1:] },
		"one piece more in the count":   func(in Cookies) { in[j.piece(0)] = strconv.Itoa(len(one)+1) + in[j.piece(0)][1:] },
		"a count with a sign":           func(in Cookies) { in[j.piece(0)] = "+" + in[j.piece(0)] },
		"a count with a zero":           func(in Cookies) { in[j.piece(0)] = "0" + in[j.piece(0)] },
		"the last character cut":        func(in Cookies) { at := j.piece(len(one) - 1); in[at] = in[at][:len(in[at])-1] },
		"a character more":              func(in Cookies) { in[j.piece(len(one)-1)] += "A" },
		"a line end in the middle":      func(in Cookies) { in[j.piece(1)] += "\n" },
		"the names without the prefix":  func(in Cookies) { rename(in, hostPrefix, "") },
		"the names of another client":   func(in Cookies) { rename(in, c.prefix, namePrefix+"0123456789abcdef") },
		"base64 with unused bits set":   func(in Cookies) { at := j.piece(len(one) - 1); in[at] = loosen(in[at]) },
		"the cookie of a log-in for it": func(in Cookies) { clear(in); in[j.piece(0)] = "1." + c.box.seal(forLogin, []byte(`{"u":9999999999}`)) },
	} {
		t.Run(name, func(t *testing.T) {
			changed := Cookies{}
			for name, value := range one {
				changed[name] = value
			}
			change(changed)
			if cmp.Equal(changed, one) {
				t.Skip("this session has no such form")
			}
			if _, found := c.Session(browser(changed)); found {
				t.Error("it is a session")
			}
		})
	}
}

func rename(in Cookies, from, to string) {
	for name, value := range in {
		delete(in, name)
		in[strings.Replace(name, from, to, 1)] = value
	}
}

// loosen sets a bit that a lax decoder ignores, if there is one.
func loosen(text string) string {
	const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
	last := strings.IndexByte(alphabet, text[len(text)-1])
	return text[:len(text)-1] + string(alphabet[last^1])
}

func TestASessionOfAnotherClientIsNone(t *testing.T) {
	cookies := kept(t, testClient(t, nil), &Session{IDToken: "x", Ends: now.Unix() + 3600})
	for name, change := range map[string]func(*Config){
		"gateway": func(c *Config) { c.Gateway = "APIGateway a/c" },
		"scope":   func(c *Config) { c.Scope = "two" },
		"issuer":  func(c *Config) { c.Issuer += "/" },
		"client":  func(c *Config) { c.ClientID = "shop2" },
		"secret":  func(c *Config) { c.Secrets = []string{older} },
	} {
		t.Run(name, func(t *testing.T) {
			c := testClient(t, change)
			stolen := Cookies{}
			for name, value := range cookies { // the attacker calls them as this client does
				stolen[hostPrefix+c.prefix+name[strings.LastIndexByte(name, '.'):]] = value
			}
			if _, found := c.Session(browser(stolen)); found {
				t.Error("it is a session")
			}
		})
	}
}

func TestSessionsSurviveANewSecret(t *testing.T) {
	cookies := kept(t, testClient(t, func(c *Config) { c.Secrets = []string{older} }), &Session{IDToken: "x", Ends: now.Unix() + 3600})
	if _, found := testClient(t, func(c *Config) { c.Secrets = []string{secret, older} }).Session(browser(cookies)); !found {
		t.Error("the session is lost")
	}
}

// FuzzSession gives arbitrary cookies to the reader. Nobody but us knows the key, so the only session among them is the one that
// we have encrypted. Each process of the fuzzer encrypts it anew, so the session is compared, and not its cookies.
func FuzzSession(f *testing.F) {
	c, err := NewClient(Config{Gateway: "g", Scope: "s", Issuer: "https://i", ClientID: "c", Secrets: []string{secret}, Length: time.Hour}, &Traffic{})
	if err != nil {
		f.Fatal(err)
	}
	name := hostPrefix + c.prefix
	ours := Session{IDToken: strings.Repeat("t", 4000), Ends: now.Unix() + 3600}
	set, err := c.Keep(&Browser{Scheme: "https", Now: now}, &ours)
	if err != nil {
		f.Fatal(err)
	}
	genuine, swapped := "", ""
	for _, cookie := range set {
		genuine += cookie.Name + "=" + cookie.Value + "; "
		swapped = cookie.Name + "=" + cookie.Value + "; " + swapped
	}
	f.Add(genuine)
	f.Add(swapped)
	f.Add(name + ".s0=1.AAAA; " + name + ".s0=2")
	f.Add(name + ".s0=5.; " + name + ".s1=a; x=\"" + name + ".s2=b")
	f.Fuzz(func(t *testing.T, field string) {
		cookies := ReadCookies([]string{field})
		if got, found := c.Session(&Browser{Scheme: "https", Cookies: cookies, Now: now}); found && *got != ours {
			t.Errorf("another session than ours: %+v of %q", got, field)
		}
		stripped := Strip(field)
		if rest := ReadCookies([]string{stripped}); len(rest) > 0 && strings.Count(field, ";") < maxCookies {
			t.Errorf("the backend gets %v of %q", rest, field)
		}
		if !Mentions(field) && !bytes.Equal([]byte(stripped), []byte(field)) {
			t.Errorf("%q was changed to %q", field, stripped)
		}
	})
}

// Another host of the domain can set a second cookie of a name. The browser must be able to get rid of the two.
func TestACookieThatComesTwiceIsRemoved(t *testing.T) {
	c := testClient(t, nil)
	j := jar{prefix: c.prefix, secure: true}
	session, login := j.piece(0), j.login("a")
	cookies := ReadCookies([]string{session + "=1.x; " + login + "=y; " + session + "=1.z; " + login + "=y"})
	if _, found := c.Session(browser(cookies)); found {
		t.Error("it is a session")
	}
	removed := c.Forget(browser(cookies))
	if len(removed) != 1 || removed[0].Name != session || removed[0].MaxAge >= 0 {
		t.Errorf("removed are %v", removed)
	}
	if _, removed, found := c.begun(browser(cookies), map[string][]string{"state": {"a0"}}); found || len(removed) != 1 || removed[0].Name != login {
		t.Errorf("removed are %v", removed)
	}
}
