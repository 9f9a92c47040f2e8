package model_test

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/testing/authority"
)

// inPKCS8 is a key of PKCS #1 in the other form that Secrets have.
func inPKCS8(t *testing.T, key []byte) []byte {
	t.Helper()
	block, _ := pem.Decode(key)
	parsed, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(parsed)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})
}

func TestLongKeysOfCertificatesAreNotUsed(t *testing.T) {
	ca := authority.New(t, "ca")
	curve, curveKey := ca.IssuePEM(t, x509.Certificate{})
	longest, longestKey := ca.IssueRSA(t, model.MaxRSABits)
	longer, longerKey := ca.IssueRSA(t, model.MaxRSABits+1)
	long, longKey := ca.IssueRSA(t, 16384)
	const more = ", and those of more than 8192 bits are not used"
	for name, tc := range map[string]struct {
		certificate, key []byte
		want             string // of a LongKeyError; empty: it is used
	}{
		"no RSA":                               {certificate: curve, key: curveKey},
		"RSA of 8192 bits":                     {certificate: longest, key: longestKey},
		"RSA of 8192 bits in PKCS #8":          {certificate: longest, key: inPKCS8(t, longestKey)},
		"one bit more":                         {longer, longerKey, "the certificate has an RSA key of 8193 bits" + more},
		"RSA of 16384 bits":                    {long, longKey, "the certificate has an RSA key of 16384 bits" + more},
		"behind a certificate that is used":    {certificate: slices.Concat(curve, long), key: curveKey},
		"a long private key alone":             {curve, longKey, "the private key is an RSA key of 16384 bits" + more},
		"a long private key alone, in PKCS #8": {curve, inPKCS8(t, longerKey), "the private key is an RSA key of 8193 bits" + more},
		"a long private key behind another block": {
			curve, slices.Concat([]byte("-----BEGIN EC PARAMETERS-----\nAAAA\n-----END EC PARAMETERS-----\n"), longKey),
			"the private key is an RSA key of 16384 bits" + more,
		},
		"a private key of another form": {
			curve, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: bytes.Repeat([]byte{0}, 8193)}),
			"the private key has 8193 bytes, and those of more than 8192 bytes are not used",
		},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := model.ParsePair(tc.certificate, tc.key)
			got, is := errors.AsType[model.LongKeyError](err)
			if is != (tc.want != "") || (err != nil) != is || (made.Leaf == nil) != is {
				t.Fatalf("got %v, leaf %v", err, made.Leaf != nil)
			}
			if diff := cmp.Diff(tc.want, string(got)); diff != "" {
				t.Errorf("error (-want +got):\n%s", diff)
			}
			_, err = model.NewBackendTLS(model.BackendTLSInput{System: true, Certificate: tc.certificate, PrivateKey: tc.key})
			if _, refused := errors.AsType[model.LongKeyError](err); refused != is {
				t.Errorf("shown to a backend: %v", err)
			}
		})
	}
}

func TestLongKeysOfAuthoritiesAreNotUsed(t *testing.T) {
	ca := authority.New(t, "ca")
	longest, _ := ca.IssueRSA(t, model.MaxRSABits)
	long, _ := ca.IssueRSA(t, 16384)
	for name, tc := range map[string]struct {
		bundle []byte
		want   string
	}{
		"RSA of 8192 bits":  {bundle: longest},
		"RSA of 16384 bits": {long, "certificate 1 has an RSA key of 16384 bits, and those of more than 8192 bits are not used"},
		"behind others":     {slices.Concat(ca.PEM(), longest, long), "certificate 3 has an RSA key of 16384 bits, and those of more than 8192 bits are not used"},
	} {
		t.Run(name, func(t *testing.T) {
			pool, err := model.ParseRoots(tc.bundle)
			got := ""
			if err != nil {
				got = err.Error()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || (pool == nil) != (tc.want != "") {
				t.Errorf("error (-want +got):\n%s", diff)
			}
		})
	}
}
