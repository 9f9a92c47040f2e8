package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"golang.org/x/sync/semaphore"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
)

// Config is a webhook in the configuration of the monitor. Rules name webhooks, and never their addresses.
type Config struct {
	// Name is what rules call it.
	Name string `json:"name"`
	// URL is where requests go. It may hold a secret, so it is never shown.
	URL string `json:"url"`
	// Secret signs requests. Empty: they are not signed.
	Secret []byte `json:"-"`
	// CA are certificates in PEM that the server's has to come from. Empty: those of the system.
	CA []byte `json:"-"`
	// MinSeverity is the least severity that it is told of. Default Info.
	MinSeverity slipwayv1alpha1.MonitorSeverity `json:"minSeverity,omitempty"`
}

const (
	// requestTimeout bounds a request with its answer.
	requestTimeout = 10 * time.Second
	// maxAnswer is how many bytes of an answer are read, so that the connection can be used again.
	maxAnswer = 64 << 10
	// requestsAtOnce is how many requests to a webhook are made at a time, each about another namespace. The others have their turns.
	requestsAtOnce = 8
)

// Webhook is a webhook that can be sent to. It is safe for concurrent use.
type Webhook struct {
	config Config
	client *http.Client
	// places are for requestsAtOnce. Who waits longest gets the next one.
	places *semaphore.Weighted
}

var severities = map[slipwayv1alpha1.MonitorSeverity]int{
	"": 0, slipwayv1alpha1.SeverityInfo: 0, slipwayv1alpha1.SeverityWarning: 1, slipwayv1alpha1.SeverityCritical: 2,
}

// NewWebhook checks a configuration. No error has the URL or the secret in it.
func NewWebhook(config Config) (*Webhook, error) {
	address, err := url.Parse(config.URL)
	if err != nil || address.Host == "" || address.Scheme != "https" && address.Scheme != "http" {
		return nil, fmt.Errorf("webhook %q: url is not an address that begins with https:// or http://", config.Name)
	}
	if _, known := severities[config.MinSeverity]; !known {
		return nil, fmt.Errorf("webhook %q: minSeverity is not Info, Warning or Critical", config.Name)
	}
	tlsConfig := &tls.Config{MinVersion: tls.VersionTLS12}
	if len(config.CA) > 0 {
		tlsConfig.RootCAs = x509.NewCertPool()
		if !tlsConfig.RootCAs.AppendCertsFromPEM(config.CA) {
			return nil, fmt.Errorf("webhook %q: the file of its CA has no certificate", config.Name)
		}
	}
	return &Webhook{config: config, places: semaphore.NewWeighted(requestsAtOnce), client: &http.Client{
		Timeout: requestTimeout,
		Transport: &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: tlsConfig, ForceAttemptHTTP2: true, MaxConnsPerHost: requestsAtOnce,
			MaxIdleConnsPerHost: requestsAtOnce,
			IdleConnTimeout:     time.Minute, MaxResponseHeaderBytes: maxAnswer,
		},
		// Who answers with another address does not get to choose where alarms go.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

func (w *Webhook) wants(severity slipwayv1alpha1.MonitorSeverity) bool {
	return severities[severity] >= severities[w.config.MinSeverity]
}

// deliver makes one request when it has its turn.
func (w *Webhook) deliver(ctx context.Context, body []byte, now func() time.Time) error {
	if err := w.places.Acquire(ctx, 1); err != nil {
		return err
	}
	defer w.places.Release(1)
	return w.send(ctx, body, now())
}

// send makes one request. The error says what to look for, and has neither the address nor anything of the answer in it.
func (w *Webhook) send(ctx context.Context, body []byte, now time.Time) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, w.config.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("its url cannot be used")
	}
	request.Header.Set("Content-Type", "application/cloudevents+json; charset=utf-8")
	request.Header.Set("User-Agent", "slipway-monitor")
	if len(w.config.Secret) > 0 {
		request.Header.Set(HeaderTimestamp, strconv.FormatInt(now.Unix(), 10))
		request.Header.Set(HeaderSignature, Sign(w.config.Secret, now, body))
	}
	answer, err := w.client.Do(request)
	if err != nil {
		return errors.New(withoutAddress(err))
	}
	defer func() { _ = answer.Body.Close() }()
	// The status decides. What follows is read for the connection only.
	_, _ = io.CopyN(io.Discard, answer.Body, maxAnswer)
	if answer.StatusCode < 200 || answer.StatusCode > 299 {
		return fmt.Errorf("it answered with the status %d", answer.StatusCode)
	}
	return nil
}

// withoutAddress says what went wrong without the URL, which may hold a token.
func withoutAddress(err error) string {
	var network net.Error
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	switch {
	case errors.As(err, &certificate):
		return "its certificate is not trusted"
	case errors.As(err, &dns):
		return "its name cannot be resolved"
	case errors.As(err, &network) && network.Timeout():
		return "it did not answer in time"
	default:
		return "the connection failed"
	}
}
