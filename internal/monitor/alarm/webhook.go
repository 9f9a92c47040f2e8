package alarm

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/monitor/config"
	"github.com/slipway-dev/slipway/internal/monitor/notify"
)

// maxSecretFile bounds the files of webhooks.
const maxSecretFile = 1 << 20

var errEmpty = errors.New("it is empty")

// Webhooks reads the files of webhooks, and makes them. A line break at the end of a key does not belong to it.
func Webhooks(configured []config.Webhook) (map[string]*notify.Webhook, error) {
	webhooks := make(map[string]*notify.Webhook, len(configured))
	for i := range configured {
		c := &configured[i]
		secret, err := readFile(c.SecretFile)
		if err == nil && c.SecretFile != "" {
			if secret = bytes.TrimRight(secret, "\r\n"); len(secret) == 0 {
				err = errEmpty
			}
		}
		if err != nil {
			return nil, fmt.Errorf("webhook %q: secretFile: %w", c.Name, err)
		}
		ca, err := readFile(c.CAFile)
		if err != nil {
			return nil, fmt.Errorf("webhook %q: caFile: %w", c.Name, err)
		}
		webhooks[c.Name], err = notify.NewWebhook(notify.Config{
			Name: c.Name, URL: c.URL, Secret: secret, CA: ca, MinSeverity: slipwayv1alpha1.MonitorSeverity(c.MinimumSeverity),
		})
		if err != nil {
			return nil, err
		}
	}
	return webhooks, nil
}

func readFile(path string) ([]byte, error) {
	if path == "" {
		return nil, nil
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxSecretFile {
		return nil, fmt.Errorf("%s has more than a mebibyte", path)
	}
	return os.ReadFile(filepath.Clean(path))
}
