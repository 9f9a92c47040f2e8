package proxy

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"
)

const clientSecret = "the secret of the client of the shop"

// provider is an OpenID Connect provider that logs everybody in as alice. It checks what a provider must check: the client, its
// secret, the redirect URI, PKCE, and that codes and refresh tokens are used once.
type provider struct {
	*httptest.Server
	*issuer

	mu        sync.Mutex
	codes     map[string]url.Values // the requests that they were given out for
	refresh   map[string]bool       // the refresh tokens that are valid
	issued    int
	refreshes int
	lifetime  int                                // of tokens, in seconds
	claims    map[string]any                     // changed in ID tokens
	document  map[string]any                     // changed in the document
	down      bool                               // it answers 503 to requests for tokens
	moved     bool                               // it redirects requests for tokens
	refusal   string                             // it answers 400 with this error to requests for tokens
	answers   http.HandlerFunc                   // answers requests for tokens in its place
	sign      func(claims map[string]any) string // signs ID tokens in its place
	asked     int                                // requests for tokens
	more      string                             // a part of each refresh token
	renewals  renewals
}

// renewals is what a provider gives out for later.
type renewals int

const (
	complete renewals = iota
	never
	withoutIDToken
)

func newProvider(t *testing.T) *provider {
	p := &provider{issuer: newIssuer(t), codes: map[string]url.Values{}, refresh: map[string]bool{}, lifetime: 600}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", p.publishDocument)
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		p.fetches.Add(1)
		fmt.Fprint(w, p.keySet())
	})
	mux.HandleFunc("/authorize", p.authorize)
	mux.HandleFunc("/token", p.token)
	p.Server = httptest.NewServer(mux)
	t.Cleanup(p.Close)
	return p
}

func (p *provider) publishDocument(w http.ResponseWriter, _ *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	document := map[string]any{
		"issuer": p.URL, "authorization_endpoint": p.URL + "/authorize", "token_endpoint": p.URL + "/token", "jwks_uri": p.URL + "/keys",
		"end_session_endpoint": p.URL + "/logout",
	}
	maps.Copy(document, p.document)
	_ = json.NewEncoder(w).Encode(document)
}

func (p *provider) authorize(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	query := r.URL.Query()
	if query.Get("client_id") != "shop" || query.Get("code_challenge_method") != "S256" || query.Get("response_type") != "code" || query.Get("nonce") == "" {
		http.Error(w, "bad request", http.StatusBadRequest)
		return
	}
	p.issued++
	code := fmt.Sprintf("code-%d", p.issued)
	p.codes[code] = query
	back := url.Values{"code": {code}, "state": {query.Get("state")}}
	http.Redirect(w, r, query.Get("redirect_uri")+"?"+back.Encode(), http.StatusFound)
}

func (p *provider) token(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked++; p.answers != nil {
		answers := p.answers
		p.mu.Unlock()
		answers(w, r)
		p.mu.Lock()
		return
	}
	refuse := func(status int, code string) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		fmt.Fprintf(w, `{"error":%q,"error_description":"canary"}`, code)
	}
	if p.moved {
		http.Redirect(w, r, p.URL+"/elsewhere", http.StatusTemporaryRedirect)
		return
	}
	if p.refusal != "" {
		refuse(http.StatusBadRequest, p.refusal)
		return
	}
	if p.down {
		http.Error(w, "canary", http.StatusServiceUnavailable)
		return
	}
	user, password, _ := r.BasicAuth()
	if password, _ = url.QueryUnescape(password); user != "shop" || password != clientSecret {
		refuse(http.StatusUnauthorized, "invalid_client")
		return
	}
	nonce := any(nil)
	switch r.PostFormValue("grant_type") {
	case "authorization_code":
		query, found := p.codes[r.PostFormValue("code")]
		delete(p.codes, r.PostFormValue("code"))
		challenge := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		if !found || query.Get("redirect_uri") != r.PostFormValue("redirect_uri") || base64.RawURLEncoding.EncodeToString(challenge[:]) != query.Get("code_challenge") {
			refuse(http.StatusBadRequest, "invalid_grant")
			return
		}
		nonce = query.Get("nonce")
	case "refresh_token":
		p.refreshes++
		if !p.refresh[r.PostFormValue("refresh_token")] {
			refuse(http.StatusBadRequest, "invalid_grant")
			return
		}
		delete(p.refresh, r.PostFormValue("refresh_token"))
	}
	p.issued++
	refresh := fmt.Sprintf("refresh-%d%s", p.issued, p.more)
	p.refresh[refresh] = true
	claims := map[string]any{"iss": p.URL, "aud": "shop", "email": "alice@shop.test", "exp": time.Now().Add(time.Hour).Unix()}
	if nonce != nil {
		claims["nonce"] = nonce
	}
	maps.Copy(claims, p.claims)
	sign := p.issuer.token
	if p.sign != nil {
		sign = p.sign
	}
	w.Header().Set("Content-Type", "application/json")
	answer := map[string]any{
		"access_token": fmt.Sprintf("access-%d", p.issued), "token_type": "Bearer", "expires_in": p.lifetime, "refresh_token": refresh,
		"id_token": sign(claims),
	}
	if p.renewals == never {
		delete(answer, "refresh_token")
	}
	if p.renewals == withoutIDToken && nonce == nil {
		delete(answer, "id_token")
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// set changes what the provider does.
func (p *provider) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
}

// secrets hold the client secret.
func (p *provider) secrets(lines ...string) map[string]map[string][]byte {
	if lines == nil {
		lines = []string{clientSecret}
	}
	return map[string]map[string][]byte{"login": {"issuer": []byte(p.URL), "secret": []byte(strings.Join(lines, "\n"))}}
}
