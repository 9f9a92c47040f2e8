package pki

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-dev/slipway/hack/localkube/cluster"
)

func TestIssue(t *testing.T) {
	now := time.Now()
	authority, err := NewAuthority("test", now)
	if err != nil {
		t.Fatal(err)
	}
	tests := map[string]struct {
		subject Subject
		usage   x509.ExtKeyUsage
		host    string
		valid   bool
	}{
		"client":            {subject: Subject{Name: "admin", Groups: []string{"a", "b"}}, usage: x509.ExtKeyUsageClientAuth, valid: true},
		"client as server":  {subject: Subject{Name: "admin"}, usage: x509.ExtKeyUsageServerAuth},
		"server by name":    {subject: Subject{Name: "api", Hosts: []string{"kubernetes", "10.0.0.1"}}, usage: x509.ExtKeyUsageServerAuth, host: "kubernetes", valid: true},
		"server by address": {subject: Subject{Name: "api", Hosts: []string{"kubernetes", "10.0.0.1"}}, usage: x509.ExtKeyUsageServerAuth, host: "10.0.0.1", valid: true},
		"other host":        {subject: Subject{Name: "api", Hosts: []string{"kubernetes"}}, usage: x509.ExtKeyUsageServerAuth, host: "elsewhere"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			pair, err := authority.Issue(test.subject, now)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tls.X509KeyPair(pair.Certificate, pair.Key); err != nil {
				t.Fatalf("certificate and key do not belong together: %v", err)
			}
			certificate, err := parseCertificate(pair.Certificate)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.subject.Groups, certificate.Subject.Organization); diff != "" {
				t.Errorf("groups (-want +got):\n%s", diff)
			}
			roots := x509.NewCertPool()
			roots.AddCert(authority.certificate)
			_, err = certificate.Verify(x509.VerifyOptions{Roots: roots, DNSName: test.host, KeyUsages: []x509.ExtKeyUsage{test.usage}, CurrentTime: now.AddDate(9, 0, 0)})
			if (err == nil) != test.valid {
				t.Errorf("verify = %v, want valid %t", err, test.valid)
			}
		})
	}
}

func TestEnsure(t *testing.T) {
	c := cluster.Cluster{Name: "slipway", Root: t.TempDir()}
	now := time.Now()
	ensure := func() map[string][]byte {
		t.Helper()
		if err := Ensure(c, now); err != nil {
			t.Fatal(err)
		}
		files, err := filepath.Glob(c.Path("pki", "*"))
		if err != nil {
			t.Fatal(err)
		}
		contents := map[string][]byte{}
		for _, file := range files {
			if contents[filepath.Base(file)], err = os.ReadFile(file); err != nil {
				t.Fatal(err)
			}
		}
		return contents
	}

	first := ensure()
	if diff := cmp.Diff(first, ensure()); diff != "" {
		t.Errorf("a second time changed files (-want +got):\n%s", diff)
	}

	if err := os.Remove(c.Path("pki", "scheduler.key")); err != nil {
		t.Fatal(err)
	}
	repaired := ensure()
	if bytes.Equal(first["scheduler.crt"], repaired["scheduler.crt"]) {
		t.Error("a certificate without its key was kept")
	}
	if !bytes.Equal(first["ca.crt"], repaired["ca.crt"]) {
		t.Error("a missing key of a client changed the authority")
	}

	if err := os.Remove(c.Path("pki", "ca.crt")); err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(first["admin.crt"], ensure()["admin.crt"]) {
		t.Error("a certificate of a lost authority was kept")
	}
}

func TestKeysAreSecret(t *testing.T) {
	c := cluster.Cluster{Name: "slipway", Root: t.TempDir()}
	if err := Ensure(c, time.Now()); err != nil {
		t.Fatal(err)
	}
	keys, err := filepath.Glob(c.Path("pki", "*.key"))
	if err != nil || len(keys) == 0 {
		t.Fatalf("no keys: %v", err)
	}
	for _, key := range keys {
		info, err := os.Stat(key)
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v, want 0600", key, info.Mode().Perm())
		}
	}
}
