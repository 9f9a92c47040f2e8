package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/slipway-dev/slipway/internal/controller/gateway/desired"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/kit/apply"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// secret returns the metadata of a Secret, empty (no UID) where there is none.
func (r *Reconciler) secret(ctx context.Context, name types.NamespacedName) (*metav1.PartialObjectMetadata, error) {
	found := &metav1.PartialObjectMetadata{}
	found.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	found.Namespace, found.Name = name.Namespace, name.Name
	if !r.kinds.objects.Watches(name.Namespace) {
		return found, nil
	}
	if err := r.kit.Client.Get(ctx, name, found); client.IgnoreNotFound(err) != nil {
		return found, fmt.Errorf("read Secret %q: %w", name, err)
	}
	return found, nil
}

// checked is what was wrong with a Secret or a ConfigMap at a version, and how many bytes of a ConfigMap count.
type checked struct {
	version, problem string
	size             int
}

// readCertificates looks at the Secrets that the Gateway names, and at those that its ListenerSets may use. The content is read only of those that they may show: which ones
// that are, the graph knows, so it is built once without any route.
func (r *Reconciler) readCertificates(ctx context.Context, s *scope) error {
	s.versions = map[types.NamespacedName]string{}
	for _, name := range append(gatewayapi.Certificates(s.gateway), gatewayapi.CertificatesOfSets(s.input)...) {
		if _, seen := s.versions[name]; seen {
			continue
		}
		found, err := r.secret(ctx, name)
		if err != nil {
			return err
		}
		if r.kinds.objects.Watches(name.Namespace) {
			s.shown = append(s.shown, found)
		}
		if found.UID != "" {
			s.input.Secrets[name], s.versions[name] = gatewayapi.Secret{}, found.ResourceVersion
		}
	}
	alone := s.input
	alone.HTTPRoutes, alone.GRPCRoutes, alone.TLSRoutes, alone.TCPRoutes, alone.UDPRoutes = nil, nil, nil, nil, nil
	for _, name := range gatewayapi.Build(alone).Certificates() {
		if err := r.check(ctx, s, name); err != nil {
			return err
		}
	}
	return nil
}

// check validates a Secret. It is remembered for its version.
func (r *Reconciler) check(ctx context.Context, s *scope, name types.NamespacedName) error {
	known, ok := r.certificates.Get(name)
	if !ok || known.(checked).version != s.versions[name] {
		secret := &corev1.Secret{}
		err := r.kit.Live.Get(ctx, name, secret)
		if apierrors.IsNotFound(err) {
			delete(s.input.Secrets, name)
			return nil
		}
		if err != nil {
			return outcome.Classify(fmt.Sprintf("Secret %q", name), err)
		}
		known = checked{version: secret.ResourceVersion, problem: problemOf(secret)}
		r.certificates.Add(name, known)
	}
	s.versions[name] = known.(checked).version
	s.input.Secrets[name] = gatewayapi.Secret{Problem: known.(checked).problem}
	return nil
}

// problemOf says why a certificate cannot be used. It tells nothing of what the Secret holds but the length of a key.
func problemOf(secret *corev1.Secret) string {
	for _, key := range []string{corev1.TLSCertKey, corev1.TLSPrivateKeyKey} {
		if len(secret.Data[key]) == 0 {
			return fmt.Sprintf("it has no %s", key)
		}
	}
	_, err := model.ParsePair(secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey])
	if long, is := errors.AsType[model.LongKeyError](err); is {
		return fmt.Sprintf("%s and %s: %v", corev1.TLSCertKey, corev1.TLSPrivateKeyKey, long)
	}
	if err != nil {
		return fmt.Sprintf("%s and %s are no certificate with its key", corev1.TLSCertKey, corev1.TLSPrivateKeyKey)
	}
	return ""
}

// keepCopies keeps the copies of the certificates of other namespaces, and of authorities, in one Secret that the pods may read. A
// certificate is taken out as soon as no grant permits it. Nothing is read while neither the Secrets nor the copies have changed.
func (r *Reconciler) keepCopies(ctx context.Context, s *scope) error {
	wanted, trusted := s.copiedCertificates(), s.trusted()
	shared := s.sharedSecrets()
	count := len(wanted) + len(trusted) + len(s.copiedCredentials) + len(shared)
	if count == 0 && s.copies.UID == "" {
		return nil
	}
	versions := []string{fmt.Sprintf("shared %q", shared)}
	for _, name := range wanted {
		versions = append(versions, name.String()+"@"+s.versions[name])
	}
	for _, name := range trusted {
		versions = append(versions, "ConfigMap "+name.String()+"@"+s.bundleVersions[name])
	}
	for _, name := range s.copiedCredentialNames() {
		versions = append(versions, fmt.Sprintf("credentials %s@%+v", name, s.copiedCredentials[name]))
	}
	state := strings.Join(versions, " ")
	if last, ok := r.copied.Get(s.gateway.UID); ok {
		if known := last.(copies); known.at == s.copies.ResourceVersion && known.of == state {
			s.leftOut = known.leftOut
			return nil
		}
	}
	current := &corev1.Secret{}
	err := r.kit.Live.Get(ctx, types.NamespacedName{Namespace: s.gateway.Namespace, Name: desired.CopiesName(s.gateway)}, current)
	if client.IgnoreNotFound(err) != nil {
		return outcome.Classify("the Secret with the copies", err)
	}
	if count == 0 && !r.kit.Applier.Ours(s.gateway, current) {
		r.copied.Add(s.gateway.UID, copies{at: s.copies.ResourceVersion, of: state})
		return nil
	}
	data, failed := r.copy(ctx, s, wanted, current)
	failed = errors.Join(failed, r.copyBundles(ctx, s, trusted, current, data), r.copyCredentials(ctx, s, current, data))
	if failed != nil && len(data) == 0 && current.UID == "" {
		return failed // there is nothing to copy, and nothing to take away
	}
	failed = errors.Join(failed, keepShared(shared, data, current))
	// Credentials that a stale cache does not show are no reason to take their copy away.
	ctx = apply.Using(ctx, s.credentials...)
	if _, err := r.kit.Applier.Apply(ctx, s.gateway, apply.Child{Desired: desired.Copies(s.gateway, data), Current: current}); err != nil {
		return errors.Join(failed, err)
	}
	if failed != nil {
		return failed
	}
	r.copied.Add(s.gateway.UID, copies{at: current.ResourceVersion, of: state, leftOut: s.leftOut})
	return nil
}

// copies is of what the copies are, at which version the Secret with them is so, and what did not fit.
type copies struct {
	at, of  string
	leftOut map[types.NamespacedName]bool
}

// maxCopied is how many bytes of certificates are copied for ListenerSets at the most, beside those of the Gateway itself. A Secret
// holds a mebibyte. Who may only add a set must not fill it: then no copy could be taken away any more.
const maxCopied = 512 << 10

// copiedCertificates are the Secrets of other namespaces whose certificates are shown: those of the Gateway first, then those of its sets
// in the order of the sets.
func (s *scope) copiedCertificates() []types.NamespacedName {
	var names []types.NamespacedName
	for _, name := range s.graph.Certificates() {
		if name.Namespace != s.gateway.Namespace {
			names = append(names, name)
		}
	}
	slices.SortStableFunc(names, func(a, b types.NamespacedName) int {
		switch first, second := s.showsItself(a), s.showsItself(b); {
		case first == second:
			return 0
		case first:
			return -1
		default:
			return 1
		}
	})
	return names
}

// showsItself reports whether the Gateway names a Secret, not only a ListenerSet of it.
func (s *scope) showsItself(name types.NamespacedName) bool {
	if shown := s.graph.ClientCertificate; shown != nil && *shown == name {
		return true
	}
	return slices.ContainsFunc(s.graph.Of(nil), func(l *gatewayapi.Listener) bool { return slices.Contains(l.Certificates, name) })
}

// copy reads Secrets, each at the version that was checked: another one is seen by the next reconcile. Of one that cannot be read
// the copy stays as it is: others may have to go at once, because their grant has.
func (r *Reconciler) copy(ctx context.Context, s *scope, names []types.NamespacedName, current *corev1.Secret) (map[string][]byte, error) {
	data := map[string][]byte{}
	size := 0
	s.leftOut = map[types.NamespacedName]bool{}
	var errs []error
	for _, name := range names {
		made, err := r.copyOf(ctx, s, name)
		if err != nil {
			errs = append(errs, err)
			var found bool
			if made, found = copied.Find(current, name); !found {
				continue
			}
		}
		if !s.showsItself(name) {
			size += len(made.Certificate) + len(made.PrivateKey)
			if size > maxCopied {
				s.leftOut[name] = true
				continue
			}
		}
		copied.Put(data, name, made)
	}
	return data, errors.Join(errs...)
}

// copyBundles does the same with ConfigMaps.
func (r *Reconciler) copyBundles(ctx context.Context, s *scope, names []types.NamespacedName, current *corev1.Secret, data map[string][]byte) error {
	var errs []error
	for _, name := range names {
		made, err := r.bundleOf(ctx, s, name)
		if err != nil {
			errs = append(errs, err)
			var found bool
			if made, found = copied.FindBundle(current, name); !found {
				continue
			}
		}
		copied.PutBundle(data, name, made)
	}
	return errors.Join(errs...)
}

func (r *Reconciler) copyOf(ctx context.Context, s *scope, name types.NamespacedName) (copied.Certificate, error) {
	secret := &corev1.Secret{}
	if err := r.kit.Live.Get(ctx, name, secret); err != nil {
		return copied.Certificate{}, outcome.Classify(fmt.Sprintf("Secret %q", name), err)
	}
	if secret.ResourceVersion != s.versions[name] {
		return copied.Certificate{}, outcome.StaleCache(fmt.Sprintf("Secret %q", name))
	}
	return copied.Certificate{
		Certificate: secret.Data[corev1.TLSCertKey], PrivateKey: secret.Data[corev1.TLSPrivateKeyKey], Version: secret.ResourceVersion,
	}, nil
}
