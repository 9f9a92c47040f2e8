package model_test

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/testing/authority"
)

func TestNewBackendTLS(t *testing.T) {
	ca := authority.New(t, "ca")
	certificate, key := ca.IssuePEM(t, x509.Certificate{})
	_, otherKey := ca.IssuePEM(t, x509.Certificate{})
	for name, tc := range map[string]struct {
		in    model.BackendTLSInput
		wrong string
	}{
		"an authority":                          {in: model.BackendTLSInput{Roots: ca.PEM()}},
		"two authorities and text":              {in: model.BackendTLSInput{Roots: []byte("ours:\n" + string(ca.PEM()) + "theirs:\n" + string(authority.New(t, "b").PEM()))}},
		"the system":                            {in: model.BackendTLSInput{System: true}},
		"a certificate to show":                 {in: model.BackendTLSInput{System: true, Certificate: certificate, PrivateKey: key}},
		"nothing":                               {wrong: "there is no certificate in PEM"},
		"no PEM":                                {in: model.BackendTLSInput{Roots: []byte("x")}, wrong: "there is no certificate in PEM"},
		"a key":                                 {in: model.BackendTLSInput{Roots: key}, wrong: `there is a block "PRIVATE KEY" beside certificates`},
		"a key beside an authority":             {in: model.BackendTLSInput{Roots: append(ca.PEM(), key...)}, wrong: `there is a block "PRIVATE KEY" beside certificates`},
		"a damaged certificate":                 {in: model.BackendTLSInput{Roots: []byte("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")}, wrong: "a certificate cannot be read"},
		"a certificate that is no PEM any more": {in: model.BackendTLSInput{Roots: append(ca.PEM(), "-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"...)}, wrong: "a block of PEM cannot be read"},
		"a certificate that is cut off":         {in: model.BackendTLSInput{Roots: append(ca.PEM(), ca.PEM()[:100]...)}, wrong: "a block of PEM cannot be read"},
		"another key":                           {in: model.BackendTLSInput{System: true, Certificate: certificate, PrivateKey: otherKey}, wrong: "the certificate to show and its key"},
		"a certificate without a key":           {in: model.BackendTLSInput{System: true, Certificate: certificate}, wrong: "the certificate to show and its key"},
		"a key without a certificate":           {in: model.BackendTLSInput{System: true, PrivateKey: key}, wrong: "the certificate to show and its key"},
	} {
		t.Run(name, func(t *testing.T) {
			made, err := model.NewBackendTLS(tc.in)
			switch {
			case tc.wrong == "" && err != nil:
				t.Error(err)
			case tc.wrong != "" && (err == nil || !strings.Contains(err.Error(), tc.wrong)):
				t.Errorf("got %v, want %q", err, tc.wrong)
			case err == nil && (made.Roots == nil) != tc.in.System:
				t.Errorf("roots: %v", made.Roots)
			case err == nil && (made.Certificate == nil) != (len(tc.in.Certificate) == 0):
				t.Errorf("certificate: %v", made.Certificate)
			}
		})
	}
}

func TestTheIdentityOfTLSIsThatOfItsInput(t *testing.T) {
	a, b := authority.New(t, "a"), authority.New(t, "b")
	certificate, key := a.IssuePEM(t, x509.Certificate{})
	other, otherKey := a.IssuePEM(t, x509.Certificate{})
	inputs := []model.BackendTLSInput{
		{Roots: a.PEM()},
		{Roots: b.PEM()},
		{System: true},
		{Roots: a.PEM(), ServerName: "x"},
		{Roots: a.PEM(), Names: []string{"x"}},
		{Roots: a.PEM(), URIs: []string{"x"}},
		{Roots: a.PEM(), Names: []string{"x", "y"}},
		{Roots: a.PEM(), Names: []string{`x","y`}},
		{Roots: a.PEM(), Certificate: certificate, PrivateKey: key},
		{Roots: a.PEM(), Certificate: other, PrivateKey: otherKey},
	}
	seen := map[string]int{}
	for i, in := range inputs {
		first, err := model.NewBackendTLS(in)
		again, errAgain := model.NewBackendTLS(in)
		if err != nil || errAgain != nil {
			t.Fatal(err, errAgain)
		}
		if first.Identity != again.Identity {
			t.Errorf("%d: the identity changes", i)
		}
		if of, taken := seen[first.Identity]; taken {
			t.Errorf("%d has the identity of %d", i, of)
		}
		seen[first.Identity] = i
	}
}

// FuzzParseRoots: a bundle is either refused, or each certificate that it has begun is trusted. So who damages a bundle is told.
func FuzzParseRoots(f *testing.F) {
	ca := authority.New(f, "ca")
	f.Add([]byte(nil), []byte(nil))
	f.Add([]byte("ours:\n"), []byte("\ntheirs:\n"))
	f.Add([]byte("-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n"), []byte("-----BEGIN CERTIFICATE-----"))
	f.Fuzz(func(t *testing.T, before, after []byte) {
		bundle := slices.Concat(before, []byte("\n"), ca.PEM(), after)
		if _, err := model.ParseRoots(bundle); err != nil {
			return
		}
		begun, trusted := bytes.Count(append([]byte("\n"), bundle...), []byte("\n-----BEGIN")), 0
		for rest := bundle; ; trusted++ {
			var block *pem.Block
			if block, rest = pem.Decode(rest); block == nil {
				break
			}
		}
		if begun != trusted {
			t.Errorf("%d blocks were begun, and %d are trusted", begun, trusted)
		}
	})
}
