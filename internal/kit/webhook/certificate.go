package webhook

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

const (
	// lifetime of a certificate.
	lifetime = 30 * 24 * time.Hour
	// renewBefore its end a certificate gets a successor.
	renewBefore = 10 * 24 * time.Hour
	// trustedFor is how long a successor is trusted before it is used: every API server has
	// heard of it by then.
	trustedFor = time.Minute
	// skew is how far the API server's clock may be behind.
	skew = time.Hour
)

// Certificates are those of one operator.
type Certificates struct {
	host  string
	clock clock.PassiveClock

	mutex sync.Mutex
	// current is in use, next is going to be; nil most of the time.
	current, next *certificate
}

type certificate struct {
	tls.Certificate
	end time.Time
	pem []byte
	// trusted is since when it is known that it is; zero: it is not.
	trusted time.Time
}

// NewCertificates makes the first certificate, for a DNS name or an IP address.
func NewCertificates(host string, now clock.PassiveClock) (*Certificates, error) {
	c := &Certificates{host: host, clock: now}
	var err error
	c.current, err = c.generate()
	return c, err
}

// Get returns the certificate to use. It is what crypto/tls asks.
func (c *Certificates) Get(*tls.ClientHelloInfo) (*tls.Certificate, error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return &c.current.Certificate, nil
}

// renew makes a successor when it is time, and uses it once it has been trusted for long
// enough; isTrusted tells of a certificate, in PEM, whether it is. It returns the
// certificates to trust, and when to call again, beside whenever one becomes trusted.
func (c *Certificates) renew(isTrusted func(pem []byte) bool) (trusted [][]byte, again time.Duration, err error) {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	now := c.clock.Now()
	if c.next == nil && !now.Before(c.current.end.Add(-renewBefore)) {
		if c.next, err = c.generate(); err != nil {
			return nil, 0, err
		}
	}
	if c.next == nil {
		return [][]byte{c.current.pem}, c.current.end.Add(-renewBefore).Sub(now), nil
	}
	switch {
	case !isTrusted(c.next.pem):
		c.next.trusted = time.Time{}
		return [][]byte{c.current.pem, c.next.pem}, trustedFor, nil
	case c.next.trusted.IsZero():
		c.next.trusted = now
	}
	if left := trustedFor - now.Sub(c.next.trusted); left > 0 {
		return [][]byte{c.current.pem, c.next.pem}, left, nil
	}
	c.current, c.next = c.next, nil
	return [][]byte{c.current.pem}, c.current.end.Add(-renewBefore).Sub(now), nil
}

// generate makes a certificate that is its own authority.
func (c *Certificates) generate() (*certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("make a key: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, fmt.Errorf("make a serial number: %w", err)
	}
	now := c.clock.Now()
	template := &x509.Certificate{
		SerialNumber: serial,
		// Of its own, so that it cannot be taken for another one's authority.
		Subject:               pkix.Name{CommonName: fmt.Sprintf("slipway-webhook-%x", serial)},
		NotBefore:             now.Add(-skew),
		NotAfter:              now.Add(lifetime),
		KeyUsage:              x509.KeyUsageDigitalSignature,
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true,
	}
	if ip := net.ParseIP(c.host); ip != nil {
		template.IPAddresses = []net.IP{ip}
	} else {
		template.DNSNames = []string{c.host}
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate: %w", err)
	}
	return &certificate{
		Certificate: tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key},
		end:         template.NotAfter,
		pem:         pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
	}, nil
}
