package gateway

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"golang.org/x/crypto/bcrypt"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/internal/testing/lockedbuffer"
)

// heard collects everything that the gateway outputs.
type heard struct{ lockedbuffer.Buffer }

// safe holds secrets of every kind that a gateway uses.
type safe struct {
	secrets  map[string]map[string]string
	token    string
	canaries []string // must not appear in any output
}

func newSafe(t *testing.T) *safe {
	t.Helper()
	check := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	check(err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: []string{"a"}, NotAfter: time.Now().Add(time.Hour)}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	check(err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	check(err)
	tlsKey := string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}))
	sum := sha256.Sum256([]byte("canary-key"))
	password, err := bcrypt.GenerateFromPassword([]byte("canary-password"), bcrypt.MinCost)
	check(err)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, nil)
	check(err)
	signed, err := signer.Sign([]byte(fmt.Sprintf(`{"iss":"i","sub":"dave","exp":%d,"private":"canary-claim"}`, time.Now().Add(time.Hour).Unix())))
	check(err)
	token, err := signed.CompactSerialize()
	check(err)
	keySet, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key}, {Key: []byte("canary-symmetric-secret-of-32-bytes")}}})
	check(err)
	lines := strings.Split(tlsKey, "\n")
	return &safe{
		secrets: map[string]map[string]string{
			"keys":  {"alice": "sha256:" + hex.EncodeToString(sum[:])},
			"users": {"carol": string(password)},
			"jwks":  {"keys.json": string(keySet)},
			"tls":   {"tls.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate})), "tls.key": tlsKey},
			"bad":   {"bob": "canary-bad"},
		},
		token: token,
		canaries: []string{
			"canary", hex.EncodeToString(sum[:]), string(password), token[strings.LastIndex(token, "."):], lines[1], lines[2],
			"Y2FuYXJ5", // canary in base64
		},
	}
}

const canaryRoutes = `
- {name: key, path: /key, backendService: {name: app, port: 80}, auth: {apiKey: {secretRef: {name: keys}, header: X-Key, queryParam: key}}}
- {name: basic, path: /basic, backendService: {name: app, port: 80}, auth: {basic: {secretRef: {name: users}}}}
- {name: token, path: /token, backendService: {name: app, port: 80}, auth: {jwt: {issuer: i, jwksSecretRef: {name: jwks, key: keys.json}}}}
- {name: away, path: /away, backendService: {name: gone, port: 80}, auth: {apiKey: {secretRef: {name: keys}, header: X-Key, queryParam: key}}}
- {name: moved, path: /moved, redirect: {host: b.example.com}, auth: {apiKey: {secretRef: {name: keys}, header: X-Key, queryParam: key}}}
- {name: bad-key, path: /bad, directResponse: {statusCode: 200}, auth: {apiKey: {secretRef: {name: bad}}}}
- {name: bad-basic, path: /bad, directResponse: {statusCode: 200}, auth: {basic: {secretRef: {name: bad}}}}
- {name: bad-token, path: /bad, directResponse: {statusCode: 200}, auth: {jwt: {issuer: i, jwksSecretRef: {name: bad, key: bob}}}}
`

// write writes a configuration with the secrets.
func (s *safe) write(t *testing.T, path, backend string) {
	t.Helper()
	secrets, err := yaml.Marshal(map[string]any{"secrets": s.secrets})
	if err != nil {
		t.Fatal(err)
	}
	text := "apiVersion: slipway.dev/v1alpha1\nkind: APIGateway\nmetadata: {name: edge}\nspec:\n  tls: [{secretRef: {name: tls}}]\n  routes:" +
		strings.ReplaceAll(canaryRoutes, "\n", "\n    ") + "\nbackends:\n  app:80: {addresses: [\"" + backend + "\"]}\n  gone:80: {addresses: [\"127.0.0.1:1\"]}\n" + string(secrets) + "...\n"
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// ask sends a request and records the whole answer.
func (h *heard) ask(t *testing.T, address string, fields ...string) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, address, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(fields); i += 2 {
		request.Header.Set(fields[i], fields[i+1])
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(response.Body)
	_, _ = fmt.Fprintln(h, response.Status, response.Header, string(body))
}

// No log, metric, answer of the admin port, or header or body of a response holds a secret,
// whoever sends the request and however malformed it is.
func TestNoSecretIsHeardAnywhere(t *testing.T) {
	backend := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") }))
	defer backend.Close()
	safe, said := newSafe(t), &heard{}
	path := filepath.Join(t.TempDir(), "gateway.yaml")
	safe.write(t, path, backend.Listener.Addr().String())
	addresses := make(chan [3]net.Addr, 1)
	ctx, cancel := context.WithCancel(t.Context())
	var wait sync.WaitGroup
	defer wait.Wait()
	defer cancel()
	wait.Go(func() {
		if err := Run(ctx, Options{
			ConfigFile: path, HTTP: "127.0.0.1:0", HTTPS: "127.0.0.1:0", Admin: "127.0.0.1:0", DrainTimeout: 5 * time.Second, AccessLog: said,
			Log:       slog.New(slog.NewTextHandler(said, &slog.HandlerOptions{Level: slog.LevelDebug})),
			Listening: func(http, https, admin net.Addr) { addresses <- [3]net.Addr{http, https, admin} },
		}); err != nil {
			t.Error(err)
		}
	})
	at := <-addresses
	eventually(t, "the gateway is ready", func() bool { code, _ := fetch(at[2], "/readyz"); return code == http.StatusOK })

	carol := func(password string) string {
		r := &http.Request{Header: http.Header{}}
		r.SetBasicAuth("carol", password)
		return r.Header.Get("Authorization")
	}
	for _, base := range []string{"http://" + at[0].String(), "https://" + at[1].String()} {
		for _, route := range []string{"/key", "/away", "/moved", "/basic", "/token", "/bad", "/none"} {
			for _, key := range []string{"canary-key", "canary-wrong"} {
				said.ask(t, base+route, "X-Key", key)
				said.ask(t, base+route+"?key="+key, "Cookie", "canary-cookie")
				said.ask(t, base+route+"?a;%zz&key="+key, "Proxy-Authorization", "canary")
			}
			for _, proof := range []string{carol("canary-password"), carol("canary-wrong"), "Bearer " + safe.token, "Bearer " + safe.token + "x", "Bearer canary", "canary"} {
				said.ask(t, base+route, "Authorization", proof)
			}
		}
	}
	for _, admin := range []string{"/metrics", "/readyz", "/revision", "/debug/pprof/", "/config", "/canar%79"} {
		said.ask(t, "http://"+at[2].String()+admin, "Authorization", "Bearer "+safe.token)
	}
	for _, broken := range []string{"secrets: canary\n", "secrets: {a: [canary]}\n", "secrets: {a: {b: \"canary\n", "\tcanary", "spec: {tls: [{secretRef: {name: t}}]}\nsecrets: {t: {tls.crt: canary, tls.key: canary}}\n"} {
		before := strings.Count(said.String(), "is not applied")
		text := "apiVersion: slipway.dev/v1alpha1\nkind: APIGateway\nmetadata: {name: edge}\n" + broken + "\n...\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the broken file is refused", func() bool { return strings.Count(said.String(), "is not applied") > before })
	}
	cancel()
	wait.Wait()
	wantHeard(t, said.String(), safe.canaries)
}

// wantHeard checks that expected texts are in the output, because a test on empty output
// would prove nothing. It also checks that no secret is.
func wantHeard(t *testing.T, said string, canaries []string) {
	t.Helper()
	for _, expected := range []string{`"identity":"alice"`, `"identity":"carol"`, `"identity":"dave"`, "401 Unauthorized", "InvalidSecret", "slipway_gateway_requests_total", "Bad Gateway", "https://b.example.com", "tls.key"} {
		if !strings.Contains(said, expected) {
			t.Errorf("%q was not said", expected)
		}
	}
	for line := range strings.SplitSeq(said, "\n") {
		for _, canary := range canaries {
			if strings.Contains(line, canary) {
				t.Errorf("%q is heard in: %s", canary, line)
			}
		}
	}
}
