package proxy

import (
	"crypto/tls"
	"crypto/x509"
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
