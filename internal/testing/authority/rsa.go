package authority

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"testing"
	"time"
)

// IssueRSA makes a certificate with an RSA key of so many bits, as a Secret of type
// kubernetes.io/tls has the two. The factors of the modulus are not prime, so that a long key
// costs nothing. No parser notices.
func (a *Authority) IssueRSA(t testing.TB, bits int) (certificate, key []byte) {
	t.Helper()
	one, e := big.NewInt(1), big.NewInt(65537)
	var p, q, d *big.Int
	for d == nil {
		p, q = oddNumber(t, bits/2), oddNumber(t, bits-bits/2)
		both := new(big.Int).Mul(new(big.Int).Sub(p, one), new(big.Int).Sub(q, one))
		if d = new(big.Int).ModInverse(e, both); new(big.Int).ModInverse(q, p) == nil {
			d = nil
		}
	}
	n := new(big.Int).Mul(p, q)
	template := x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"a.example.com"},
		IsCA: true, BasicConstraintsValid: true, // an authority, too
	}
	crt, err := x509.CreateCertificate(rand.Reader, &template, a.certificate, &rsa.PublicKey{N: n, E: int(e.Int64())}, a.key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := asn1.Marshal(struct {
		Version                   int
		N                         *big.Int
		E                         int
		D, P, Q, ModP, ModQ, QInv *big.Int
	}{
		0, n, int(e.Int64()), d, p, q, new(big.Int).Mod(d, new(big.Int).Sub(p, one)), new(big.Int).Mod(d, new(big.Int).Sub(q, one)),
		new(big.Int).ModInverse(q, p),
	})
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(
		&pem.Block{Type: "CERTIFICATE", Bytes: crt},
	), pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: private})
}

// oddNumber is a random one whose two highest bits are set, so that the product of two has as
// many bits as both.
func oddNumber(t testing.TB, bits int) *big.Int {
	t.Helper()
	number, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), uint(bits-2)))
	if err != nil {
		t.Fatal(err)
	}
	return number.SetBit(number, bits-1, 1).SetBit(number, bits-2, 1).SetBit(number, 0, 1)
}
