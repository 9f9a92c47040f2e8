package proxy

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"strings"
	"testing"
)

// A client is told why there is no connection: nobody has its name, or something is wrong here.
func TestAlertsOfRefusedHandshakes(t *testing.T) {
	_, certificates, server, address := startIdentified(t, nil)
	if err := certificates.SetListeners([]SecureListener{
		{Port: 8443, Hostname: "a.test", Certificates: []Certificate{{Certificate: *server.Issue(t, x509.Certificate{DNSNames: []string{"a.test"}})}}},
		{Port: 8443, Hostname: "lacking.test"},
	}); err != nil {
		t.Fatal(err)
	}
	for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		for name, want := range map[string]string{
			"other.test": "unrecognized name", "a.a.test": "unrecognized name", "lacking.test": "internal error",
			"": map[uint16]string{tls.VersionTLS12: "handshake failure", tls.VersionTLS13: "missing extension"}[version],
		} {
			conn := tls.Client(dialTCP(t, address), &tls.Config{ServerName: name, InsecureSkipVerify: true, MaxVersion: version})
			if err := conn.Handshake(); err == nil || err.Error() != "remote error: tls: "+want {
				t.Errorf("TLS %x, %q: got %v, want %s", version, name, err, want)
			}
		}
		conn := tls.Client(dialTCP(t, address), &tls.Config{ServerName: "a.test", InsecureSkipVerify: true, MaxVersion: version})
		if err := conn.Handshake(); err != nil {
			t.Error(err)
		}
	}
}

// misnamed is a connection of a client of TLS that changes the server name in its first message, to what crypto/tls does not send.
type misnamed struct {
	net.Conn

	from, to string
	written  bool
}

func (m *misnamed) Write(b []byte) (int, error) {
	if m.written {
		return m.Conn.Write(b)
	}
	m.written = true
	if bytes.Count(b, []byte(m.from)) != 1 || len(m.from) != len(m.to) {
		return 0, errors.New("the name is not there")
	}
	return m.Conn.Write(bytes.Replace(b, []byte(m.from), []byte(m.to), 1))
}

// Whatever a client writes for a name: it gets the certificate of that name, or an alert that is the same for all that nobody has.
// The names of neighbours differ from those of nobody in nothing else.
func TestNoServerNameShowsTheCertificateOfAnother(t *testing.T) {
	_, certificates, server, address := startIdentified(t, nil)
	of := func(name string) []Certificate {
		return []Certificate{{Certificate: *server.Issue(t, x509.Certificate{DNSNames: []string{name}})}}
	}
	if err := certificates.SetListeners([]SecureListener{
		{Port: 8443, Hostname: "shop.test", Certificates: of("shop.test")},
		{Port: 8443, Hostname: "*.wild.test", Certificates: of("*.wild.test")},
	}); err != nil {
		t.Fatal(err)
	}
	const nobody = "remote error: tls: unrecognized name"
	const broken = "remote error: tls: error decoding message"
	for name, want := range map[string]string{
		"shop.test": "shop.test", "SHOP.test": "shop.test", "sHoP.TeSt": "shop.test", "a.wild.test": "*.wild.test", "a.b.WILD.test": "*.wild.test",
		"sh0p.test": nobody, "shop.tes": nobody, "shop.testx": nobody, "xshop.test": nobody, "x.shop.test": nobody, "wild.test": nobody,
		".wild.test": "*.wild.test", "*.wild.test": "*.wild.test", "*.test": nobody, "shop.test:8443": nobody, " shop.test": nobody, "shop.test ": nobody, "shop.test\x00": nobody,
		"shop.test\x00.wild.test": "*.wild.test", "shop.test/": nobody, "\xff\xfe\xfd": nobody, "\xc5\xbfhop.test": nobody, "xn--shop.test": nobody, "shop\u3002test": nobody,
		"192.0.2.1": nobody, "127.0.0.1": nobody, "[::1]": nobody, "::1": nobody, "localhost": nobody, "shop.test,a": nobody, "\r\nshop.test": nobody,
		strings.Repeat("a.", 120) + "test": nobody, strings.Repeat("x", 255): nobody, strings.Repeat("x", 2000): nobody,
		"shop.test.": broken, "a.wild.test.": broken, "nobody.test.": broken,
	} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			from, shown := strings.Repeat("q", len(name)), ""
			conn := tls.Client(&misnamed{Conn: dialTCP(t, address), from: from, to: name}, &tls.Config{
				ServerName: from, InsecureSkipVerify: true, MaxVersion: version,
				VerifyPeerCertificate: func(raw [][]byte, _ [][]*x509.Certificate) error {
					leaf, err := x509.ParseCertificate(raw[0])
					if err == nil {
						shown = leaf.DNSNames[0]
					}
					return err
				},
			})
			err := conn.Handshake()
			switch {
			case strings.HasPrefix(want, "remote"):
				if err == nil || err.Error() != want || shown != "" {
					t.Errorf("TLS %x, %.40q: got %q, %v, want %s", version, name, shown, err, want)
				}
			case version == tls.VersionTLS12: // the certificate comes as it is, though the changed message fails the handshake later
				if shown != want {
					t.Errorf("%.40q: got %q, %v, want %s", name, shown, err, want)
				}
			}
		}
	}
}
