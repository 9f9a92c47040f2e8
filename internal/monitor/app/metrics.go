package app

import (
	"crypto/tls"
	"fmt"
	"net/http"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
	"sigs.k8s.io/controller-runtime/pkg/metrics/filters"
)

// figures makes the server of metrics. They name kinds of the cluster and MonitorRules, so they are for those whom the API server lets
// get /metrics, over TLS with a certificate that the monitor signs itself, unless the configuration says otherwise.
func (a *app) figures() (*http.Server, error) {
	handler := promhttp.HandlerFor(a.registry, promhttp.HandlerOpts{})
	if !a.options.Config.Listen.Authenticates() {
		return metricsServer(handler), nil
	}
	asker, err := rest.HTTPClientFor(a.access)
	if err != nil {
		return nil, fmt.Errorf("authenticate who reads metrics: %w", err)
	}
	filter, err := filters.WithAuthenticationAndAuthorization(a.access, asker)
	if err != nil {
		return nil, fmt.Errorf("authenticate who reads metrics: %w", err)
	}
	if handler, err = filter(logr.FromSlogHandler(a.log.Handler()), handler); err != nil {
		return nil, fmt.Errorf("authenticate who reads metrics: %w", err)
	}
	certificate, key, err := certutil.GenerateSelfSignedCertKey("localhost", nil, nil)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for metrics: %w", err)
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return nil, fmt.Errorf("make a certificate for metrics: %w", err)
	}
	made := metricsServer(handler)
	// HTTP/2 stays off: who has not been let in yet could make streams faster than they are refused.
	made.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}
	made.TLSNextProto = map[string]func(*http.Server, *tls.Conn, http.Handler){}
	return made, nil
}

func metricsServer(handler http.Handler) *http.Server {
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", handler)
	return plainServer(mux)
}
