package config

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	t.Parallel()
	c, err := Parse([]byte(`
kinds: {include: ["*.example.com"], builtin: [deployments.apps], maxObjectBytes: 1Mi}
store: {folder: /data, maxBytes: 1Gi, keepDays: 7}
listen: {metrics: "0"}
api: {hosts: [monitor.example.com, "fd00::1"], behindTLS: true}
webhooks:
- {name: team, url: "https://hooks.example.com/x", minimumSeverity: Warning}
- {name: all, url: "http://hooks"}
`))
	if err != nil {
		t.Fatal(err)
	}
	if c.Store.MaxBytes != 1<<30 || c.Kinds.MaxObjectBytes != 1<<20 || c.Store.MaxAge().Hours() != 168 {
		t.Errorf("sizes and times are %d, %d, %s", c.Store.MaxBytes, c.Kinds.MaxObjectBytes, c.Store.MaxAge())
	}
	if c.Listen != (Listen{Metrics: Off, Probes: ":8081", API: ":8082"}) {
		t.Errorf("it listens at %+v", c.Listen)
	}
	if len(c.API.Hosts) != 2 || !c.API.BehindTLS || c.API.OwnTokensOnly {
		t.Errorf("the API has %+v", c.API)
	}
	if c.Webhooks[1].MinimumSeverity != "Info" {
		t.Errorf("the severity is %q", c.Webhooks[1].MinimumSeverity)
	}
}

func TestDefaults(t *testing.T) {
	t.Parallel()
	c, err := Read("")
	if err != nil || c.Store.Folder != "/var/lib/slipway-monitor" || c.Listen.Metrics != ":8080" {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	for content, want := range map[string]string{
		"kind: {}":                                                      "unknown field",
		"kinds: {builtin: [secrets]}":                                   "kinds.builtin",
		"kinds: {max: -1}":                                              "kinds.max",
		"store: {maxBytes: 1Mi}":                                        "32Mi",
		"store: {maxBytes: much}":                                       "no number of bytes",
		"store: {maxBytes: -1}":                                         "less than 0",
		"store: {keepDays: -1}":                                         "store.keepDays",
		"webhooks: [{name: A, url: 'https://a'}]":                       "lower-case",
		"webhooks: [{name: a, url: 'file:///a'}]":                       "the url",
		"webhooks: [{name: a, url: 'https://u:p@a'}]":                   "the url",
		"webhooks: [{name: a, url: 'https://a', minimumSeverity: Bad}]": "minimumSeverity",
		"webhooks: [{name: a, url: 'https://a'}, {name: a, url: 'https://b'}]": "twice",
		"api: {hosts: ['https://a']}":                                          "api.hosts[0]",
		"api: {hosts: ['a:80']}":                                               "api.hosts[0]",
		"api: {hosts: [A]}":                                                    "api.hosts[0]",
		"store: {folder: a}\nstore: {folder: b}":                               "already set",
	} {
		_, err := Parse([]byte(content))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: the error is %v, and should say %q", content, err, want)
		}
	}
}
