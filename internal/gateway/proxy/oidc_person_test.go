package proxy

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
)

// person is somebody with a browser.
type person struct {
	t      *testing.T
	g      *gateway
	client *http.Client
}

func newPerson(t *testing.T, g *gateway) *person {
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &person{t, g, &http.Client{Jar: jar, Transport: transport}}
}

// opened is what a browser got in the end.
type opened struct {
	StatusCode int
	Header     http.Header
	Request    *http.Request
	Cookies    []*http.Cookie
	Text       string
}

// stops makes the browser show redirects, and not follow them.
func (p *person) stops() *person {
	p.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return p
}

func (p *person) do(method, address string, fields ...string) opened {
	p.t.Helper()
	if strings.HasPrefix(address, "/") {
		address = "http://" + p.g.address + address
	}
	request, err := http.NewRequest(method, address, http.NoBody)
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("Accept", "text/html")
	for i := 0; i < len(fields); i += 2 {
		request.Header.Set(fields[i], fields[i+1])
	}
	response, err := p.client.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return opened{response.StatusCode, response.Header, response.Request, response.Cookies(), string(text)}
}

func (p *person) open(address string, fields ...string) opened {
	p.t.Helper()
	return p.do(http.MethodGet, address, fields...)
}

// comeBack logs in at the provider, and returns the address to which that sends the browser, without opening it.
func (p *person) comeBack(path string) string {
	p.t.Helper()
	p.stops()
	toProvider := p.open(path)
	if toProvider.StatusCode != http.StatusFound {
		p.t.Fatalf("%s: %d", path, toProvider.StatusCode)
	}
	return p.open(toProvider.Header.Get("Location")).Header.Get("Location")
}

// cookiesOf are the cookies that a browser has for the gateway. Ports do not count for cookies.
func cookiesOf(p *person) string {
	var pairs []string
	for _, cookie := range p.client.Jar.Cookies(&url.URL{Scheme: "http", Host: p.g.address, Path: "/"}) {
		pairs = append(pairs, cookie.Name+"="+cookie.Value)
	}
	return strings.Join(pairs, "; ")
}

// received is the request that the backend has just answered.
func received(t *testing.T, requests chan seen) seen {
	t.Helper()
	select {
	case got := <-requests:
		return got
	default:
		t.Fatal("the backend got no request")
		return seen{}
	}
}
