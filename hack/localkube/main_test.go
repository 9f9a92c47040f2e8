//go:build linux

package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	cache := t.TempDir()
	t.Setenv("SLIPWAY_CACHE", cache)
	tests := map[string]struct {
		command   string
		arguments []string
		want      options
		wantErr   string
	}{
		"defaults":          {command: "up", want: options{name: "slipway", state: "/var/lib/slipway/localkube", cache: filepath.Join(cache, "localkube")}},
		"flags":             {command: "up", arguments: []string{"--name=x", "--state-dir=/s", "--cache-dir=/c", "--fsync"}, want: options{name: "x", state: "/s", cache: "/c/localkube", fsync: true}},
		"leftover":          {command: "down", arguments: []string{"--leftover"}, want: options{name: "slipway", state: "/var/lib/slipway/localkube", cache: filepath.Join(cache, "localkube"), leftover: true}},
		"files":             {command: "load", arguments: []string{"a.tar", "b.tar"}, want: options{name: "slipway", state: "/var/lib/slipway/localkube", cache: filepath.Join(cache, "localkube"), arguments: []string{"a.tar", "b.tar"}}},
		"no files":          {command: "load", wantErr: "at least one"},
		"stray argument":    {command: "down", arguments: []string{"slipway"}, wantErr: `unexpected argument "slipway"`},
		"name with a slash": {command: "up", arguments: []string{"--name=../x"}, wantErr: "lower case letters"},
		"unknown flag":      {command: "up", arguments: []string{"--nothing"}, wantErr: "nothing"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := parse(test.command, test.arguments)
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Errorf("parse = %v, want %q in it", err, test.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got.arguments = append([]string(nil), got.arguments...)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(options{})); diff != "" {
				t.Errorf("options (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnknownCommand(t *testing.T) {
	if err := run(t.Context(), []string{"start"}); err == nil || !strings.Contains(err.Error(), `unknown command "start"`) {
		t.Errorf("run = %v", err)
	}
}
