package auth

import slipwayv1alpha1 "github.com/slipway-dev/slipway/api/v1alpha1"

// CredentialsOf is the Secret by which clients are let in, and the keys of it that are read. Without keys all of it is. needs tells
// whether there is one.
func CredentialsOf(in *slipwayv1alpha1.Auth) (secret string, keys []string, needs bool) {
	switch {
	case in.APIKey != nil:
		return in.APIKey.SecretRef.Name, nil, true
	case in.Basic != nil:
		return in.Basic.SecretRef.Name, nil, true
	case in.JWT != nil && in.JWT.JWKSSecretRef != nil:
		return in.JWT.JWKSSecretRef.Name, []string{in.JWT.JWKSSecretRef.Key}, true
	case in.OIDC != nil:
		return in.OIDC.ClientSecretRef.Name, []string{IssuerKey, in.OIDC.ClientSecretRef.Key}, true
	default:
		return "", nil, false
	}
}
