package watch

import (
	"bytes"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/gateway/proxy"
	"github.com/slipway-dev/slipway/internal/gateway/replica/document"
)

// gatewayKeyring holds the certificates of the served listeners. If a Secret is deleted or
// holds no valid certificate any more, its last good one stays in use for a moment: see keptAfter. It does not stay when
// no listener may use it any more: because none names it, or because its grant is gone.
type gatewayKeyring struct {
	pairs map[types.NamespacedName]versionedPair
}

// versionedPair is a certificate with the version of the Secret that it is from.
type versionedPair struct {
	keyPair

	version string
}

// read reads the certificates that the listeners name. It returns what the graph wants to
// know about their Secrets, and when to read them again without an event.
func (k *gatewayKeyring) read(names []types.NamespacedName, now time.Time, content func(types.NamespacedName) (crt, key []byte, version string, found bool)) (
	pairs map[types.NamespacedName]versionedPair, secrets map[types.NamespacedName]gatewayapi.Secret, problems []document.Problem, again time.Time,
) {
	pairs, secrets = map[types.NamespacedName]versionedPair{}, map[types.NamespacedName]gatewayapi.Secret{}
	for _, name := range names {
		pair, until, reason, message := k.pair(name, now, content)
		again = earliest(until, again)
		if reason != "" {
			problems = append(problems, document.Problem{
				Route: -1, Name: name.String(), Field: "Secret " + name.String(), Reason: reason, Message: message,
			})
		}
		switch {
		case pair.certificate.Leaf != nil:
			pairs[name], secrets[name] = pair, gatewayapi.Secret{}
		case reason == slipwayv1alpha1.ReasonInvalidCertificate:
			secrets[name] = gatewayapi.Secret{Problem: message}
		}
	}
	return pairs, secrets, problems, again
}

// pair returns the certificate in a Secret. If that is not valid, it returns the last good
// one until it has to go, and a reason.
func (k *gatewayKeyring) pair(name types.NamespacedName, now time.Time, content func(types.NamespacedName) (crt, key []byte, version string, found bool)) (
	pair versionedPair, until time.Time, reason, message string,
) {
	last := k.pairs[name]
	crt, key, version, found := content(name)
	if !found {
		last.keyPair, until = last.without(now)
		return last, until, slipwayv1alpha1.ReasonSecretNotFound, fmt.Sprintf("Secret %q does not exist, or the gateway may not read it", name)
	}
	if last.certificate.Leaf != nil && bytes.Equal(last.crt, crt) && bytes.Equal(last.key, key) {
		last.version, last.lost = version, time.Time{}
		return last, time.Time{}, "", ""
	}
	certificate, err := model.ParsePair(crt, key)
	if err != nil {
		last.keyPair, until = last.without(now)
		return last, until, slipwayv1alpha1.ReasonInvalidCertificate, whyNoPair(name.String(), err)
	}
	return versionedPair{keyPair{crt: crt, key: key, certificate: certificate}, version}, time.Time{}, "", ""
}

// use keeps the certificates that valid listeners have and the one that backends are shown. It
// returns the listeners with theirs.
// again is when a problem of them begins or ends.
func (k *gatewayKeyring) use(g *gatewayapi.Graph, pairs map[types.NamespacedName]versionedPair, authorities bundles, now time.Time) (listeners []proxy.SecureListener, problems []document.Problem, again time.Time) {
	used := map[types.NamespacedName]versionedPair{}
	note := func(name types.NamespacedName) versionedPair {
		pair := pairs[name]
		if _, seen := used[name]; seen {
			return pair
		}
		used[name] = pair
		message, changes := validity(name.String(), pair.certificate, now)
		if message != "" {
			problems = append(problems, document.Problem{
				Route: -1, Name: name.String(), Field: "Secret " + name.String(), Reason: slipwayv1alpha1.ReasonCertificateExpired, Message: message,
			})
		}
		again = earliest(changes, again)
		return pair
	}
	if g.ClientCertificate != nil {
		note(*g.ClientCertificate)
	}
	for _, l := range g.Listeners {
		if !l.Valid || !l.Secure() {
			continue
		}
		made := proxy.SecureListener{Port: l.Port, Hostname: l.Hostname, Clients: authorities.clientCheck(l.Clients)}
		for _, name := range l.Certificates {
			made.Certificates = append(made.Certificates, proxy.Certificate{Certificate: note(name).certificate, Secret: name.String()})
		}
		listeners = append(listeners, made)
	}
	k.pairs = used
	return append(listeners, closedListeners(g)...), problems, again
}

// closedListeners are those that cannot be served, such as one without its certificate: no client comes in by their names. Without
// them another listener that covers the names would show its certificate. They come last: where one that can be served has the
// same name, it is served.
func closedListeners(g *gatewayapi.Graph) []proxy.SecureListener {
	var closed []proxy.SecureListener
	for _, l := range g.Listeners {
		if !l.Valid && l.Secure() && l.HasNames() {
			closed = append(closed, proxy.SecureListener{Port: l.Port, Hostname: l.Hostname})
		}
	}
	return closed
}

// version returns the version of the Secret that a certificate in use is from.
func (k *gatewayKeyring) version(name types.NamespacedName) string { return k.pairs[name].version }

// shown returns the certificate that backends are shown. It is empty if they are shown none.
func (k *gatewayKeyring) shown(g *gatewayapi.Graph) versionedPair {
	if g.ClientCertificate == nil {
		return versionedPair{}
	}
	return k.pairs[*g.ClientCertificate]
}

// certificate returns a certificate and its key out of the Secrets, and the version of the
// Secret that it is from.
func (s *GatewaySource) certificate(name types.NamespacedName) (crt, key []byte, version string, found bool) {
	if name.Namespace == s.options.Namespace {
		in, found := s.secrets.get(name.Name)
		return in.data[corev1.TLSCertKey], in.data[corev1.TLSPrivateKeyKey], in.version, found
	}
	in, _ := s.secrets.get(s.options.BorrowedCertificates)
	copied, found := copied.Find(&corev1.Secret{Data: in.data}, name)
	return copied.Certificate, copied.PrivateKey, copied.Version, found
}
