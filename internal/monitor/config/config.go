// Package config reads the configuration file of slipway-monitor.
package config

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	"sigs.k8s.io/yaml"

	"github.com/slipway-dev/slipway/internal/monitor/store"
	"github.com/slipway-dev/slipway/internal/monitor/supervisor"
)

// Config is the file. A field that is not known is an error. Everything may be left out.
type Config struct {
	Kinds  Kinds  `json:"kinds,omitzero"`
	Redact Redact `json:"redact,omitzero"`
	Noise  Noise  `json:"noise,omitzero"`
	Store  Store  `json:"store,omitzero"`
	Listen Listen `json:"listen,omitzero"`
	API    API    `json:"api,omitzero"`
	// Webhooks are where alarms are sent. At most 50. A rule names one of them, and no address.
	Webhooks []Webhook `json:"webhooks,omitempty"`
}

// Kinds choose what is watched.
type Kinds struct {
	// Include are patterns of groups (*.crossplane.io) or of resources with their group (widgets.example.com), in which * stands
	// for any characters. A kind with a definition is watched when one of them matches. Default: all.
	Include []string `json:"include,omitempty"`
	// Exclude are patterns of kinds that are not watched. Default: none.
	Exclude []string `json:"exclude,omitempty"`
	// Builtin are kinds that Kubernetes brings, such as deployments.apps. Default: none.
	Builtin []string `json:"builtin,omitempty"`
	// Max is how many kinds are watched at most. Default: 5000.
	Max int `json:"max,omitempty"`
	// MaxObjectBytes is how large an object may be as JSON, such as 8Mi. Of a larger one only that it changed is recorded.
	// Default: 8Mi.
	MaxObjectBytes Bytes `json:"maxObjectBytes,omitempty"`
}

// Redact says what is secret, in addition to what always is: passwords and tokens by their names, fields of the format password.
type Redact struct {
	// Names are words that names of secret fields have in them, such as licence. Default: none.
	Names []string `json:"names,omitempty"`
	// Paths are fields that are secret with all that is below, such as .spec.users[*].login. Default: none.
	Paths []string `json:"paths,omitempty"`
}

// Noise says what changes all the time and means nothing, in addition to heartbeats that are known.
type Noise struct {
	// Paths are fields whose changes are counted and not recorded, such as .status.lastSeen. Default: none.
	Paths []string `json:"paths,omitempty"`
}

// Store is where the history is kept.
type Store struct {
	// Folder belongs to the monitor. Default: /var/lib/slipway-monitor.
	Folder string `json:"folder,omitempty"`
	// MaxBytes is how large all files in it may be together, such as 2Gi. The oldest history goes first. Default: 2Gi, at least
	// 32Mi.
	MaxBytes Bytes `json:"maxBytes,omitempty"`
	// KeepDays is how long changes are kept, in days. Default: 0, as long as there is space.
	KeepDays int `json:"keepDays,omitempty"`
}

// Listen is where things are served. 0 serves nothing.
type Listen struct {
	// Metrics is where /metrics is. Default: :8080.
	Metrics string `json:"metrics,omitempty"`
	// MetricsAuthentication serves metrics over TLS, and only to clients that the API server allows to get /metrics. Default: true.
	MetricsAuthentication *bool `json:"metricsAuthentication,omitempty"`
	// Probes is where /healthz and /readyz are. Default: :8081.
	Probes string `json:"probes,omitempty"`
	// API is where the API and the page are. Default: :8082.
	API string `json:"api,omitempty"`
}

// Authenticates reports whether the API server is asked who reads metrics.
func (l *Listen) Authenticates() bool {
	return l.MetricsAuthentication == nil || *l.MetricsAuthentication
}

// API says who may use the API and the page, and how they are reached.
type API struct {
	// Hosts are names under which browsers and clients reach the monitor, such as that of an Ingress, without a port. At most 20.
	// Requests for another name are refused. Default: localhost and the names of its Service.
	Hosts []string `json:"hosts,omitempty"`
	// BehindTLS says that browsers reach the page through something that ends TLS. Then its cookie is for HTTPS only. Default:
	// false.
	BehindTLS bool `json:"behindTLS,omitempty"`
	// OwnTokensOnly refuses tokens that the API server accepts too: a token must have been made for the audience slipway-monitor.
	// Default: false.
	OwnTokensOnly bool `json:"ownTokensOnly,omitempty"`
}

// Webhook is where alarms are sent.
type Webhook struct {
	// Name is how rules call it: lower-case letters, digits and hyphens. Required.
	Name string `json:"name"`
	// URL gets a POST for each alarm: https, or http in the cluster. Required.
	URL string `json:"url"`
	// SecretFile has the key with which each request is signed. Default: requests are not signed.
	SecretFile string `json:"secretFile,omitempty"`
	// CAFile has the certificates that are trusted, as PEM. Default: those of the system.
	CAFile string `json:"caFile,omitempty"`
	// MinimumSeverity is from which severity on alarms are sent: Info, Warning or Critical. Default: Info.
	MinimumSeverity string `json:"minimumSeverity,omitempty"`
}

// Bytes is a number of bytes, such as 2Gi.
type Bytes int64

// UnmarshalJSON reads a number or a quantity.
func (b *Bytes) UnmarshalJSON(data []byte) error {
	quantity := resource.Quantity{}
	if err := quantity.UnmarshalJSON(data); err != nil {
		return fmt.Errorf("%s is no number of bytes, such as 2Gi", data)
	}
	if quantity.Sign() < 0 {
		return fmt.Errorf("%s is less than 0 bytes", data)
	}
	*b = Bytes(quantity.Value())
	return nil
}

const (
	maxFile     = 1 << 20
	maxWebhooks = 50
	maxHosts    = 20
	maxHost     = 253
	maxDays     = 3650
	// Off is an address that serves nothing.
	Off = "0"
)

// Read reads a file. With an empty path everything has its default.
func Read(path string) (Config, error) {
	if path == "" {
		return Parse(nil)
	}
	content, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return Config{}, err
	}
	c, err := Parse(content)
	if err != nil {
		return Config{}, fmt.Errorf("%s: %w", path, err)
	}
	return c, nil
}

// Parse reads the content of a file, and fills in the defaults.
func Parse(content []byte) (Config, error) {
	c := Config{}
	if len(content) > maxFile {
		return c, errors.New("it has more than a mebibyte")
	}
	if err := yaml.UnmarshalStrict(content, &c); err != nil {
		return c, err
	}
	c.fill()
	return c, c.check()
}

func (c *Config) fill() {
	for _, text := range []struct {
		value    *string
		standard string
	}{
		{&c.Store.Folder, "/var/lib/slipway-monitor"},
		{&c.Listen.Metrics, ":8080"},
		{&c.Listen.Probes, ":8081"},
		{&c.Listen.API, ":8082"},
	} {
		if *text.value == "" {
			*text.value = text.standard
		}
	}
	for i := range c.Webhooks {
		if c.Webhooks[i].MinimumSeverity == "" {
			c.Webhooks[i].MinimumSeverity = "Info"
		}
	}
}

var (
	webhookName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$`)
	hostName    = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)$`)
	webhookURL  = regexp.MustCompile(`^https?://[^/@\s]+(/\S*)?$`)
)

func (c *Config) check() error {
	if _, err := supervisor.Builtin(c.Kinds.Builtin...); err != nil {
		return fmt.Errorf("kinds.builtin: %w", err)
	}
	switch {
	case c.Kinds.Max < 0:
		return fmt.Errorf("kinds.max is %d, and must not be negative", c.Kinds.Max)
	case c.Store.MaxBytes != 0 && c.Store.MaxBytes < store.MinBytes:
		return fmt.Errorf("store.maxBytes is %d, and must be 32Mi at least", c.Store.MaxBytes)
	case c.Store.KeepDays < 0 || c.Store.KeepDays > maxDays:
		return fmt.Errorf("store.keepDays is %d, and must be between 0 and %d", c.Store.KeepDays, maxDays)
	case len(c.Webhooks) > maxWebhooks:
		return fmt.Errorf("webhooks has %d entries, and %d is the most", len(c.Webhooks), maxWebhooks)
	}
	if len(c.API.Hosts) > maxHosts {
		return fmt.Errorf("api.hosts has %d entries, and %d is the most", len(c.API.Hosts), maxHosts)
	}
	for i, host := range c.API.Hosts {
		if len(host) > maxHost || !hostName.MatchString(host) && !isIPv6(host) {
			return fmt.Errorf("api.hosts[%d]: %q is no name or address of a host, in lower case and without a port", i, host)
		}
	}
	seen := map[string]bool{}
	for i := range c.Webhooks {
		w := &c.Webhooks[i]
		if err := w.check(); err != nil {
			return fmt.Errorf("webhooks[%d]: %w", i, err)
		}
		if seen[w.Name] {
			return fmt.Errorf("webhooks[%d]: the name %q is there twice", i, w.Name)
		}
		seen[w.Name] = true
	}
	return nil
}

// isIPv6 reports whether a host is an address with colons, as a Host header has it between brackets.
func isIPv6(host string) bool {
	address, err := netip.ParseAddr(host)
	return err == nil && address.Is6() && address.String() == host
}

func (w *Webhook) check() error {
	if !webhookName.MatchString(w.Name) {
		return fmt.Errorf("the name %q is not of lower-case letters, digits and hyphens", w.Name)
	}
	if !webhookURL.MatchString(w.URL) {
		return errors.New("the url does not begin with https:// or http://, or has a user in it")
	}
	if !slices.Contains([]string{"Info", "Warning", "Critical"}, w.MinimumSeverity) {
		return fmt.Errorf("minimumSeverity is %q, and must be Info, Warning or Critical", w.MinimumSeverity)
	}
	return nil
}

// MaxAge is how long changes are kept, 0 for as long as there is space.
func (s Store) MaxAge() time.Duration { return time.Duration(s.KeepDays) * 24 * time.Hour }
