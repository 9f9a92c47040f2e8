package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/slipway-dev/slipway/internal/backup/engine"
	"github.com/slipway-dev/slipway/internal/backup/mover"
)

// readConfig reads the configuration file. A field that nobody knows is an error: it may be one that protects data.
func readConfig(file string) (mover.Config, error) {
	var c mover.Config
	raw, err := os.ReadFile(file)
	if err != nil {
		return c, err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return c, fmt.Errorf("%s: %w", file, err)
	}
	if !json.Valid(raw) { // a decoder leaves alone what follows the first value
		return c, fmt.Errorf("%s: there is more than one configuration", file)
	}
	if c.Repository.Create && c.Repository.ID != "" {
		return c, errors.New("create and id exclude each other: a repository that is known is never made again")
	}
	return c, nil
}

// optionsOf reads the secrets.
func optionsOf(c mover.Repository) (engine.Options, error) {
	options := engine.Options{ExpectedID: c.ID, WorkFolder: c.WorkFolder, CacheBytes: c.CacheBytes}
	password, err := readSecret(c.EncryptionFolder, "password")
	if err != nil {
		return options, err
	}
	options.Password = engine.Secret(password)
	known, err := knownID(c)
	switch {
	case err != nil:
		return options, err
	case known == "":
	case c.ID != "" && c.ID != known:
		return options, fmt.Errorf("the ID of the repository is %s, and %s beside the password", c.ID, known)
	default:
		options.ExpectedID = known
	}
	if c.Filesystem != nil {
		options.Location.Filesystem = &engine.Filesystem{Path: c.Filesystem.Path, Shared: c.Filesystem.Shared}
	}
	if c.S3 != nil {
		options.Location.S3, err = bucketOf(*c.S3)
	}
	return options, err
}

// knownID is the ID of the repository beside the password, or empty.
func knownID(c mover.Repository) (string, error) {
	if c.IDFile == "" {
		return readSecret(c.EncryptionFolder, mover.OldIDFile)
	}
	if strings.ContainsAny(c.IDFile, "/\x00") {
		return "", fmt.Errorf("%q is not the name of a file", c.IDFile)
	}
	known, err := readSecret(c.EncryptionFolder, c.IDFile)
	if known == "" && err == nil && c.OldID {
		return readSecret(c.EncryptionFolder, mover.OldIDFile)
	}
	return known, err
}

func bucketOf(c mover.S3) (*engine.S3, error) {
	s := &engine.S3{Bucket: c.Bucket, Prefix: c.Prefix}
	var accessKeyID, secretAccessKey, sessionToken, endpoint, ca string
	for name, value := range map[string]*string{
		"accessKeyID": &accessKeyID, "secretAccessKey": &secretAccessKey, "sessionToken": &sessionToken,
		"endpoint": &endpoint, "region": &s.Region, "ca.crt": &ca,
	} {
		var err error
		if *value, err = readSecret(c.CredentialsFolder, name); err != nil {
			return nil, err
		}
	}
	s.AccessKeyID, s.SecretAccessKey, s.SessionToken = engine.Secret(accessKeyID),
		engine.Secret(secretAccessKey), engine.Secret(sessionToken)
	s.CA = []byte(ca)
	if endpoint == "" {
		return s, nil
	}
	address, err := url.Parse(endpoint)
	if err != nil || address.Host == "" || strings.Trim(address.Path, "/") != "" || address.User != nil || address.RawQuery != "" ||
		(address.Scheme != "https" && address.Scheme != "http") {
		return nil, errors.New("the endpoint is not an address such as https://s3.example.com")
	}
	s.Endpoint, s.Plaintext = address.Host, address.Scheme == "http"
	return s, nil
}

// readSecret reads a file of a folder. One line end at its end does not count. A file that is not there is empty.
func readSecret(folder, name string) (string, error) {
	if folder == "" {
		return "", nil
	}
	raw, err := os.ReadFile(filepath.Join(folder, name))
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	return strings.TrimSuffix(strings.TrimSuffix(string(raw), "\n"), "\r"), err
}

// secretsOf are the texts that nobody may read in what the program says.
func secretsOf(options engine.Options) []string {
	secrets := []string{string(options.Password)}
	if s := options.Location.S3; s != nil {
		secrets = append(secrets, string(s.AccessKeyID), string(s.SecretAccessKey), string(s.SessionToken))
	}
	return secrets
}
