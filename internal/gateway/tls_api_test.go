//go:build apitest

package gateway

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/slipway-dev/slipway/internal/testing/environment"
)

// certificate is the content of a TLS Secret.
type certificate struct {
	serial string
	data   map[string][]byte
}

func newCertificate(t testing.TB, host string) certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: serial, DNSNames: []string{host}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	crt, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return certificate{serial.String(), map[string][]byte{
		corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: crt}),
		corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}}
}

// presents waits until the gateway presents a certificate for a host. An empty serial means
// none.
func (r *running) presents(host, serial string) {
	r.t.Helper()
	environment.Eventually(r.t, func() error {
		got := ""
		// The certificate is self-signed. Only its serial number matters here.
		if conn, err := tls.Dial("tcp", r.https.String(), &tls.Config{ServerName: host, InsecureSkipVerify: true}); err == nil {
			got = conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
			_ = conn.Close()
		}
		if got != serial {
			return fmt.Errorf("%s: got certificate %q, want %q", host, got, serial)
		}
		return nil
	})
}

func TestCertificatesAreRotatedAndABadOneTakesNoOtherDown(t *testing.T) {
	c := newCluster(t, "a", "b")
	a, b := newCertificate(t, "a.example.com"), newCertificate(t, "b.example.com")
	c.secret("a", a.data)
	g := c.spec(`
tls: [{secretRef: {name: a}}, {secretRef: {name: b}}]
routes: [{name: hello, directResponse: {statusCode: 200, body: hello}}]`)
	r := c.run()
	r.serves(g, `SecretNotFound: Secret "b" does not exist`)
	r.presents("a.example.com", a.serial)
	r.presents("b.example.com", "")
	c.secret("b", b.data)
	r.serves(g)
	r.presents("b.example.com", b.serial)

	next := newCertificate(t, "a.example.com")
	c.secret("a", next.data)
	r.presents("a.example.com", next.serial)
	r.presents("b.example.com", b.serial)

	c.secret("a", map[string][]byte{corev1.TLSCertKey: next.data[corev1.TLSCertKey], corev1.TLSPrivateKeyKey: b.data[corev1.TLSPrivateKeyKey]})
	r.serves(g, `InvalidCertificate: tls.crt and tls.key of Secret "a"`)
	r.presents("a.example.com", next.serial)
	c.delete(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "b"}})
	r.serves(g, `InvalidCertificate: tls.crt and tls.key of Secret "a"`, `SecretNotFound: Secret "b" does not exist`)
	r.presents("b.example.com", b.serial)
	g = c.spec(`tls: [{secretRef: {name: a}}]`)
	r.serves(g, `InvalidCertificate: tls.crt and tls.key of Secret "a"`)
	r.presents("a.example.com", next.serial)
	r.presents("b.example.com", "")
}

func TestNoValueOfASecretIsToldToAnybody(t *testing.T) {
	const canary = "CANARY"
	names := []string{"keys", "users", "jwks", "tls", "half"}
	c := newCluster(t, names...)
	pair := newCertificate(t, "a.example.com")
	bad := map[string][]byte{"alice": []byte(canary + "-1"), "keys.json": []byte(`{"` + canary + `-2": 1}`)}
	for _, name := range names[:3] {
		c.secret(name, bad)
	}
	c.secret("tls", map[string][]byte{corev1.TLSCertKey: []byte(canary + "-3"), corev1.TLSPrivateKeyKey: []byte(canary + "-4")})
	c.secret("half", map[string][]byte{corev1.TLSCertKey: pair.data[corev1.TLSCertKey], corev1.TLSPrivateKeyKey: []byte(canary + "-5")})
	g := c.spec(`
tls: [{secretRef: {name: tls}}, {secretRef: {name: half}}]
routes:
- {name: keys, path: /keys, directResponse: {statusCode: 200, body: in}, auth: {apiKey: {secretRef: {name: keys}}}}
- {name: users, path: /users, directResponse: {statusCode: 200}, auth: {basic: {secretRef: {name: users}}}}
- {name: jwt, path: /jwt, directResponse: {statusCode: 200}, auth: {jwt: {issuer: i, jwksSecretRef: {name: jwks, key: keys.json}}}}`)
	r := c.run()
	r.serves(g, "InvalidSecret: keys", "InvalidSecret: users", "InvalidSecret: jwks", "InvalidCertificate: tls", "InvalidCertificate: half")
	r.answers("/keys", "500", "X-Api-Key: "+canary)
	good := canary + "-the-key"
	c.secret("keys", map[string][]byte{"alice": hashOf(good)})
	r.answers("/keys", "in", "X-Api-Key: "+good)
	secret := string(hashOf(good))
	for _, path := range []string{"/revision", "/metrics", "/readyz", "/debug/pprof/", "/debug/vars"} {
		if _, body := fetch(r.admin, path); strings.Contains(body, canary) || strings.Contains(body, secret) {
			t.Errorf("%s tells a secret:\n%s", path, body)
		}
	}
	if text := r.log.String() + r.accessLog.String(); strings.Contains(text, canary) || strings.Contains(text, secret) || !strings.Contains(text, "InvalidSecret") {
		t.Errorf("the log tells a secret, or nothing:\n%s", text)
	}
}
