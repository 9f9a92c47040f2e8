package cli

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slipway-dev/slipway/internal/testing/clitest"
)

// TestNotInstalled asks a server that does not know the path, like a cluster without
// Slipway's kinds.
func TestNotInstalled(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	code, _, stderr := clitest.Offline(t, addCommands, "status", "shop", "--kubeconfig", "/dev/null", "--server", server.URL)
	if want := "error: webapp/shop: this cluster has no WebApps: Slipway is not installed\n"; code != 1 || stderr != want {
		t.Errorf("exit code %d: %swant %s", code, stderr, want)
	}
}

func TestCommandLine(t *testing.T) {
	cases := map[string]struct {
		args   []string
		code   int
		stdout string
		stderr string
	}{
		"version":              {args: []string{"version"}, stdout: "kubectl slipway v1.2.3 ("},
		"version as JSON":      {args: []string{"version", "-o", "json"}, stdout: `"version": "v1.2.3"`},
		"help has examples":    {args: []string{"rollback", "--help"}, stdout: "kubectl slipway rollback webapp/shop --to 3"},
		"no command":           {stdout: "Available Commands:"},
		"unknown command":      {args: []string{"leaf"}, code: 1, stderr: "unknown command \"leaf\""},
		"no WebApp":            {args: []string{"status"}, code: 1, stderr: "error: name one WebApp: webapp/NAME\nSee 'kubectl slipway status --help'"},
		"another kind":         {args: []string{"status", "pod/x"}, code: 1, stderr: `error: "pod/x" is not a WebApp`},
		"no Backup":            {args: []string{"backup", "now"}, code: 1, stderr: "error: name one Backup: backup/NAME\nSee 'kubectl slipway backup now --help'"},
		"not a Backup":         {args: []string{"backup", "ls", "webapp/x"}, code: 1, stderr: `error: "webapp/x" does not name a Backup`},
		"backup alone":         {args: []string{"backup"}, stdout: "Available Commands:"},
		"no such backup verb":  {args: []string{"backup", "later"}, code: 1, stderr: `unexpected argument "later"`},
		"restore to nowhere":   {args: []string{"restore", "data"}, code: 1, stderr: "--to is required"},
		"timeout, no wait":     {args: []string{"restore", "data", "--to", "x", "--timeout", "1s"}, code: 1, stderr: "--timeout must be positive, and needs --wait"},
		"unknown format":       {args: []string{"history", "shop", "-o", "xml"}, code: 1, stderr: "must be one of table, yaml, json"},
		"timeout, no watch":    {args: []string{"status", "shop", "--timeout", "1s"}, code: 1, stderr: "--timeout must be positive, and needs --watch"},
		"negative tail":        {args: []string{"why", "shop", "--tail", "-1"}, code: 1, stderr: "--tail must not be negative"},
		"watch and dry run":    {args: []string{"rollback", "shop", "--watch", "--dry-run"}, code: 1, stderr: "nothing to follow"},
		"shell completion":     {args: []string{"completion", "bash"}, stdout: "__complete"},
		"completion of -o":     {args: []string{"__complete", "status", "shop", "-o", ""}, stdout: "table\nyaml\njson\n:4"},
		"no such kubeconfig":   {args: []string{"status", "shop", "--kubeconfig", "/nowhere"}, code: 1, stderr: "error: find the cluster:"},
		"nobody at the server": {args: []string{"status", "shop", "--kubeconfig", "/dev/null", "--server", "http://127.0.0.1:1"}, code: 1, stderr: `error: get webapp/shop in namespace "default": `},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := clitest.Offline(t, addCommands, tc.args...)
			if code != tc.code || !strings.Contains(stdout, tc.stdout) || !strings.Contains(stderr, tc.stderr) {
				t.Errorf("exit code %d, want %d\nstdout: %s\nstderr: %s\nwant %q and %q", code, tc.code, stdout, stderr, tc.stdout, tc.stderr)
			}
			if code == 0 && stderr != "" && tc.args[0] != "__complete" {
				t.Errorf("stderr: %s", stderr)
			}
		})
	}
}
