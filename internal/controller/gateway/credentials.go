package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi"
	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
	"github.com/slipway-dev/slipway/internal/gateway/model"
	"github.com/slipway-dev/slipway/internal/kit/outcome"
)

// maxCredentials is how many bytes of Secrets of GatewayPolicies are copied at the most, and maxOfNamespace how many of one
// namespace. Who may only add a policy must not fill the Secret with the copies.
const (
	maxCredentials = 256 << 10
	maxOfNamespace = 64 << 10
)

// validated is whether a Secret is valid for what a policy asks for, at a version.
type validated struct {
	version string
	fault   *model.Fault
	size    int // of what is copied
}

// copiedPart is what is copied of a Secret of another namespace: some of its keys, or all of them.
type copiedPart struct {
	version string
	whole   bool
	keys    []string
}

// readCredentials looks at the Secrets that the GatewayPolicies name. Those of other namespaces are copied only where they are
// what they should be: hashes, public keys, or a client secret for the issuer that the Secret itself names. So no policy brings
// another Secret of its namespace beside the Gateway.
func (r *Reconciler) readCredentials(ctx context.Context, s *scope) error {
	s.input.Authentication = map[string]gatewayapi.Authentication{}
	s.credentialVersions, s.copiedCredentials = map[types.NamespacedName]string{}, map[types.NamespacedName]copiedPart{}
	used := map[string]int{} // bytes by namespace, all of them under ""
	for _, policy := range gatewayapi.ByPrecedence(s.input.GatewayPolicies) {
		for _, auth := range gatewayapi.AuthsOf(policy) {
			id := gatewayapi.AuthID(policy.Namespace, auth)
			if _, known := s.input.Authentication[id]; known {
				continue
			}
			of, err := r.validateCredentials(ctx, s, policy.Namespace, auth)
			if err != nil {
				return err
			}
			if of.fault == nil && policy.Namespace != s.gateway.Namespace {
				of.fault = s.noteCopy(policy.Namespace, auth, of, used)
			}
			s.input.Authentication[id] = gatewayapi.Authentication{Fault: of.fault}
		}
	}
	return nil
}

// validateCredentials finds out whether a Secret is valid for what a policy asks for. It is remembered for its version.
func (r *Reconciler) validateCredentials(ctx context.Context, s *scope, namespace string, auth *slipwayv1alpha1.Auth) (validated, error) {
	id := gatewayapi.AuthID(namespace, auth)
	of, needs := gatewayapi.CredentialsOf(namespace, auth)
	secret := &corev1.Secret{}
	if needs {
		found, err := r.secret(ctx, of.Secret)
		if err != nil {
			return validated{}, err
		}
		if namespace != s.gateway.Namespace && r.kinds.objects.Watches(namespace) {
			s.credentials = append(s.credentials, found)
		}
		if known, ok := r.credentials.Get(id); ok && known.(validated).version == found.ResourceVersion {
			s.credentialVersions[of.Secret] = found.ResourceVersion
			return known.(validated), nil
		}
		if found.UID != "" {
			if err := r.kit.Live.Get(ctx, of.Secret, secret); err != nil && !apierrors.IsNotFound(err) {
				return validated{}, outcome.Classify(fmt.Sprintf("Secret %q", of.Secret), err)
			}
		}
	}
	made, err := validateSecret(namespace, auth, of, secret)
	if err != nil {
		return validated{}, err
	}
	if needs {
		r.credentials.Add(id, made)
		s.credentialVersions[of.Secret] = made.version
	}
	return made, nil
}

// validateSecret does the same with the content of a Secret. One that does not exist has no version.
func validateSecret(namespace string, auth *slipwayv1alpha1.Auth, of gatewayapi.Credentials, secret *corev1.Secret) (validated, error) {
	policy := &slipwayv1alpha1.GatewayPolicy{Spec: slipwayv1alpha1.GatewayPolicySpec{Defaults: &slipwayv1alpha1.GatewayPolicySettings{Auth: auth}}}
	policy.Namespace = namespace
	made := gatewayapi.Authenticate([]*slipwayv1alpha1.GatewayPolicy{policy}, func(types.NamespacedName) (map[string][]byte, bool) {
		return secret.Data, secret.ResourceVersion != ""
	})
	content, err := json.Marshal(part(secret, copiedPart{whole: len(of.Keys) == 0, keys: of.Keys}))
	if err != nil {
		return validated{}, fmt.Errorf("measure Secret %q: %w", of.Secret, err)
	}
	return validated{version: secret.ResourceVersion, fault: made[gatewayapi.AuthID(namespace, auth)].Fault, size: len(content)}, nil
}

// has reports whether what a stanza needs is copied.
func (p copiedPart) has(of gatewayapi.Credentials) bool {
	missing := func(key string) bool { return !slices.Contains(p.keys, key) }
	return p.whole || len(of.Keys) > 0 && !slices.ContainsFunc(of.Keys, missing)
}

// part is what is copied of a Secret.
func part(of *corev1.Secret, which copiedPart) map[string][]byte {
	if which.whole {
		return of.Data
	}
	data := map[string][]byte{}
	for _, key := range which.keys {
		if content, has := of.Data[key]; has {
			data[key] = content
		}
	}
	return data
}

// noteCopy notes what is to be copied, or says why it is not.
func (s *scope) noteCopy(namespace string, auth *slipwayv1alpha1.Auth, validated validated, used map[string]int) *model.Fault {
	of, needs := gatewayapi.CredentialsOf(namespace, auth)
	if !needs {
		return nil
	}
	size := validated.size
	if which, copied := s.copiedCredentials[of.Secret]; copied && which.has(of) {
		size = 0 // for another policy, or another stanza
	}
	if used[namespace]+size > maxOfNamespace || used[""]+size > maxCredentials {
		return &model.Fault{Reason: slipwayv1alpha1.ReasonInvalidSecret, Message: fmt.Sprintf(
			"auth: Secret %q is not copied to the Gateway, because the Secrets of policies would be more than %d KiB of one namespace, or %d KiB of all",
			of.Secret.Name, maxOfNamespace>>10, maxCredentials>>10)}
	}
	used[namespace] += size
	used[""] += size
	which := s.copiedCredentials[of.Secret]
	which.version, which.whole = validated.version, which.whole || len(of.Keys) == 0
	which.keys = append(slices.Clone(which.keys), of.Keys...)
	s.copiedCredentials[of.Secret] = which
	return nil
}

// copiedCredentialNames are the Secrets of which something is copied, in order.
func (s *scope) copiedCredentialNames() []types.NamespacedName {
	var names []types.NamespacedName
	for name := range s.copiedCredentials {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b types.NamespacedName) int { return strings.Compare(a.String(), b.String()) })
	return names
}

// copyCredentials copies Secrets, each at the version that was checked: another one is seen by the next reconcile. Of one that
// cannot be read the copy stays as it is.
func (r *Reconciler) copyCredentials(ctx context.Context, s *scope, current *corev1.Secret, data map[string][]byte) error {
	var errs []error
	for _, name := range s.copiedCredentialNames() {
		which, secret := s.copiedCredentials[name], &corev1.Secret{}
		err := r.kit.Live.Get(ctx, name, secret)
		switch {
		case err != nil:
			err = outcome.Classify(fmt.Sprintf("Secret %q", name), err)
		case secret.ResourceVersion != which.version:
			err = outcome.StaleCache(fmt.Sprintf("Secret %q", name))
		}
		made := copied.Credentials{Data: part(secret, which), Version: which.version}
		if err != nil {
			errs = append(errs, err)
			var found bool
			if made, found = copied.FindCredentials(current, name); !found {
				continue
			}
		}
		errs = append(errs, copied.PutCredentials(data, name, made))
	}
	return errors.Join(errs...)
}

// ownCredentials are the Secrets of the Gateway's own namespace that policies name. The pods read them themselves.
func (s *scope) ownCredentials() []types.NamespacedName {
	var names []types.NamespacedName
	for _, policy := range s.input.GatewayPolicies {
		if policy.Namespace == s.gateway.Namespace {
			names = append(names, gatewayapi.SecretsOfGatewayPolicy(policy)...)
		}
	}
	return names
}
