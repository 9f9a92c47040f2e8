package seal

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// keys writes a private and a public key.
func keys(t *testing.T, private, public any) (privateFile, publicFile string) {
	t.Helper()
	folder := t.TempDir()
	write := func(name, kind string, content []byte, err error) string {
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: content}), 0o600); err != nil {
			t.Fatal(err)
		}
		return file
	}
	content, err := x509.MarshalPKCS8PrivateKey(private)
	privateFile = write("release.key", "PRIVATE KEY", content, err)
	content, err = x509.MarshalPKIXPublicKey(public)
	return privateFile, write("release.pub", "PUBLIC KEY", content, err)
}

func newKeys(t *testing.T) (privateFile, publicFile string) {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return keys(t, private, public)
}

func write(t *testing.T, folder, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// release is a sealed folder.
func release(t *testing.T, keyFile string) string {
	t.Helper()
	folder := t.TempDir()
	write(t, folder, "install.yaml", "kind: List\n")
	write(t, folder, "tool-v1.2.3-linux-amd64.tar.gz", "a program\n")
	write(t, folder, "slipway-1.2.3.tgz", "a chart\n")
	if err := WriteSums(folder); err != nil {
		t.Fatal(err)
	}
	if err := Sign(folder, keyFile); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestVerify(t *testing.T) {
	private, public := newKeys(t)
	folder := release(t, private)
	for name, err := range map[string]error{
		"all":                 Verify(folder, public, "v1.2.3"),
		"without a key":       Verify(folder, "", "v1.2.3"),
		"of whatever version": Verify(folder, public, ""),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Every change is found.
func TestVerifyRefuses(t *testing.T) {
	private, public := newKeys(t)
	otherPrivate, otherPublic := newKeys(t)
	tests := map[string]struct {
		change func(t *testing.T, folder string)
		key    string
		want   string
	}{
		"a changed file": {func(t *testing.T, folder string) {
			write(t, folder, "install.yaml", "kind: Evil\n")
		}, public, "install.yaml has been changed"},
		"a changed file with its new checksum": {func(t *testing.T, folder string) {
			write(t, folder, "install.yaml", "kind: Evil\n")
			if err := WriteSums(folder); err != nil {
				t.Fatal(err)
			}
		}, public, "is not a signature"},
		"all of it signed by somebody else": {func(t *testing.T, folder string) {
			write(t, folder, "install.yaml", "kind: Evil\n")
			if err := WriteSums(folder); err != nil {
				t.Fatal(err)
			}
			if err := Sign(folder, otherPrivate); err != nil {
				t.Fatal(err)
			}
		}, public, "is not a signature"},
		"another key":       {func(*testing.T, string) {}, otherPublic, "is not a signature"},
		"no public key":     {func(*testing.T, string) {}, private, "is not one public key"},
		"one file more":     {func(t *testing.T, folder string) { write(t, folder, "evil-v1.2.3.sh", "") }, public, "evil-v1.2.3.sh is not in"},
		"one file less":     {remove("install.yaml"), public, "install.yaml is missing"},
		"without signature": {remove(SignatureFile), public, "not signed"},
		"half a signature": {func(t *testing.T, folder string) {
			content, err := os.ReadFile(filepath.Join(folder, SignatureFile))
			if err != nil {
				t.Fatal(err)
			}
			write(t, folder, SignatureFile, string(content[:32]))
		}, public, "is not a signature"},
		"no checksums": {remove(SumsFile), public, "no such file"},
		"a link": {func(t *testing.T, folder string) {
			if err := os.Symlink("/etc/passwd", filepath.Join(folder, "link-v1.2.3.txt")); err != nil {
				t.Fatal(err)
			}
		}, public, "not a plain file"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			folder := release(t, private)
			test.change(t, folder)
			if err := Verify(folder, test.key, "v1.2.3"); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("%v, want an error with %q", err, test.want)
			}
		})
	}
}

func remove(name string) func(t *testing.T, folder string) {
	return func(t *testing.T, folder string) {
		if err := os.Remove(filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
}

// An older release is signed as well, and is still not the one that was asked for.
func TestVerifyRefusesAnotherVersion(t *testing.T) {
	private, public := newKeys(t)
	folder := release(t, private)
	for _, version := range []string{"v1.2.4", "v1.2", "v11.2.3", "v2.3", "v1.2.3-rc.1"} {
		if err := Verify(folder, public, version); err == nil || !strings.Contains(err.Error(), "is not of "+version) {
			t.Errorf("%s: %v", version, err)
		}
	}
}

// A malformed line is refused, even when its file is signed.
func TestSumsThatAreRefused(t *testing.T) {
	sum := strings.Repeat("0", 64)
	for name, text := range map[string]string{
		"a path":          sum + "  ../install.yaml\n",
		"an absolute one": sum + "  /etc/passwd\n",
		"a hidden file":   sum + "  .profile\n",
		"a short sum":     sum[1:] + "  install.yaml\n",
		"a mark":          sum + " *install.yaml\n",
		"twice":           sum + "  a\n" + sum + "  a\n",
		"an empty line":   sum + "  a\n\n",
	} {
		if _, err := parseSums([]byte(text)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestSignRefuses(t *testing.T) {
	private, public := newKeys(t)
	folder := release(t, private)
	if err := Sign(folder, public); err == nil {
		t.Error("signed with a public key")
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, _ := keys(t, key, key.Public())
	if err := Sign(folder, other); err == nil || !strings.Contains(err.Error(), "not an ed25519 key") {
		t.Errorf("with another kind of key: %v", err)
	}
	if err := os.Chmod(private, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := Sign(folder, private); err == nil || !strings.Contains(err.Error(), "can be read by others") {
		t.Errorf("with a key that others can read: %v", err)
	}
}

func TestSumsRefuse(t *testing.T) {
	for _, name := range []string{"with space", "-rf", "a\nb"} {
		folder := t.TempDir()
		write(t, folder, name, "")
		if err := WriteSums(folder); err == nil {
			t.Errorf("%q: no error", name)
		}
	}
	if err := WriteSums(t.TempDir()); err == nil {
		t.Error("an empty folder: no error")
	}
}
