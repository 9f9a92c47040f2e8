//go:build oidc

package proxy

import (
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"
)

// TestARealProvider logs in at the provider of test/oidc/provider, through its form. make test-oidc builds it.
func TestARealProvider(t *testing.T) {
	program := os.Getenv("OIDC_PROVIDER")
	if program == "" {
		t.Fatal("OIDC_PROVIDER does not name the provider: run make test-oidc")
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	issuer := "http://" + free.Addr().String()
	free.Close()
	backend, requests := recording(t)
	route := strings.NewReplacer("ISSUER", issuer, "clientID", "scopes: [email, profile, offline_access]\n      clientID", "claim: email", "claim: sub").Replace(loginRoute)
	secrets := map[string]map[string][]byte{"login": {"issuer": []byte(issuer), "secret": []byte(clientSecret)}}
	clock := testingclock.NewFakeClock(time.Now())
	g := startTable(t, Options{Clock: clock, Identity: "APIGateway a/b"}, compile(t, route, secrets, backend))
	provider := exec.Command(program, "--issuer", issuer, "--secret", clientSecret, "--redirect", "http://"+g.address+"/oauth2/callback")
	if err := provider.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = provider.Process.Kill()
		_ = provider.Wait()
	})
	alice := newPerson(t, g)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	eventually(t, "the provider answers", func() bool {
		answer, err := http.Get(issuer + "/.well-known/openid-configuration")
		if err == nil {
			answer.Body.Close()
		}
		return err == nil
	})
	clock.Step(2 * time.Second) // the gateway tries again
	var form opened
	text := ""
	eventually(t, "the gateway knows the provider", func() bool {
		form, text = alice.page(http.MethodGet, "/orders?page=2", nil)
		return form.StatusCode == http.StatusOK
	})
	id := regexp.MustCompile(`name="id" value="([^"]+)"`).FindStringSubmatch(text)
	if id == nil {
		t.Fatalf("no form at %s", form.Request.URL)
	}
	page, _ := alice.page(http.MethodPost, issuer+"/login/username", url.Values{"id": {id[1]}, "username": {"test-user2"}, "password": {"verysecure"}})
	want(t, "status", page.StatusCode, http.StatusOK)
	want(t, "page", page.Request.URL.String(), "http://"+g.address+"/orders?page=2")
	got := received(t, requests)
	want(t, "user", got.Header.Get("X-Email"), "id2")
	first := got.Header.Get("Authorization")
	clock.Step(10 * time.Minute) // the provider's tokens last 5 minutes
	want(t, "status after a refresh", alice.open("/", "Accept", "*/*").StatusCode, http.StatusOK)
	if again := received(t, requests).Header.Get("Authorization"); again == first || !strings.HasPrefix(again, "Bearer ") {
		t.Errorf("the token was not renewed: %q", again)
	}
	out := alice.open("/oauth2/logout", "Sec-Fetch-Site", "same-origin")
	want(t, "where a log-out ends", out.Request.URL.Path, "/logged-out")
	want(t, "status", alice.open("/", "Accept", "*/*").StatusCode, http.StatusUnauthorized)
}

// page opens a page, or sends a form, and returns the last answer with its body.
func (p *person) page(method, address string, form url.Values) (opened, string) {
	p.t.Helper()
	if strings.HasPrefix(address, "/") {
		address = "http://" + p.g.address + address
	}
	request, err := http.NewRequest(method, address, strings.NewReader(form.Encode()))
	if err != nil {
		p.t.Fatal(err)
	}
	request.Header.Set("Accept", "text/html")
	if form != nil {
		request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	response, err := p.client.Do(request)
	if err != nil {
		p.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return opened{response.StatusCode, response.Header, response.Request, response.Cookies(), string(body)}, string(body)
}
