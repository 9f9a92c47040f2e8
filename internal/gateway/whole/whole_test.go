package whole

import (
	"net/netip"
	"testing"
)

func TestBodiesTakeOnlyTheirShareOfTheRoom(t *testing.T) {
	of := func(client, service string) Owner {
		address, _ := netip.ParseAddr(client)
		return Owner{address, service}
	}
	room := NewRoom()
	want := func(what string, got, want bool) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %v", what, got)
		}
	}
	want("the share of a client", room.take(of("192.0.2.1", "a"), maxKeptOfClient), true)
	want("more", room.take(of("192.0.2.1", "b"), 1), false)
	want("nobody knows who: the share of a Service", room.take(of("", "a"), maxKeptOfService-maxKeptOfClient), true)
	want("another client, for this Service", room.take(of("192.0.2.2", "a"), 1), false)
	want("another client, for another Service", room.take(of("192.0.2.2", "b"), 1), true)
	for _, service := range []string{"c", "d"} {
		want("a Service's share", room.take(of("", service), maxKeptOfService), true)
	}
	want("up to all", room.take(of("", "b"), maxKeptOfService-1), true)
	want("more than all", room.take(of("", "e"), 1), false)
	room.leave(of("192.0.2.1", "a"), maxKeptOfClient)
	want("again", room.take(of("192.0.2.1", "a"), maxKeptOfClient), true)
}
