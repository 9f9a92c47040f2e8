//go:build e2e

package e2e

import (
	"fmt"
	"net/http"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-dev/slipway/internal/testing/livecluster"
	"github.com/slipway-dev/slipway/internal/testing/livetest"
)

// serviceURL is the Service's address, reachable from this machine.
func (f *fixture) serviceURL() string {
	f.Helper()
	service := mustGet(f, appName, &corev1.Service{})
	return livecluster.Address(service.Spec.ClusterIP, service.Spec.Ports[0].Port)
}

// answers waits until an URL answers with every one of the parts.
func (f *fixture) answers(url string, parts ...string) {
	f.Helper()
	client := livecluster.NewHTTPClient()
	f.Eventually(func() error { return f.answer(client, url, parts...) })
}

// answer asks an URL once, and returns an error unless the answer has every one of the parts.
func (f *fixture) answer(client *http.Client, url string, parts ...string) error {
	body, err := livecluster.Ask(f.Context(), client, url)
	if err != nil {
		return fmt.Errorf("%s does not answer: %w", url, err)
	}
	for _, part := range parts {
		if !strings.Contains(body, part) {
			return fmt.Errorf("%s answers %q, want %q in it", url, body, part)
		}
	}
	return nil
}

// traffic requests an URL again and again until Stop, with a connection for each request.
func (f *fixture) traffic(url string) *livetest.Traffic {
	return f.Traffic(livecluster.NewHTTPClient(), url)
}
