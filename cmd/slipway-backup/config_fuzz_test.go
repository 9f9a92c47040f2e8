package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/internal/backup/mover"
)

// hiddenMark is in every secret that the fuzzer makes.
const hiddenMark = "hidden-4711"

// FuzzConfiguration reads any configuration, with any secrets beside it. Nothing panics, and no secret is in what is said: of an
// error, and of the options. What is accepted is the whole file, and has no field that nobody knows.
func FuzzConfiguration(f *testing.F) {
	for _, config := range []string{
		`{`, `null`, `[]`, `{}`, `{} {}`, `{"repository":{}}x`, `{"repository":{"create":true,"id":"1"}}`, `{"repository":{"s3":{}},"exlude":[]}`,
		`{"repository":{"s3":{"bucket":"b","prefix":"../x","credentialsFolder":"FOLDER"},"encryptionFolder":"FOLDER"}}`,
		`{"repository":{"filesystem":{"path":"/x"},"encryptionFolder":"FOLDER","id":"0123"},"snapshot":{"source":"/x","run":"r"}}`,
		`{"repository":{"filesystem":{"path":"/x"},"s3":{},"encryptionFolder":"FOLDER"},"restore":{"asOf":"2026-11-25T00:00:00Z","attempt":"../a"}}`,
		`{"repository":{"encryptionFolder":"FOLDER\u0000"}}`, `{"expire":{"retention":{"last":-1,"within":"1m"}}}`, `{"snapshot":{"parallel":1e99}}`,
	} {
		for _, endpoint := range []string{"", "https://s3.example.com", "https://user:" + hiddenMark + "@s3.example.com/", "http://[::1", "://" + hiddenMark, "https://x/?" + hiddenMark} {
			f.Add([]byte(config), "password\r\n", "AKIA", endpoint, "eu-west-1")
		}
	}
	f.Fuzz(func(t *testing.T, config []byte, password, key, endpoint, id string) {
		folder := t.TempDir()
		password, key = hiddenMark+password, key+hiddenMark
		for name, content := range map[string]string{
			"password": password, "repositoryID": id, "accessKeyID": key, "secretAccessKey": key, "sessionToken": key, "endpoint": endpoint, "region": id, "ca.crt": id,
		} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		file := filepath.Join(folder, "config.json")
		if err := os.WriteFile(file, bytes.ReplaceAll(config, []byte("FOLDER"), []byte(folder)), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := readConfig(file)
		if err == nil {
			wantWhole(t, file, c)
		}
		options, failed := optionsOf(c.Repository)
		reported := fmt.Sprintf("%v %+v %#v %v %v", options, options, options.Location.S3, err, failed)
		if s := options.Location.S3; s != nil {
			reported += fmt.Sprintf("%v %+v %s", *s, *s, options.Location)
		}
		raw, _ := json.Marshal(options)
		if text := reported + string(raw); strings.Contains(text, hiddenMark) && !bytes.Contains(config, []byte(hiddenMark)) && !strings.Contains(id, hiddenMark) {
			t.Errorf("a secret is told: %s", text)
		}
		if failed == nil && options.Location.S3 != nil && strings.ContainsAny(options.Location.S3.Endpoint, "/?#@") {
			t.Errorf("%q is the endpoint %q", endpoint, options.Location.S3.Endpoint)
		}
	})
}

// wantWhole fails unless a file is one document that reads as the configuration.
func wantWhole(t *testing.T, file string, c mover.Config) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(raw) {
		t.Errorf("%q is no document, and was taken for %+v", raw, c)
	}
	if c.Repository.Create && c.Repository.ID != "" {
		t.Errorf("%q makes a repository that is known", raw)
	}
}
