package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/slipway-dev/slipway/internal/repository"
)

// config is the configuration file. It holds no secret: those are in files that it names.
type config struct {
	Repository repositoryConfig `json:"repository"`
	Snapshot   snapshotConfig   `json:"snapshot"`
	Verify     verifyConfig     `json:"verify"`
	Restore    restoreConfig    `json:"restore"`
	Expire     expireConfig     `json:"expire"`
	List       listConfig       `json:"list"`
}

type repositoryConfig struct {
	// Filesystem or S3 says where the repository is.
	Filesystem *filesystemConfig `json:"filesystem"`
	S3         *s3Config         `json:"s3"`
	// PasswordFile holds the password. A line end at its end does not count.
	PasswordFile string `json:"passwordFile"`
	// ID is the ID of the repository, from the result of the first run. Any other is refused.
	ID string `json:"id"`
	// Create lets snapshot make the repository when there is none. Not together with ID.
	Create bool `json:"create"`
	// WorkFolder is for the cache. Default: the folder for temporary files.
	WorkFolder string `json:"workFolder"`
	// CacheBytes bounds each of two caches. Default: 256 MiB.
	CacheBytes int64 `json:"cacheBytes"`
}

type filesystemConfig struct {
	Path string `json:"path"`
}

type s3Config struct {
	Endpoint  string `json:"endpoint"`
	Region    string `json:"region"`
	Bucket    string `json:"bucket"`
	Prefix    string `json:"prefix"`
	Plaintext bool   `json:"plaintext"`
	// CAFile holds certificates in PEM.
	CAFile string `json:"caFile"`
	// The credentials. None: those of the environment or the machine.
	AccessKeyIDFile     string `json:"accessKeyIDFile"`
	SecretAccessKeyFile string `json:"secretAccessKeyFile"`
	SessionTokenFile    string `json:"sessionTokenFile"`
}

type snapshotConfig struct {
	Source           string   `json:"source"`
	Run              string   `json:"run"`
	Paths            []string `json:"paths"`
	Exclude          []string `json:"exclude"`
	AllowPartial     bool     `json:"allowPartial"`
	AllowEmpty       bool     `json:"allowEmpty"`
	IgnoreChangeTime bool     `json:"ignoreChangeTime"`
	ReadAll          bool     `json:"readAll"`
	Parallel         int      `json:"parallel"`
}

type verifyConfig struct {
	Run         string   `json:"run"`
	Snapshots   []string `json:"snapshots"`
	ReadPercent float64  `json:"readPercent"`
	Parallel    int      `json:"parallel"`
}

type restoreConfig struct {
	Snapshot  string   `json:"snapshot"`
	Run       string   `json:"run"`
	Target    string   `json:"target"`
	Paths     []string `json:"paths"`
	Overwrite bool     `json:"overwrite"`
	Parallel  int      `json:"parallel"`
}

type expireConfig struct {
	Snapshots []string `json:"snapshots"`
}

type listConfig struct {
	Run string `json:"run"`
}

// readConfig reads the configuration file. A field that nobody knows is an error: it may be one that protects data.
func readConfig(file string) (config, error) {
	var c config
	raw, err := os.ReadFile(file)
	if err != nil {
		return c, err
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&c); err != nil {
		return c, fmt.Errorf("%s: %w", file, err)
	}
	if c.Repository.Create && c.Repository.ID != "" {
		return c, errors.New("create and id exclude each other: a repository that is known is never made again")
	}
	return c, nil
}

// options reads the secrets.
func (c repositoryConfig) options() (repository.Options, error) {
	options := repository.Options{ExpectedID: c.ID, WorkFolder: c.WorkFolder, CacheBytes: c.CacheBytes}
	secrets := []secretFile{{c.PasswordFile, &options.Password}}
	if c.Filesystem != nil {
		options.Location.Filesystem = &repository.Filesystem{Path: c.Filesystem.Path}
	}
	if c.S3 != nil {
		s := &repository.S3{
			Endpoint: c.S3.Endpoint, Region: c.S3.Region, Bucket: c.S3.Bucket, Prefix: c.S3.Prefix, Plaintext: c.S3.Plaintext,
		}
		options.Location.S3 = s
		secrets = append(secrets, secretFile{c.S3.AccessKeyIDFile, &s.AccessKeyID},
			secretFile{c.S3.SecretAccessKeyFile, &s.SecretAccessKey}, secretFile{c.S3.SessionTokenFile, &s.SessionToken})
		if c.S3.CAFile != "" {
			raw, err := os.ReadFile(c.S3.CAFile)
			if err != nil {
				return options, err
			}
			s.CA = raw
		}
	}
	for _, s := range secrets {
		if s.file == "" {
			continue
		}
		raw, err := os.ReadFile(s.file)
		if err != nil {
			return options, err
		}
		*s.secret = repository.Secret(strings.TrimSuffix(strings.TrimSuffix(string(raw), "\n"), "\r"))
	}
	return options, nil
}

type secretFile struct {
	file   string
	secret *repository.Secret
}

// secretsOf are the texts that nobody may read in what the program says.
func secretsOf(options repository.Options) []string {
	secrets := []string{string(options.Password)}
	if s := options.Location.S3; s != nil {
		secrets = append(secrets, string(s.AccessKeyID), string(s.SecretAccessKey), string(s.SessionToken))
	}
	return secrets
}
