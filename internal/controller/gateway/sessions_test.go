package gateway

import (
	"bytes"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/slipway-dev/slipway/internal/gatewayapi/borrowed"
)

// Clients keep their endpoints while the secret stays. One that somebody has broken is made anew.
func TestTheSecretOfSessionsStays(t *testing.T) {
	kept := func(current []byte) []byte {
		data := map[string][]byte{}
		if err := keepSessions(data, &corev1.Secret{Data: map[string][]byte{borrowed.SessionsKey: current}}); err != nil {
			t.Fatal(err)
		}
		return data[borrowed.SessionsKey]
	}
	first := kept(nil)
	if len(first) != borrowed.SecretBytes || bytes.Equal(first, kept(nil)) {
		t.Errorf("two Gateways have the secret %x", first)
	}
	if again := kept(first); !bytes.Equal(first, again) {
		t.Error("it does not stay")
	}
	if again := kept([]byte("short")); len(again) != borrowed.SecretBytes {
		t.Errorf("of a short one it makes %q", again)
	}
}
