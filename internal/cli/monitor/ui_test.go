package monitor

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

// uiUnderTest is a proxy before something that plays the monitor.
type uiUnderTest struct {
	*testing.T
	proxy   *uiProxy
	clock   *testingclock.FakePassiveClock
	address string
	// asked are the requests that reached the monitor.
	asked []*http.Request
	code  int
}

func newUIUnderTest(t *testing.T) *uiUnderTest {
	t.Helper()
	u := &uiUnderTest{T: t, clock: testingclock.NewFakePassiveClock(time.Date(2026, 11, 25, 12, 0, 0, 0, time.UTC)), code: http.StatusOK}
	monitor := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		u.asked = append(u.asked, r)
		w.Header().Set("Set-Cookie", "monitor=1")
		w.Header().Set("Content-Security-Policy", "default-src 'self'")
		w.WriteHeader(u.code)
		_, _ = io.WriteString(w, "an answer of the monitor")
	}))
	t.Cleanup(monitor.Close)
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u.address = listener.Addr().String()
	u.proxy, err = newUIProxy(u.address, u.client(monitor, "secret-token"), u.clock)
	if err != nil {
		t.Fatal(err)
	}
	u.proxy.again = func(context.Context) (*monitorClient, error) { return u.client(monitor, "second-token"), nil }
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: u.proxy, ReadHeaderTimeout: time.Second}}
	server.Start()
	t.Cleanup(server.Close)
	return u
}

func (u *uiUnderTest) client(monitor *httptest.Server, token string) *monitorClient {
	base, err := url.Parse(monitor.URL)
	if err != nil {
		u.Fatal(err)
	}
	return &monitorClient{http: &http.Client{Transport: tokenOf{token, &http.Transport{}}}, base: base, stop: func() {}}
}

// uiAnswer is what is told before the body.
type uiAnswer struct {
	StatusCode int
	Header     http.Header
	cookies    []*http.Cookie
}

// send sends a request as it is written, with a Host header unless there is one, and returns the answer.
func (u *uiUnderTest) send(method, path string, headers ...string) (answer uiAnswer, body string) {
	u.Helper()
	connection, err := (&net.Dialer{}).DialContext(u.Context(), "tcp", u.address)
	if err != nil {
		u.Fatal(err)
	}
	defer func() { _ = connection.Close() }()
	lines := headers
	if len(headers) == 0 || !strings.HasPrefix(headers[0], "Host:") {
		lines = append([]string{"Host: " + u.address}, headers...)
	}
	fmt.Fprintf(connection, "%s %s HTTP/1.1\r\n%s\r\nConnection: close\r\n\r\n", method, path, strings.Join(lines, "\r\n"))
	response, err := http.ReadResponse(bufio.NewReader(connection), &http.Request{Method: method})
	if err != nil {
		u.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	raw, err := io.ReadAll(response.Body)
	if err != nil {
		u.Fatal(err)
	}
	return uiAnswer{response.StatusCode, response.Header, response.Cookies()}, string(raw)
}

func (u *uiUnderTest) enter() (cookie string) {
	u.Helper()
	answer, body := u.send("GET", "/open/"+u.proxy.code)
	cookies := answer.cookies
	if answer.StatusCode != http.StatusOK || len(cookies) != 1 || !strings.Contains(body, `url=`+u.proxy.path) {
		u.Fatalf("%d %v %s", answer.StatusCode, cookies, body)
	}
	c := cookies[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != u.proxy.path || c.Domain != "" || c.MaxAge != 0 {
		u.Errorf("the cookie is %s", c)
	}
	return "Cookie: " + c.Name + "=" + c.Value
}

func TestUIPassesOnWhatItsBrowserAsks(t *testing.T) {
	u := newUIUnderTest(t)
	cookie := u.enter()
	answer, body := u.send("GET", u.proxy.path+"api/v1/changes?kind=a.b&limit=5", cookie, "Last-Event-ID: 7", "Sec-Fetch-Site: same-origin",
		"Authorization: Bearer of-the-browser", "Origin: http://elsewhere", "Impersonate-User: admin", "X-Forwarded-For: 1.2.3.4", "Referer: http://x/")
	if answer.StatusCode != http.StatusOK || body != "an answer of the monitor" || answer.Header.Get(uiProxyHeader) == "" || answer.Header.Get("Set-Cookie") != "" {
		t.Errorf("%d %s %v", answer.StatusCode, body, answer.Header)
	}
	if policies := answer.Header.Values("Content-Security-Policy"); len(policies) != 1 || policies[0] != "default-src 'self'" {
		t.Errorf("the policy of the page is %q", policies)
	}
	r := u.asked[0]
	if r.URL.String() != "/api/v1/changes?kind=a.b&limit=5" || r.Header.Get("Authorization") != "Bearer secret-token" || r.Header.Get("Last-Event-Id") != "7" {
		t.Errorf("%s %v", r.URL, r.Header)
	}
	for _, name := range []string{"Cookie", "Origin", "Impersonate-User", "X-Forwarded-For", "Referer", "Sec-Fetch-Site"} {
		if r.Header.Get(name) != "" {
			t.Errorf("%s went on: %s", name, r.Header.Get(name))
		}
	}
	if u.send("GET", u.proxy.path, cookie); u.asked[1].URL.Path != "/" {
		t.Errorf("%s", u.asked[1].URL)
	}
}

// TestUIIsForOneBrowserOnly: none of these requests reaches the monitor, and none is told a secret.
func TestUIIsForOneBrowserOnly(t *testing.T) {
	u := newUIUnderTest(t)
	cookie := u.enter()
	p := u.proxy
	for name, request := range map[string][]string{
		"another user, who knows the port":          {"GET", "/"},
		"who guesses where the API is":              {"GET", "/api/v1/changes"},
		"with the path, without the cookie":         {"GET", p.path + "api/v1/changes"},
		"with the cookie, without the path":         {"GET", "/api/v1/changes", cookie},
		"with a part of the path":                   {"GET", p.path[:10] + "/api/v1/changes", cookie},
		"with another cookie":                       {"GET", p.path, "Cookie: " + uiCookie + "=" + p.path},
		"with an empty cookie":                      {"GET", p.path, "Cookie: " + uiCookie + "="},
		"with two cookies":                          {"GET", p.path, cookie + "; " + uiCookie + "=x"},
		"with a token of another user":              {"GET", p.path, "Authorization: Bearer x"},
		"a second browser with the printed address": {"GET", "/open/" + p.code},
		"one with another code":                     {"GET", "/open/" + p.cookie},
		"one with no code":                          {"GET", "/open/"},
		"a name that leads here (DNS rebinding)":    {"GET", p.path, "Host: evil.example.com", cookie},
		"that name with the port":                   {"GET", p.path, "Host: evil.example.com" + u.address[strings.LastIndex(u.address, ":"):], cookie},
		"localhost, which has other cookies":        {"GET", p.path, "Host: localhost" + u.address[strings.LastIndex(u.address, ":"):], cookie},
		"the address without the port":              {"GET", p.path, "Host: 127.0.0.1", cookie},
		"a name in the request line":                {"GET", "http://evil.example.com" + p.path, cookie},
		"a form of another site":                    {"POST", p.path + "login", cookie, "Origin: http://evil.example.com", "Content-Length: 0"},
		"a post of the page itself":                 {"POST", p.path + "logout", cookie, "Content-Length: 0"},
		"another method":                            {"DELETE", p.path + "api/v1/changes", cookie},
		"a script of another site":                  {"GET", p.path + "api/v1/changes", cookie, "Sec-Fetch-Site: cross-site"},
		"a page of another port":                    {"GET", p.path + "api/v1/changes", cookie, "Sec-Fetch-Site: same-site"},
		"a path that leads out":                     {"GET", p.path + "../../x", cookie},
		"one that is encoded":                       {"GET", p.path + "assets/%2e%2e/%2e%2e/x", cookie},
		"one with encoded slashes":                  {"GET", p.path + "assets/..%2f..%2fx", cookie},
		"one that is encoded twice":                 {"GET", p.path + "assets/%252e%252e/x", cookie},
		"one with backslashes":                      {"GET", p.path + "assets/..\\..\\x", cookie},
		"one that begins anew":                      {"GET", p.path + "/elsewhere/", cookie},
	} {
		answer, body := u.send(request[0], request[1], request[2:]...)
		if answer.StatusCode < 400 || strings.Contains(body, "an answer") {
			t.Errorf("%s: %d %s", name, answer.StatusCode, body)
		}
		reported := body + fmt.Sprint(answer.Header)
		for _, secret := range []string{p.code, p.path, p.cookie, "secret-token"} {
			if strings.Contains(reported, secret) {
				t.Errorf("%s is told a secret: %s", name, reported)
			}
		}
	}
	if len(u.asked) > 0 {
		t.Errorf("%d requests reached the monitor: %s", len(u.asked), u.asked[0].URL)
	}
	if answer, _ := u.send("GET", p.path, cookie); answer.StatusCode != http.StatusOK {
		t.Errorf("the browser itself is refused: %d", answer.StatusCode)
	}
}

func TestUIAddressWorksForAShortTime(t *testing.T) {
	u := newUIUnderTest(t)
	if answer, _ := u.send("GET", "/open/"+u.proxy.code, "Sec-Purpose: prefetch"); answer.StatusCode == http.StatusOK || len(answer.cookies) > 0 {
		t.Error("looking ahead uses the address up")
	}
	if answer, _ := u.send("HEAD", "/open/"+u.proxy.code); answer.StatusCode == http.StatusOK || len(answer.cookies) > 0 {
		t.Error("HEAD uses the address up")
	}
	u.clock.SetTime(u.clock.Now().Add(uiEntrance + time.Second))
	if answer, _ := u.send("GET", "/open/"+u.proxy.code); answer.StatusCode != http.StatusForbidden || len(answer.cookies) > 0 {
		t.Errorf("after %s: %d", uiEntrance, answer.StatusCode)
	}
}

func TestUISaysWhatIsWrong(t *testing.T) {
	u := newUIUnderTest(t)
	cookie := u.enter()
	for code, want := range map[int]string{401: "does not accept your credentials", 302: "leads somewhere else"} {
		u.code = code
		if answer, body := u.send("GET", u.proxy.path, cookie); answer.StatusCode != http.StatusBadGateway || !strings.Contains(body, want) {
			t.Errorf("%d: %d %s", code, answer.StatusCode, body)
		}
	}
	u.code = http.StatusNotFound
	if answer, body := u.send("GET", u.proxy.path, cookie); answer.StatusCode != http.StatusNotFound || body != "an answer of the monitor" {
		t.Errorf("%d %s", answer.StatusCode, body)
	}
}

func TestUIRenewsATokenOfAServiceAccount(t *testing.T) {
	u := newUIUnderTest(t)
	u.proxy.lasting = false
	cookie := u.enter()
	u.send("GET", u.proxy.path, cookie)
	u.clock.SetTime(u.clock.Now().Add(uiRenewal))
	u.send("GET", u.proxy.path, cookie)
	for i, want := range []string{"Bearer secret-token", "Bearer second-token"} {
		if got := u.asked[i].Header.Get("Authorization"); got != want {
			t.Errorf("request %d: %s", i, got)
		}
	}
}

// TestTheBrowserGetsNoSecretAsArgument: arguments can be read by every user of the machine.
func TestTheBrowserGetsNoSecretAsArgument(t *testing.T) {
	folder := t.TempDir()
	script := "#!/bin/sh\nprintf '%s' \"$1\" >" + folder + "/argument.new\ncp \"$1\" " + folder + "/page\nstat -c %a \"$1\" \"$(dirname \"$1\")\" >" + folder + "/modes\nmv " + folder + "/argument.new " + folder + "/argument\n"
	if err := os.WriteFile(folder+"/xdg-open", []byte(script), 0o700); err != nil { // it has to run
		t.Fatal(err)
	}
	t.Setenv("PATH", folder+":"+os.Getenv("PATH"))
	remove, err := openBrowser(t.Context(), "http://127.0.0.1:1/open/SECRET")
	if err != nil {
		t.Fatal(err)
	}
	ticker := time.NewTicker(10 * time.Millisecond)
	defer ticker.Stop()
	argument := ""
	for range 1000 {
		raw, err := os.ReadFile(folder + "/argument")
		if argument = string(raw); err == nil {
			break
		}
		<-ticker.C
	}
	modes, _ := os.ReadFile(folder + "/modes")
	page, _ := os.ReadFile(folder + "/page")
	if argument == "" || strings.Contains(argument, "SECRET") || !strings.Contains(string(page), "/open/SECRET") || string(modes) != "600\n700\n" {
		t.Errorf("%q, with modes %q, and in it %s", argument, modes, page)
	}
	remove()
	if _, err := os.Stat(argument); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
}
