package watch

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

// newCertificate returns the content of a TLS Secret.
func newCertificate(t testing.TB, from, until time.Time) map[string][]byte {
	t.Helper()
	return newCertificateFor(t, from, until, "a.example.com")
}

// newCertificateFor returns the content of a TLS Secret whose certificate has the given
// names.
func newCertificateFor(t testing.TB, from, until time.Time, names ...string) map[string][]byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), DNSNames: names, NotBefore: from, NotAfter: until}
	crt, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{
		corev1.TLSCertKey:       pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: crt}),
		corev1.TLSPrivateKeyKey: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}),
	}
}

func TestACertificateThatDoesNotCoverAHostIsToldAndServed(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	told := func(hosts string) string {
		return `the certificate in Secret "tls" does not cover ` + hosts + ` (hosts beside it), for which it is served`
	}
	tests := map[string]struct {
		names []string
		hosts []slipwayv1alpha1.HostName
		want  string
	}{
		"its own names":             {[]string{"a.example.com"}, nil, ""},
		"the host":                  {[]string{"a.example.com"}, []slipwayv1alpha1.HostName{"a.example.com"}, ""},
		"in capitals":               {[]string{"A.example.com"}, []slipwayv1alpha1.HostName{"a.EXAMPLE.com"}, ""},
		"a wildcard":                {[]string{"*.example.com"}, []slipwayv1alpha1.HostName{"a.example.com", "*.example.com"}, ""},
		"no name at all":            {nil, nil, `the certificate in Secret "tls" covers no host: it has no DNS name (subjectAltName), and spec.tls.hosts names none`},
		"another host":              {[]string{"b.example.com"}, []slipwayv1alpha1.HostName{"a.example.com"}, told(`"a.example.com"`)},
		"one of two":                {[]string{"b.example.com"}, []slipwayv1alpha1.HostName{"a.example.com", "b.example.com"}, told(`"a.example.com"`)},
		"two labels below":          {[]string{"*.example.com"}, []slipwayv1alpha1.HostName{"a.b.example.com"}, told(`"a.b.example.com"`)},
		"a wildcard of one host":    {[]string{"a.example.com"}, []slipwayv1alpha1.HostName{"*.example.com"}, told(`"*.example.com"`)},
		"more hosts than one reads": {[]string{"x.org"}, []slipwayv1alpha1.HostName{"a.org", "b.org", "c.org", "d.org", "e.org"}, told(`"a.org", "b.org", "c.org" and 2 more`)},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			target := &target{tls: []slipwayv1alpha1.GatewayTLS{{SecretRef: slipwayv1alpha1.LocalReference{Name: "tls"}, Hosts: tc.hosts}}}
			in := &apigateway.Input{Secrets: map[string]map[string][]byte{"tls": newCertificateFor(t, now.Add(-time.Hour), now.Add(time.Hour), tc.names...)}}
			certificates, _, problems, _ := (&keyring{}).read(target, in, now)
			if len(certificates) != 1 {
				t.Errorf("%d certificates are served, want it", len(certificates))
			}
			var want []document.Problem
			if tc.want != "" {
				want = []document.Problem{{Route: -1, Name: "tls", Field: "spec.tls[0].secretRef", Reason: slipwayv1alpha1.ReasonCertificateMismatch, Message: tc.want}}
			}
			if diff := cmp.Diff(want, problems); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestACertificateThatMustNotBeReadIsNotKept(t *testing.T) {
	now := time.Unix(1_000_000, 0)
	tls := func(names ...string) *target {
		t := &target{}
		for _, name := range names {
			t.tls = append(t.tls, slipwayv1alpha1.GatewayTLS{SecretRef: slipwayv1alpha1.LocalReference{Name: name}})
		}
		return t
	}
	content := map[string]map[string][]byte{"tls": newCertificate(t, now.Add(-time.Hour), now.Add(time.Hour))}
	none := map[string]map[string][]byte{}
	for name, tc := range map[string]struct {
		then *target
		in   apigateway.Input
		want int
	}{
		"a deleted Secret, soon":     {tls("tls"), apigateway.Input{Secrets: none}, 1},
		"a closed Secret":            {tls("tls"), apigateway.Input{Secrets: none, Unreadable: map[string]bool{"tls": true}}, 0},
		"a Secret that nobody names": {tls(), apigateway.Input{Secrets: content}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			k := &keyring{}
			if certificates, _, _, _ := k.read(tls("tls"), &apigateway.Input{Secrets: content}, now); len(certificates) != 1 {
				t.Fatalf("%d certificates at first", len(certificates))
			}
			if certificates, _, _, _ := k.read(tc.then, &tc.in, now); len(certificates) != tc.want {
				t.Errorf("%d certificates, want %d", len(certificates), tc.want)
			}
			certificates, _, _, _ := k.read(tls("tls"), &apigateway.Input{Secrets: none}, now)
			if len(certificates) != tc.want {
				t.Errorf("%d certificates when it is named again, want %d", len(certificates), tc.want)
			}
		})
	}
}
