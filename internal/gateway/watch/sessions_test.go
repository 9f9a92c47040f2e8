package watch

import (
	"bytes"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/slipway-dev/slipway/internal/gateway/frontend/gatewayapi/copied"
)

const stickyRoute = `{name: sticky, backendService: {name: app, port: 80}, sessionAffinity: {cookie: {}}}`

// The key of sessions is not what everybody may read, such as the UID of the APIGateway.
func TestTheKeyOfSessionsIsMadeFromASecret(t *testing.T) {
	secret := func(letter string) map[string][]byte {
		return map[string][]byte{"key": bytes.Repeat([]byte(letter), 32)}
	}
	key := func(uid string, data map[string][]byte) []byte {
		f := newFixture(t)
		name := f.options.Name
		f.synced(serviceObject("app", web), sliceObject("app", "a", "10.0.0.2"))
		f.spec("u", 1, `routes: [`+hello+`]`)
		f.look(t.Context())
		if f.stores[name+"-quota"] != nil {
			t.Error("the Secret is read, although no route needs it")
		}
		f.spec(types.UID(uid), 2, `routes: [`+stickyRoute+`]`)
		f.look(t.Context())
		f.secret(name+"-quota", data)
		f.look(t.Context())
		made := f.applied[len(f.applied)-1].Proxy.SessionKey
		if len(made) == 32 {
			f.says(2)
			return made
		}
		f.says(2, `spec.routes[0] AffinityNotShared: sessionAffinity: each replica chooses endpoints by itself meanwhile, because Secret "edge-quota" does not exist or has no key of 32 bytes`)
		return made
	}
	first := key("u", secret("a"))
	for name, other := range map[string][]byte{"another secret": key("u", secret("b")), "another gateway": key("v", secret("a"))} {
		if len(other) != 32 || bytes.Equal(first, other) {
			t.Errorf("%s has the key %x", name, other)
		}
	}
	if again := key("u", secret("a")); !bytes.Equal(first, again) {
		t.Error("another replica has another key")
	}
	if bytes.Equal(first, secret("a")["key"]) {
		t.Error("it is the key by which the replicas know each other")
	}
	if short := key("u", map[string][]byte{"key": []byte("short")}); short != nil {
		t.Errorf("a short secret makes the key %x", short)
	}
}

// The pods of a Gateway make it from what the operator keeps beside the copies.
func TestTheKeyOfSessionsOfAGateway(t *testing.T) {
	f := newGatewayFixture(t)
	f.gateway(1, plainListener)
	f.synced(routeTo(t, "a", "one", 1))
	f.look(t.Context())
	f.backend("a")
	f.attach("a", "p", 1, `{targetRefs: [{kind: HTTPRoute, name: one}], defaults: {sessionAffinity: {cookie: {}}}}`)
	key := func(secret []byte) []byte {
		t.Helper()
		object := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "infra", Name: "edge-certificates"}, Data: map[string][]byte{copied.SessionsKey: secret}}
		f.must(f.secrets.watched["edge-certificates"].store.Replace([]any{object}, ""))
		f.look(t.Context())
		if f.only().Affinity == nil {
			t.Fatal("there is no rule with sessions")
		}
		made := f.applied[len(f.applied)-1].Proxy.SessionKey
		if problems := f.board.Current().Problems; (len(problems) == 0) != (made != nil) {
			t.Errorf("with the key %x the pod says %+v", made, problems)
		}
		return made
	}
	if made := key(nil); made != nil {
		t.Errorf("without a secret the key is %x", made)
	}
	first, other := key(bytes.Repeat([]byte("a"), 32)), key(bytes.Repeat([]byte("b"), 32))
	if len(first) != 32 || len(other) != 32 || bytes.Equal(first, other) {
		t.Errorf("two secrets make the keys %x and %x", first, other)
	}
}
