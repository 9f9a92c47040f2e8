package peers_test

import (
	"net"
	"slices"
	"testing"
	"time"

	testingclock "k8s.io/utils/clock/testing"

	"github.com/slipway-dev/slipway/internal/gateway/feature/ratelimit/peers"
)

func TestTroubleIsToldOnceItLasts(t *testing.T) {
	clock := testingclock.NewFakeClock(time.Now())
	s := peers.NewShared(peers.SharedOptions{Address: "127.0.0.1:0", Scope: "test", Secret: "shop-quota", SecretKey: "key", Clock: clock})
	s.Set(t.Context(), peers.Settings{})
	if text, again := s.Trouble(); text != "" || !again.IsZero() {
		t.Errorf("without shared limits the trouble is %q", text)
	}
	s.Set(t.Context(), peers.Settings{Wanted: true, Addresses: []string{"127.0.0.1:1"}})
	text, again := s.Trouble()
	if text != "" || !again.Equal(clock.Now().Add(10*time.Second)) {
		t.Errorf("at once the trouble is %q, and is looked at again at %v", text, again)
	}
	clock.Step(10 * time.Second)
	if text, _ := s.Trouble(); text != `Secret "shop-quota", by which the replicas know each other, cannot be read yet, or has no key "key"` {
		t.Errorf("after a while the trouble is %q", text)
	}
	s.Set(t.Context(), peers.Settings{Wanted: true, Secret: []byte("short")})
	if text, _ := s.Trouble(); text != `key "key" of Secret "shop-quota", by which the replicas know each other: it has less than 32 bytes` {
		t.Errorf("with a short secret the trouble is %q", text)
	}
	s.Set(t.Context(), peers.Settings{})
	if text, _ := s.Trouble(); text != "" {
		t.Errorf("in the end the trouble is %q", text)
	}
}

// There is a port only while a limit is shared, and only with a secret.
func TestThePortIsOpenOnlyWhileItIsNeeded(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	clock := testingclock.NewFakeClock(time.Now())
	s := peers.NewShared(peers.SharedOptions{Address: address, Scope: "test", Clock: clock})
	wanted := peers.Settings{Wanted: true, Secret: slices.Clone(secret), Addresses: []string{address}}
	if again := s.Set(t.Context(), wanted); !again.Equal(clock.Now().Add(time.Second)) {
		t.Errorf("a port that is taken is tried again at %v", again)
	}
	_ = listener.Close()
	open := func() bool {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	}
	for name, step := range map[string]struct {
		settings peers.Settings
		open     bool
	}{
		"no shared limit": {peers.Settings{Secret: secret, Addresses: []string{address}}, false},
		"no secret":       {peers.Settings{Wanted: true, Addresses: []string{address}}, false},
		"all":             {wanted, true},
	} {
		if again := s.Set(t.Context(), step.settings); !again.IsZero() {
			t.Errorf("%s: it is to be tried again", name)
		}
		if open() != step.open {
			t.Errorf("%s: the port is open: %v", name, !step.open)
		}
	}
	s.Set(t.Context(), peers.Settings{})
}
