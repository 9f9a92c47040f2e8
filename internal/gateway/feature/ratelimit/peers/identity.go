package peers

import (
	"bytes"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"time"

	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/quota"
)

// endOfTime is the last time that a certificate can have.
var endOfTime = time.Date(9999, 12, 31, 0, 0, 0, 0, time.UTC)

// protocol is negotiated by TLS, so that a later version can be told from this one.
const protocol = "slipway-quota/1"

var (
	errShort    = fmt.Errorf("it has less than %d bytes", quota.SecretBytes)
	errStranger = errors.New("the other side does not have the secret of this gateway")
)

// Identity is what the replicas of one gateway have in common. All of them have the same key pair.
type Identity struct {
	certificate tls.Certificate
	public      ed25519.PublicKey
	keys        []byte
}

// NewIdentity derives an identity from the secret. scope names the gateway: the same secret in another scope is another
// identity, so a copied Secret connects nothing.
func NewIdentity(secret []byte, scope string) (*Identity, error) {
	if len(secret) < quota.SecretBytes {
		return nil, errShort
	}
	seed, err := hkdf.Key(sha256.New, secret, nil, "slipway quota v1 identity "+scope, ed25519.SeedSize)
	if err != nil {
		return nil, fmt.Errorf("derive the key pair: %w", err)
	}
	keys, err := hkdf.Key(sha256.New, secret, nil, "slipway quota v1 keys "+scope, sha256.Size)
	if err != nil {
		return nil, fmt.Errorf("derive the key of hashes: %w", err)
	}
	private := ed25519.NewKeyFromSeed(seed)
	public := private.Public().(ed25519.PublicKey)
	// The certificate only carries the public key. Nobody checks its times, so no clock has to be right.
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Unix(0, 0), NotAfter: endOfTime}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, public, private)
	if err != nil {
		return nil, fmt.Errorf("make the certificate: %w", err)
	}
	return &Identity{certificate: tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: private}, public: public, keys: keys}, nil
}

// Keys is the secret for quota.Subject.Key.
func (i *Identity) Keys() []byte { return i.keys }

// Same reports whether two identities are equal.
func (i *Identity) Same(other *Identity) bool {
	return i != nil && other != nil && bytes.Equal(i.public, other.public)
}

// config is the same for both sides. Each shows its certificate, proves with the handshake that it has the private key, and
// accepts only the same public key. A resumed session would prove nothing anew, so there are none.
func (i *Identity) config() *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		NextProtos:             []string{protocol},
		Certificates:           []tls.Certificate{i.certificate},
		ClientAuth:             tls.RequireAnyClientCert,
		InsecureSkipVerify:     true, // VerifyConnection compares the public key
		SessionTicketsDisabled: true,
		VerifyConnection:       i.verify,
	}
}

func (i *Identity) verify(state tls.ConnectionState) error {
	if len(state.PeerCertificates) != 1 || state.NegotiatedProtocol != protocol || state.DidResume {
		return errStranger
	}
	public, ok := state.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
	if !ok || !public.Equal(i.public) {
		return errStranger
	}
	return nil
}
