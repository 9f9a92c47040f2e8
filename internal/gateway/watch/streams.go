package watch

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/proxy"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

// streamPorts are the ports of the streams that can be served.
func streamPorts(in *apigateway.Input) map[Port]bool {
	ports := map[Port]bool{}
	for _, l := range in.StreamListeners() {
		kind := proxy.PortTCP
		if l.Secure {
			kind = proxy.PortTLS
		}
		ports[Port{Number: l.Port, Kind: kind}] = true
	}
	return ports
}

// readStreams returns the listeners of streams that end the TLS of clients, with their certificates, and the problems of these. The
// pairs are those that stay in use. next is when the problems change without a new event, or zero.
func (k *keyring) readStreams(t *target, in *apigateway.Input, pairs map[string]keyPair, now time.Time) (listeners []proxy.SecureListener, problems []document.Problem, next time.Time) {
	for i := range t.streams {
		for n, ref := range t.streams[i].CertificateRefs {
			report := func(reason, message string) {
				problems = append(problems, document.Problem{
					Route: -1, Name: ref.Name, Field: fmt.Sprintf("spec.streams[%s].certificateRefs[%d]", t.streams[i].Name, n), Reason: reason, Message: message,
				})
			}
			pair, until, reason, message := k.pair(ref.Name, in, now)
			next = earliest(until, next)
			if reason != "" {
				report(reason, message)
			}
			if pair.certificate.Leaf == nil {
				continue
			}
			pairs[ref.Name] = pair
			message, changes := validity(ref.Name, pair.certificate, now)
			if message != "" && reason == "" {
				report(slipwayv1alpha1.ReasonCertificateExpired, message)
			}
			next = earliest(changes, next)
		}
	}
	return secureStreams(in, pairs), problems, next
}

// secureStreams are the listeners of streams that end the TLS of clients, with those certificates that could be read.
func secureStreams(in *apigateway.Input, pairs map[string]keyPair) []proxy.SecureListener {
	var listeners []proxy.SecureListener
	for _, l := range in.StreamListeners() {
		if len(l.Certificates) == 0 {
			continue
		}
		made := proxy.SecureListener{Port: l.Port, Hostname: l.Hostname}
		for _, name := range l.Certificates {
			if pair, found := pairs[name]; found {
				made.Certificates = append(made.Certificates, proxy.Certificate{Certificate: pair.certificate, Secret: name})
			}
		}
		listeners = append(listeners, made)
	}
	return listeners
}

// problemsOfStreamPorts are those of ports that could not be opened.
func (t *target) problemsOfStreamPorts(closed map[Port]error) []document.Problem {
	var list []document.Problem
	byNumber := func(a, b Port) int { return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.Kind, b.Kind)) }
	for _, port := range slices.SortedFunc(maps.Keys(closed), byNumber) {
		for i := range t.streams {
			if t.streams[i].Port == port.Number {
				list = append(list, document.Problem{
					Route: -1, Name: t.streams[i].Name, Field: fmt.Sprintf("spec.streams[%s]", t.streams[i].Name), Reason: slipwayv1alpha1.ReasonPortUnavailable,
					Message: fmt.Sprintf("port: %d cannot be opened: %v", port.Number, closed[port]),
				})
			}
		}
	}
	return list
}
