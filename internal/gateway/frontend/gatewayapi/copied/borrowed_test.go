package copied_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
)

func TestACopyIsFoundAgain(t *testing.T) {
	long := strings.Repeat("n", 253)
	names := []types.NamespacedName{
		{Namespace: "team", Name: "web"},
		{Namespace: "team", Name: "web.com"},
		{Namespace: "team-web", Name: "com"},
		{Namespace: "team", Name: "web.version"},
		{Namespace: "team", Name: "web.tls"},
		{Namespace: "team", Name: long},
		{Namespace: "team", Name: long[1:] + "m"},
	}
	secret := &corev1.Secret{Data: map[string][]byte{}}
	for _, name := range names {
		copied.Put(secret.Data, name, copied.Certificate{Certificate: []byte("c" + name.String()), PrivateKey: []byte("k" + name.String()), Version: "v" + name.String()})
	}
	if len(secret.Data) != 3*len(names) {
		t.Errorf("%d keys for %d Secrets", len(secret.Data), len(names))
	}
	for key := range secret.Data {
		if problems := validation.IsConfigMapKey(key); len(problems) > 0 {
			t.Errorf("%q is no key: %v", key, problems)
		}
	}
	for _, name := range names {
		got, found := copied.Find(secret, name)
		want := copied.Certificate{Certificate: []byte("c" + name.String()), PrivateKey: []byte("k" + name.String()), Version: "v" + name.String()}
		if diff := cmp.Diff(want, got); !found || diff != "" {
			t.Errorf("%v: found %v (-want +got):\n%s", name, found, diff)
		}
	}
}

func TestWhatWasNotCopiedIsNotFound(t *testing.T) {
	of := types.NamespacedName{Namespace: "team", Name: "web"}
	certificate, _, version := copied.Keys(of)
	for name, secret := range map[string]*corev1.Secret{
		"no Secret":        nil,
		"an empty one":     {},
		"without its key":  {Data: map[string][]byte{certificate: []byte("c"), version: []byte("1")}},
		"another's":        {Data: map[string][]byte{"team.other.tls.crt": []byte("c"), "team.other.tls.key": []byte("k"), "team.other.version": []byte("1")}},
		"without versions": {Data: map[string][]byte{"team.web.tls.crt": []byte("c"), "team.web.tls.key": []byte("k")}},
	} {
		if got, found := copied.Find(secret, of); found {
			t.Errorf("%s: found %+v", name, got)
		}
	}
}

func TestTheNamesOfTheKeysStay(t *testing.T) {
	certificate, privateKey, version := copied.Keys(types.NamespacedName{Namespace: "team", Name: "web"})
	got := []string{copied.SecretName("edge-slipway"), certificate, privateKey, version}
	if diff := cmp.Diff([]string{"edge-slipway-certificates", "team.web.tls.crt", "team.web.tls.key", "team.web.version"}, got); diff != "" {
		t.Errorf("pods of an earlier release read others (-want +got):\n%s", diff)
	}
}

// Whoever may have a Secret or a ConfigMap copied cannot choose what the pods have in common by it.
func TestNoCopyIsASecretOfThePods(t *testing.T) {
	for _, key := range []string{copied.SessionsKey, copied.ReplicasKey} {
		data := map[string][]byte{}
		for _, name := range []types.NamespacedName{{Namespace: key, Name: key}, {Namespace: key}, {Name: key}, {Namespace: key, Name: strings.Repeat("n", 253)}} {
			copied.Put(data, name, copied.Certificate{})
			copied.PutBundle(data, name, copied.Bundle{})
			if err := copied.PutCredentials(data, name, copied.Credentials{}); err != nil {
				t.Fatal(err)
			}
		}
		if _, taken := data[key]; taken || len(data) != 4*7 {
			t.Errorf("%d keys, and %q is taken: %v", len(data), key, taken)
		}
	}
	if copied.SessionsKey == copied.ReplicasKey {
		t.Error("both have the same key")
	}
}

func TestTheServiceOfThePodsIsThatOfTheirSecret(t *testing.T) {
	for secret, want := range map[string]string{
		copied.SecretName("edge-slipway"): "edge-slipway", copied.SecretName("a-certificates"): "a-certificates", "": "", "copies": "", "-certificates": "",
	} {
		if got := copied.ServiceName(secret); got != want {
			t.Errorf("Secret %q: Service %q, want %q", secret, got, want)
		}
	}
}
