package watch

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/peers"
)

// toldSharing remembers the settings.
type toldSharing struct {
	settings peers.Settings
	trouble  string
	again    time.Time
}

func (s *toldSharing) Set(_ context.Context, settings peers.Settings) time.Time {
	s.settings = settings
	return time.Time{}
}

func (s *toldSharing) Trouble() (string, time.Time) { return s.trouble, s.again }

const sharedRoute = `{name: shared, directResponse: {statusCode: 200}, rateLimit: {requests: 10, count: Gateway}}`

func TestReplicasAreConnectedWhileARouteNeedsIt(t *testing.T) {
	f := newFixture(t)
	shared := &toldSharing{}
	f.options.Shared = shared
	name := f.options.Name
	f.synced(serviceObject(name), sliceObject(name, "a", "10.0.0.2", "10.0.0.1"), sliceObject("other", "b", "10.0.0.3"))
	f.spec("u", 1, `routes: [`+hello+`]`)
	f.look(t.Context())
	if diff := cmp.Diff(peers.Settings{}, shared.settings); diff != "" {
		t.Errorf("without a shared limit: -want +got:\n%s", diff)
	}
	f.spec("u", 2, `routes: [`+sharedRoute+`]`)
	f.look(t.Context())
	f.secret(name+"-quota", map[string][]byte{"key": []byte(strings.Repeat("k", 32))})
	f.look(t.Context())
	want := peers.Settings{Wanted: true, Secret: []byte(strings.Repeat("k", 32)), Addresses: []string{"10.0.0.1:15022", "10.0.0.2:15022"}}
	if diff := cmp.Diff(want, shared.settings); diff != "" {
		t.Errorf("with one: -want +got:\n%s", diff)
	}
	f.says(2)
	shared.trouble = "nobody answers"
	f.look(t.Context())
	f.says(2, "spec.routes[0] LimitNotShared: rateLimit.count: each replica allows its part of the limit meanwhile: nobody answers")
	shared.trouble = ""
	f.spec("u", 3, `routes: [`+hello+`]`)
	f.look(t.Context())
	f.says(3)
	if shared.settings.Wanted {
		t.Error("the replicas stay connected without a shared limit")
	}
}

// A pod counts once. One that ends counts while no other one is ready: it gets the requests then.
func TestReplicasAreThePodsThatGetRequests(t *testing.T) {
	own := service{family: discoveryv1.AddressTypeIPv4}
	four := slice{family: discoveryv1.AddressTypeIPv4, ready: []string{"10.0.0.2", "10.0.0.1"}, draining: []string{"10.0.0.3"}}
	again := slice{family: discoveryv1.AddressTypeIPv4, ready: []string{"10.0.0.1"}}
	six := slice{family: discoveryv1.AddressTypeIPv6, ready: []string{"fd00::1", "fd00::2"}}
	for name, test := range map[string]struct {
		own  service
		of   []slice
		want string
	}{
		"none":        {own, nil, ""},
		"dual-stack":  {own, []slice{six, four, again}, "10.0.0.1:15022 10.0.0.2:15022"},
		"IPv6 first":  {service{family: discoveryv1.AddressTypeIPv6}, []slice{six, four}, "[fd00::1]:15022 [fd00::2]:15022"},
		"only others": {own, []slice{six}, "[fd00::1]:15022 [fd00::2]:15022"},
		"only ending": {own, []slice{{family: discoveryv1.AddressTypeIPv4, draining: []string{"10.0.0.3"}}}, "10.0.0.3:15022"},
	} {
		if got := strings.Join(peersOf(test.own, test.of), " "); got != test.want {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
