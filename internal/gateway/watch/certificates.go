package watch

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/apigateway"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/proxy"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

// keyring holds the certificates by the name of their Secret. If a Secret is deleted or
// holds no valid certificate any more, its last good one stays in use for a moment, because it
// may be about to be made again. It does not stay when nothing names the Secret any
// more, or when the gateway must not read it.
type keyring struct {
	pairs map[string]keyPair
}

// keptAfter is how long a certificate stays in use that its Secret does not hold any more. Who replaces a Secret may delete it and make
// it again. It must not stay for longer: what a pod serves would depend on when it was started.
const keptAfter = 10 * time.Second

// keyPair is a certificate with the data that it was parsed from.
type keyPair struct {
	crt, key    []byte
	certificate tls.Certificate
	// lost is since when its Secret does not hold it. Zero: it does.
	lost time.Time
}

// without is what is left of a certificate that its Secret does not hold now, and until when. Nothing, if that is so for too long.
func (p keyPair) without(now time.Time) (left keyPair, until time.Time) {
	if p.certificate.Leaf == nil {
		return keyPair{}, time.Time{}
	}
	if p.lost.IsZero() {
		p.lost = now
	}
	until = p.lost.Add(keptAfter)
	if !now.Before(until) {
		return keyPair{}, time.Time{}
	}
	return p, until
}

// read returns the certificates of a target and their problems. again is the time at which
// the problems change without a new event. It is zero if there is no such time.
func (k *keyring) read(t *target, in *apigateway.Input, now time.Time) (certificates []proxy.Certificate, secure []proxy.SecureListener, problems []document.Problem, next time.Time) {
	pairs := map[string]keyPair{}
	for i, spec := range t.tls {
		name := spec.SecretRef.Name
		report := func(reason, message string) {
			problems = append(problems, document.Problem{
				Route: -1, Name: name, Field: fmt.Sprintf("spec.tls[%d].secretRef", i), Reason: reason, Message: message,
			})
		}
		if field, unknown := t.unknownTLS[i]; unknown {
			report(slipwayv1alpha1.ReasonImageIncompatible, fmt.Sprintf("this version of the gateway does not know the field %s beside it", field))
			continue
		}
		pair, until, reason, message := k.pair(name, in, now)
		next = earliest(until, next)
		if reason != "" {
			report(reason, message)
		}
		if pair.certificate.Leaf == nil {
			continue
		}
		pairs[name] = pair
		certificate := proxy.Certificate{Certificate: pair.certificate, Secret: name}
		for _, host := range spec.Hosts {
			certificate.Hosts = append(certificate.Hosts, string(host))
		}
		certificates = append(certificates, certificate)
		if message := uncovered(name, certificate); message != "" && reason == "" {
			report(slipwayv1alpha1.ReasonCertificateMismatch, message)
		}
		message, changes := validity(name, pair.certificate, now)
		if message != "" && reason == "" {
			report(slipwayv1alpha1.ReasonCertificateExpired, message)
		}
		if !changes.IsZero() && (next.IsZero() || changes.Before(next)) {
			next = changes
		}
	}
	secure, more, changes := k.readStreams(t, in, pairs, now)
	k.pairs = pairs
	return certificates, secure, append(problems, more...), earliest(changes, next)
}

// pair returns the certificate in a Secret. If that is not valid, it returns the last good
// one until it has to go, and a reason. It returns none if the gateway must not read the Secret.
func (k *keyring) pair(name string, in *apigateway.Input, now time.Time) (pair keyPair, until time.Time, reason, message string) {
	last := k.pairs[name]
	if in.Unreadable[name] {
		last = keyPair{}
	}
	data, found := in.Secrets[name]
	if !found {
		last, until = last.without(now)
		return last, until, slipwayv1alpha1.ReasonSecretNotFound, fmt.Sprintf("Secret %q %s", name, in.WhyMissing(name))
	}
	crt, key := data[corev1.TLSCertKey], data[corev1.TLSPrivateKeyKey]
	if last.certificate.Leaf != nil && bytes.Equal(last.crt, crt) && bytes.Equal(last.key, key) {
		last.lost = time.Time{}
		return last, time.Time{}, "", ""
	}
	certificate, err := model.ParsePair(crt, key)
	if err != nil {
		last, until = last.without(now)
		return last, until, slipwayv1alpha1.ReasonInvalidCertificate, whyNoPair(name, err)
	}
	return keyPair{crt: crt, key: key, certificate: certificate}, time.Time{}, "", ""
}

// whyNoPair says what is wrong with the certificate and the key in a Secret.
func whyNoPair(name string, err error) string {
	what := "are no certificate with its key"
	if _, long := errors.AsType[model.LongKeyError](err); long {
		what = "cannot be used"
	}
	return fmt.Sprintf("%s and %s of Secret %q %s: %v", corev1.TLSCertKey, corev1.TLSPrivateKeyKey, name, what, err)
}

// maxUncovered bounds how many hosts a message names.
const maxUncovered = 3

// uncovered lists the hosts for which a certificate is served although it does not contain
// them. Clients of such a host get the certificate and refuse it.
func uncovered(name string, certificate proxy.Certificate) string {
	leaf := certificate.Leaf
	if len(certificate.Hosts) == 0 && len(leaf.DNSNames) == 0 {
		return fmt.Sprintf("the certificate in Secret %q covers no host: it has no DNS name (subjectAltName), and spec.tls.hosts names none", name)
	}
	var hosts []string
	for _, host := range certificate.Hosts {
		if leaf.VerifyHostname(host) != nil {
			hosts = append(hosts, strconv.Quote(host))
		}
	}
	if len(hosts) == 0 {
		return ""
	}
	more := ""
	if len(hosts) > maxUncovered {
		more = fmt.Sprintf(" and %d more", len(hosts)-maxUncovered)
		hosts = hosts[:maxUncovered]
	}
	return fmt.Sprintf("the certificate in Secret %q does not cover %s%s (hosts beside it), for which it is served", name, strings.Join(hosts, ", "), more)
}

// validity says whether a certificate is expired or not valid yet, and when this changes.
func validity(name string, certificate tls.Certificate, now time.Time) (message string, changes time.Time) {
	leaf := certificate.Leaf
	switch {
	case now.Before(leaf.NotBefore):
		return fmt.Sprintf("the certificate in Secret %q is not valid yet", name), leaf.NotBefore
	case now.After(leaf.NotAfter):
		return fmt.Sprintf("the certificate in Secret %q has expired", name), time.Time{}
	default:
		return "", leaf.NotAfter.Add(time.Nanosecond)
	}
}
