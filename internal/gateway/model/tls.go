package model

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
)

// BackendTLS is how the endpoints of a backend are reached with TLS. NewBackendTLS makes it.
type BackendTLS struct {
	// Identity is equal for two values that are equal in everything else, and differs for
	// others.
	Identity string
	// ServerName is sent to the endpoint. Without Names and URIs, its certificate must be for
	// this name.
	ServerName string
	// Roots are the authorities that the certificate must come from. Nil: those of the system.
	Roots *x509.CertPool
	// Names and URIs are alternative names, of which the certificate must have one. With any
	// of them, it need not be for ServerName.
	Names []string
	URIs  []string
	// Certificate is shown to endpoints that ask for one. Nil: none is.
	Certificate *tls.Certificate
}

// BackendTLSInput is what a BackendTLS is made from.
type BackendTLSInput struct {
	// ServerName, Names and URIs are those of BackendTLS.
	ServerName string
	Names      []string
	URIs       []string
	// Roots are certificates in PEM. At least one must be readable, unless System is set.
	Roots []byte
	// System trusts the authorities of the system instead of Roots.
	System bool
	// Certificate and PrivateKey are those to show, in PEM. Empty: none is shown.
	Certificate []byte
	PrivateKey  []byte
}

// NewBackendTLS parses what TLS needs. The error never contains a key.
func NewBackendTLS(in BackendTLSInput) (*BackendTLS, error) {
	made := &BackendTLS{ServerName: in.ServerName, Names: in.Names, URIs: in.URIs, Identity: identity(in)}
	if !in.System {
		var err error
		if made.Roots, err = ParseRoots(in.Roots); err != nil {
			return nil, err
		}
	}
	if len(in.Certificate) > 0 || len(in.PrivateKey) > 0 {
		certificate, err := ParsePair(in.Certificate, in.PrivateKey)
		if err != nil {
			return nil, fmt.Errorf("the certificate to show and its key: %w", err)
		}
		made.Certificate = &certificate
	}
	return made, nil
}

// beginsPEM is how a block in PEM begins, at the begin of a line (RFC 7468).
const beginsPEM = "\n-----BEGIN"

// ParseRoots reads the certificates of authorities, in PEM. One that cannot be read is an
// error: who wrote it trusted it. So is one with an RSA key of more than MaxRSABits, because
// package tls bounds only those that peers send.
func ParseRoots(bundle []byte) (*x509.CertPool, error) {
	pool, found := x509.NewCertPool(), 0
	for rest := bundle; ; found++ {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return nil, fmt.Errorf("there is a block %q beside certificates", block.Type)
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("a certificate cannot be read: %w", err)
		}
		if bits := rsaBits(certificate); bits > MaxRSABits {
			return nil, longRSA(fmt.Sprintf("certificate %d has", found+1), bits)
		}
		pool.AddCert(certificate)
	}
	// Package pem leaves out what is damaged.
	begun := bytes.Count(append([]byte("\n"), bundle...), []byte(beginsPEM))
	switch {
	case begun > found:
		return nil, errors.New("a block of PEM cannot be read")
	case found == 0:
		return nil, errors.New("there is no certificate in PEM")
	default:
		return pool, nil
	}
}

// identity is a digest of an input. Its fields cannot run into each other.
func identity(in BackendTLSInput) string {
	text, err := json.Marshal(in)
	if err != nil {
		panic("texts and bytes cannot be written as JSON: " + err.Error())
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
