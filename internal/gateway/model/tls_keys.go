package model

import (
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"encoding/pem"
	"fmt"
	"math/big"
	"strings"
)

// MaxRSABits is how long an RSA key may be. Package tls lets peers have no longer one either.
// A handshake costs the cube of the length, so one with a longer key could take a core for
// minutes.
const MaxRSABits = 8192

// maxKeyBytes is how long a private key may be, however it is written. One of RSA with
// MaxRSABits takes less than 5 KiB.
const maxKeyBytes = 8 << 10

// LongKeyError tells of a key that is not used because of its length. It says nothing else of
// the key.
type LongKeyError string

// Error implements error.
func (e LongKeyError) Error() string { return string(e) }

func longRSA(what string, bits int) LongKeyError {
	return LongKeyError(fmt.Sprintf("%s an RSA key of %d bits, and those of more than %d bits are not used", what, bits, MaxRSABits))
}

// ParsePair reads a certificate and its key, in PEM, as tls.X509KeyPair does. A key that is too
// long is a LongKeyError, and is told before anything is computed with it. The other
// certificates of a chain are not looked at: only peers compute with them.
func ParsePair(certificate, key []byte) (tls.Certificate, error) {
	if block := firstBlock(certificate, func(kind string) bool { return kind == "CERTIFICATE" }); block != nil {
		if leaf, err := x509.ParseCertificate(block.Bytes); err == nil {
			if bits := rsaBits(leaf); bits > MaxRSABits {
				return tls.Certificate{}, longRSA("the certificate has", bits)
			}
		}
	}
	block := firstBlock(key, func(kind string) bool { return kind == "PRIVATE KEY" || strings.HasSuffix(kind, " PRIVATE KEY") })
	if block != nil {
		if bits := modulusBits(block.Bytes); bits > MaxRSABits {
			return tls.Certificate{}, longRSA("the private key is", bits)
		}
		if size := len(block.Bytes); size > maxKeyBytes {
			return tls.Certificate{}, LongKeyError(fmt.Sprintf(
				"the private key has %d bytes, and those of more than %d bytes are not used", size, maxKeyBytes))
		}
	}
	return tls.X509KeyPair(certificate, key)
}

// firstBlock returns the first block of PEM of a kind, or nil.
func firstBlock(text []byte, is func(kind string) bool) *pem.Block {
	for {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil || is(block.Type) {
			return block
		}
	}
}

// rsaBits is the length of the key of a certificate, 0 where it is not RSA.
func rsaBits(certificate *x509.Certificate) int {
	if key, is := certificate.PublicKey.(*rsa.PublicKey); is {
		return key.N.BitLen()
	}
	return 0
}

// modulusBits is the length of a private key of RSA in PKCS #1 or PKCS #8, and 0 for others.
func modulusBits(der []byte) int {
	var wrapped struct {
		Version    int
		Algorithm  pkix.AlgorithmIdentifier
		PrivateKey []byte
	}
	if _, err := asn1.Unmarshal(der, &wrapped); err == nil {
		der = wrapped.PrivateKey
	}
	var key struct {
		Version int
		N       *big.Int
	}
	if _, err := asn1.Unmarshal(der, &key); err != nil {
		return 0
	}
	return key.N.BitLen()
}
