package gateway

import (
	"crypto/x509"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-dev/slipway/internal/testing/authority"
)

func TestProblemsOfCertificatesTellNothingButTheLengthOfAKey(t *testing.T) {
	ca := authority.New(t, "ca")
	crt, key := ca.IssuePEM(t, x509.Certificate{})
	_, otherKey := ca.IssuePEM(t, x509.Certificate{})
	longest, longestKey := ca.IssueRSA(t, 8192)
	long, longKey := ca.IssueRSA(t, 16384)
	for name, tc := range map[string]struct {
		crt, key []byte
		want     string
	}{
		"a certificate":                {crt, key, ""},
		"RSA of 8192 bits":             {longest, longestKey, ""},
		"no certificate":               {nil, key, "it has no tls.crt"},
		"no key":                       {crt, nil, "it has no tls.key"},
		"another key":                  {crt, otherKey, "tls.crt and tls.key are no certificate with its key"},
		"a certificate that is no PEM": {[]byte("secret"), key, "tls.crt and tls.key are no certificate with its key"},
		"RSA of 16384 bits":            {long, longKey, "tls.crt and tls.key: the certificate has an RSA key of 16384 bits, and those of more than 8192 bits are not used"},
		"a private key of 16384 bits":  {crt, longKey, "tls.crt and tls.key: the private key is an RSA key of 16384 bits, and those of more than 8192 bits are not used"},
	} {
		t.Run(name, func(t *testing.T) {
			got := problemOf(&corev1.Secret{Data: map[string][]byte{corev1.TLSCertKey: tc.crt, corev1.TLSPrivateKeyKey: tc.key}})
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("problem (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLongKeysOfAuthoritiesAreTold(t *testing.T) {
	ca := authority.New(t, "ca")
	long, _ := ca.IssueRSA(t, 16384)
	got := problemOfBundle(&corev1.ConfigMap{Data: map[string]string{bundleKey: string(ca.PEM()) + string(long)}})
	if want := "ca.crt: certificate 2 has an RSA key of 16384 bits"; !strings.HasPrefix(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
