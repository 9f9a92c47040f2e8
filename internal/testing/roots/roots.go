// Package roots checks that a program trusts public servers where the system has no certificates, as in its image.
package roots

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// variable holds the path of a file that does not exist, in the process that tells whom it trusts.
const variable = "SLIPWAY_TEST_ROOTS"

// TellIfAsked ends the test program with what it trusts, if Brought has started it. TestMain calls it first.
func TellIfAsked() {
	missing := os.Getenv(variable)
	if missing == "" {
		return
	}
	if err := find(missing); err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// find fails where no certificate of a public server would be trusted. It asks as TLS does that is given no roots.
func find(missing string) error {
	for _, path := range []string{os.Getenv("SSL_CERT_FILE"), os.Getenv("SSL_CERT_DIR")} {
		if path != missing {
			return fmt.Errorf("the program was not started without the system's certificates, but with %q", path)
		}
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		return err
	}
	if pool.Equal(x509.NewCertPool()) {
		return errors.New("the program trusts nobody")
	}
	return nil
}

// Brought fails unless the test program trusts public servers without the system's certificates.
func Brought(t *testing.T) {
	t.Helper()
	missing := filepath.Join(t.TempDir(), "missing")
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), "SSL_CERT_FILE="+missing, "SSL_CERT_DIR="+missing, variable+"="+missing)
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, strings.TrimSpace(string(output)))
	}
}
