// Package seal makes changes to a release visible, with checksums of all its files
// and a signature of the checksums.
package seal

import (
	"bufio"
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Names of the two files that protect the other files of a release.
const (
	SumsFile      = "SHA256SUMS"
	SignatureFile = "SHA256SUMS.sig"
)

// maxSums is more than the checksums of any release take.
const maxSums = 1 << 20

var line = regexp.MustCompile(`^([0-9a-f]{64})  ([A-Za-z0-9][A-Za-z0-9._-]*)$`)

// WriteSums writes the checksums of the files of a folder, as sha256sum does.
func WriteSums(folder string) error {
	names, err := list(folder)
	if err != nil {
		return err
	}
	var text bytes.Buffer
	for _, name := range names {
		sum, err := sumOf(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		entry := sum + "  " + name
		if !line.MatchString(entry) {
			return fmt.Errorf("%q is not a name for a file of a release", name)
		}
		fmt.Fprintln(&text, entry)
	}
	return os.WriteFile(filepath.Join(folder, SumsFile), text.Bytes(), 0o644)
}

// Sign signs the checksums of a folder with a private key: ed25519 in PKCS #8, as PEM.
func Sign(folder, keyFile string) error {
	info, err := os.Stat(keyFile)
	if err != nil {
		return err
	}
	if info.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("the key %s can be read by others (mode %04o); make it 0600", keyFile, info.Mode().Perm())
	}
	parsed, err := parsePEM(keyFile, "PRIVATE KEY", x509.ParsePKCS8PrivateKey)
	if err != nil {
		return err
	}
	key, ok := parsed.(ed25519.PrivateKey)
	if !ok {
		return fmt.Errorf("the key %s is not an ed25519 key", keyFile)
	}
	text, err := readSums(folder)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(folder, SignatureFile), ed25519.Sign(key, text), 0o644)
}

// Verify compares a folder with its checksums. With the file of a public key it checks
// the signature first. With a version it refuses the files of another version.
func Verify(folder, keyFile, version string) error {
	text, err := readSums(folder)
	if err != nil {
		return err
	}
	if keyFile != "" {
		if err := checkSignature(folder, keyFile, text); err != nil {
			return err
		}
	}
	sums, err := parseSums(text)
	if err != nil {
		return err
	}
	names, err := list(folder)
	if err != nil {
		return err
	}
	var problems []error
	for _, name := range names {
		want, known := sums[name]
		delete(sums, name)
		got, err := sumOf(filepath.Join(folder, name))
		switch {
		case err != nil:
			problems = append(problems, err)
		case !known:
			problems = append(problems, fmt.Errorf("%s is not in %s", name, SumsFile))
		case got != want:
			problems = append(problems, fmt.Errorf("%s has been changed: its checksum is not the one in %s", name, SumsFile))
		case version != "" && !ofVersion(name, version):
			problems = append(problems, fmt.Errorf("%s is not of %s", name, version))
		}
	}
	for name := range sums {
		problems = append(problems, fmt.Errorf("%s is missing", name))
	}
	return errors.Join(problems...)
}

// ofVersion reports whether a file may belong to a release. All but the manifests have its
// version in their names. The files of an older release are signed too, and must not be
// taken for those of this one.
func ofVersion(name, version string) bool {
	if slices.Contains([]string{"install.yaml", "monitor-rules.yaml", "slipway.yaml"}, name) {
		return true
	}
	bare := regexp.QuoteMeta(strings.TrimPrefix(version, "v"))
	return regexp.MustCompile("-v"+bare+`(-(linux|darwin|windows|amd64|arm64)[-.]|\.[a-z])`).MatchString(name) ||
		regexp.MustCompile("-"+bare+`\.tgz$`).MatchString(name)
}

func checkSignature(folder, keyFile string, text []byte) error {
	parsed, err := parsePEM(keyFile, "PUBLIC KEY", x509.ParsePKIXPublicKey)
	if err != nil {
		return err
	}
	key, ok := parsed.(ed25519.PublicKey)
	if !ok {
		return fmt.Errorf("the key %s is not an ed25519 key", keyFile)
	}
	signature, err := os.ReadFile(filepath.Join(folder, SignatureFile))
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the release is not signed: there is no %s", SignatureFile)
	}
	if err != nil {
		return err
	}
	if !ed25519.Verify(key, text, signature) {
		return fmt.Errorf("%s is not a signature of %s with this key", SignatureFile, SumsFile)
	}
	return nil
}

// list returns the names of the files of a release, without the two that protect it. It
// refuses anything that is not a plain file.
func list(folder string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, entry := range entries {
		if !entry.Type().IsRegular() {
			return nil, fmt.Errorf("%s is not a plain file", entry.Name())
		}
		if entry.Name() != SumsFile && entry.Name() != SignatureFile {
			names = append(names, entry.Name())
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("%s has no files", folder)
	}
	slices.Sort(names)
	return names, nil
}

func readSums(folder string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(folder, SumsFile))
	if err != nil {
		return nil, err
	}
	if len(text) > maxSums {
		return nil, fmt.Errorf("%s is too large", SumsFile)
	}
	return text, nil
}

func parseSums(text []byte) (map[string]string, error) {
	sums := map[string]string{}
	for scanner := bufio.NewScanner(bytes.NewReader(text)); scanner.Scan(); {
		parts := line.FindStringSubmatch(scanner.Text())
		if parts == nil {
			return nil, fmt.Errorf("%s has a line that is no checksum of a file: %q", SumsFile, scanner.Text())
		}
		if sums[parts[2]] != "" {
			return nil, fmt.Errorf("%s has two lines for %s", SumsFile, parts[2])
		}
		sums[parts[2]] = parts[1]
	}
	return sums, nil
}

func sumOf(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:]), nil
}

// parsePEM reads the only block of a file.
func parsePEM(file, kind string, parse func([]byte) (any, error)) (any, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	block, rest := pem.Decode(content)
	if block == nil || block.Type != kind || len(bytes.TrimSpace(rest)) > 0 {
		return nil, fmt.Errorf("%s is not one %s in PEM", file, strings.ToLower(kind))
	}
	key, err := parse(block.Bytes)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return key, nil
}
