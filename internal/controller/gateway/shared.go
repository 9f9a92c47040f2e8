package gateway

import (
	"crypto/rand"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
)

// sharedSecrets are the keys of the secrets that the pods need in common: one where a rule has the requests of a client sent to the
// same endpoint, and another one where all pods count the requests of a rule together. Neither is of use for the other.
func (s *scope) sharedSecrets() []string {
	var keys []string
	if s.graph.SharesAffinity() {
		keys = append(keys, copied.SessionsKey)
	}
	if s.graph.SharesLimit() {
		keys = append(keys, copied.ReplicasKey)
	}
	return keys
}

// keepShared puts these secrets beside the copies: each that is there, so that clients keep their endpoints and counts go on, or else
// a new one. They are random: nobody can find them out, nor choose them by what he may write.
func keepShared(keys []string, data map[string][]byte, current *corev1.Secret) error {
	for _, key := range keys {
		if known := current.Data[key]; len(known) == copied.SecretBytes {
			data[key] = known
			continue
		}
		made := make([]byte, copied.SecretBytes)
		if _, err := rand.Read(made); err != nil {
			return fmt.Errorf("make the secret %q: %w", key, err)
		}
		data[key] = made
	}
	return nil
}
