package gateway

import (
	"crypto/rand"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-dev/slipway/internal/gateway/table"
	"github.com/slipway-dev/slipway/internal/gatewayapi/borrowed"
	"github.com/slipway-dev/slipway/internal/gatewayapi/graph"
)

// keepsSessions tells that a rule has the requests of a client sent to the same endpoint, so that the pods need a secret in common.
func (s *scope) keepsSessions() bool {
	return slices.ContainsFunc(s.graph.Rules, func(r graph.Rule) bool { return r.Affinity != nil && r.Affinity.By != table.AffinityNone })
}

// keepSessions puts that secret beside the copies: the one that is there, so that clients keep their endpoints, or else a new one.
func keepSessions(data map[string][]byte, current *corev1.Secret) error {
	if known := current.Data[borrowed.SessionsKey]; len(known) == borrowed.SecretBytes {
		data[borrowed.SessionsKey] = known
		return nil
	}
	made := make([]byte, borrowed.SecretBytes)
	if _, err := rand.Read(made); err != nil {
		return fmt.Errorf("make the secret of sessions: %w", err)
	}
	data[borrowed.SessionsKey] = made
	return nil
}
