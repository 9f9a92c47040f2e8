package main

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

// With this variable the test program tells whether it trusts the certificate in the file that the variable names.
const rootsVariable = "SLIPWAY_BACKUP_ROOTS"

// tellRoots ends the program.
func tellRoots() {
	if err := findRoots(os.Getenv(rootsVariable)); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(0)
}

// findRoots fails where no certificate of a public server would be trusted. It asks as TLS does that is given no roots.
func findRoots(missing string) error {
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

// The image holds the program and no CA roots. Without roots no public S3 could be reached.
func TestTheProgramBringsRootsAlong(t *testing.T) {
	missing := filepath.Join(t.TempDir(), "missing")
	command := exec.CommandContext(t.Context(), os.Args[0])
	command.Env = append(os.Environ(), "SSL_CERT_FILE="+missing, "SSL_CERT_DIR="+missing, rootsVariable+"="+missing)
	if output, err := command.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, strings.TrimSpace(string(output)))
	}
}
