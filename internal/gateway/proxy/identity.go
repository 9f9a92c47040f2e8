package proxy

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-dev/slipway/internal/gateway/fieldname"
)

// ClientHeaders are the fields, in canonical form, that tell backends which certificate a client has shown. Nobody else may set
// them. Empty: there is none.
type ClientHeaders struct{ Fingerprint, Name string }

// is reports whether a field is one of them, or may be taken for one.
func (h *ClientHeaders) is(name string) bool {
	name = fieldname.Folded(name)
	return name != "" && (name == fieldname.Folded(h.Fingerprint) || name == fieldname.Folded(h.Name))
}

// clientIdentity is who a client has proven to be, and by which check.
type clientIdentity struct {
	check             string // Identity of the ClientCheck
	fingerprint, name string
}

// identify puts the gateway's word in place of the client's. From here on, routes and whoever is asked see nothing else.
func (e *call) identify() {
	headers := &e.state.ClientHeaders
	if *headers == (ClientHeaders{}) {
		return
	}
	for name := range e.r.Header {
		if headers.is(name) {
			delete(e.r.Header, name)
		}
	}
	// Connection must not keep it from the backend either.
	e.Nominated = slices.DeleteFunc(e.Nominated, headers.is)
	shown := e.handler.certificates.Load().identityOf(clientConnOf(e.r))
	if shown == nil {
		return
	}
	if headers.Fingerprint != "" {
		e.r.Header[headers.Fingerprint] = []string{shown.fingerprint}
	}
	if headers.Name != "" && shown.name != "" {
		e.r.Header[headers.Name] = []string{shown.name}
	}
}

// identityOf is who the client of a connection has proven to be. Nil: nobody has, or it was checked by other rules than now.
func (c *Certificates) identityOf(conn *clientConn) *clientIdentity {
	set := c.set()
	if set == nil || conn == nil {
		return nil
	}
	shown := conn.identity.Load()
	if shown == nil {
		return nil
	}
	if check := set.checkOf(conn.port); check == nil || check.Identity != shown.check {
		return nil
	}
	return shown
}

// keepIdentity notes who a client has proven to be. It never refuses: what must be valid, TLS has checked before.
func (c *ClientCheck) keepIdentity(client *clientConn, state tls.ConnectionState) {
	if len(state.PeerCertificates) == 0 {
		return
	}
	leaf := state.PeerCertificates[0]
	if c.Optional {
		between := x509.NewCertPool()
		for _, certificate := range state.PeerCertificates[1:] {
			between.AddCert(certificate)
		}
		if _, err := leaf.Verify(x509.VerifyOptions{Roots: c.Roots, Intermediates: between, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}); err != nil {
			return
		}
	}
	sum := sha256.Sum256(leaf.Raw)
	client.identity.Store(&clientIdentity{check: c.Identity, fingerprint: hex.EncodeToString(sum[:]), name: alternativeNames(leaf)})
}

// maxAlternativeNames bounds the field with alternative names, in bytes. A certificate may have thousands.
const maxAlternativeNames = 4 << 10

// alternativeNames writes those of a certificate, each with its kind. No name can look like two, or like one of another kind: what
// separates names is escaped in them. Addresses and URIs are written in one form.
func alternativeNames(leaf *x509.Certificate) string {
	var names []string
	add := func(kind, name string) { names = append(names, kind+":"+escapeName(name)) }
	for _, uri := range leaf.URIs {
		add("URI", uri.String())
	}
	for _, name := range leaf.DNSNames {
		add("DNS", name)
	}
	for _, address := range leaf.EmailAddresses {
		add("email", address)
	}
	for _, address := range leaf.IPAddresses {
		add("IP", address.String())
	}
	text := strings.Join(names, ",")
	if len(text) > maxAlternativeNames {
		return "" // half of them could look like another certificate's
	}
	return text
}

// escapeName writes everything as %XX that could end a name or a field, and the % itself.
func escapeName(name string) string {
	out := &strings.Builder{}
	for i := range len(name) {
		if b := name[i]; b <= ' ' || b >= 0x7f || strings.IndexByte(`,;"\%`, b) >= 0 {
			fmt.Fprintf(out, "%%%02X", b)
		} else {
			out.WriteByte(b)
		}
	}
	return out.String()
}
