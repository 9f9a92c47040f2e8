package clients

import (
	"math/rand/v2"
	"net/netip"
	"testing"
)

func TestAClientOfIPv6IsItsNetwork(t *testing.T) {
	for text, want := range map[string]string{
		"2001:db8::1": "2001:db8::", "2001:db8::ffff:1": "2001:db8::", "2001:db8:0:1::1": "2001:db8:0:1::", "192.0.2.1": "192.0.2.1",
		"::ffff:192.0.2.1": "192.0.2.1", "fe80::1%eth0": "fe80::",
	} {
		if got := Of(netip.MustParseAddr(text)).String(); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
	if got := Of(netip.Addr{}); got != (netip.Addr{}) {
		t.Errorf("nobody is %v", got)
	}
}

func TestAnAddressIsWithinARangeHoweverItIsWritten(t *testing.T) {
	ranges := []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("fe80::/10")}
	for text, want := range map[string]bool{"192.0.2.9": true, "::ffff:192.0.2.9": true, "192.0.3.1": false, "fe80::1%eth0": true} {
		if got := Within(ranges, netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: got %v", text, got)
		}
	}
	if Within(ranges, netip.Addr{}) {
		t.Error("nobody is within a range")
	}
}

func TestOneClientLeavesPlacesToTheOthers(t *testing.T) {
	tests := map[string]struct {
		bound           int
		first, theOther int // what each gets when both take as much as they can
	}{
		"a bound that is too small to divide": {bound: 3, first: 3, theOther: 0},
		"the smallest that is divided":        {bound: 4, first: 3, theOther: 1},
		"a hundred":                           {bound: 100, first: 75, theOther: 19},
		"no quarter":                          {bound: 10, first: 8, theOther: 2},
		"one":                                 {bound: 1, first: 1, theOther: 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var places Places
			all := func(client string) (n int) {
				address := netip.MustParseAddr(client)
				for places.Room(address, test.bound) {
					places.Take(address)
					n++
				}
				return n
			}
			if first, other := all("192.0.2.1"), all("192.0.2.2"); first != test.first || other != test.theOther {
				t.Errorf("got %d and %d, want %d and %d", first, other, test.first, test.theOther)
			}
		})
	}
}

// Six clients take as many places as they can, one after the other. A seventh still finds a
// place.
func TestManyClientsLeavePlacesToTheOthers(t *testing.T) {
	var places Places
	for i := range 6 {
		for client := netip.AddrFrom4([4]byte{192, 0, 2, byte(i)}); places.Room(client, 10000); {
			places.Take(client)
		}
	}
	if !places.Room(netip.MustParseAddr("198.51.100.1"), 10000) {
		t.Errorf("%d are taken", places.Taken())
	}
}

// The counts stay correct and the bound holds, whatever clients do. A client without a
// place gets one as long as one is free.
func TestPlacesAreCountedRight(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	people := []netip.Addr{{}, netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("192.0.2.2"), netip.MustParseAddr("192.0.2.3")}
	for range 200 {
		bound := 1 + random.IntN(40)
		var places Places
		has, total := make([]int, len(people)), 0
		for range 400 {
			who := random.IntN(len(people))
			if random.IntN(3) == 0 && has[who] > 0 {
				places.Release(people[who])
				has[who]--
				total--
				continue
			}
			room := places.Room(people[who], bound)
			if total < bound && (who == 0 || has[who] == 0) && !room {
				t.Fatalf("client %d has %v of %d and gets no more", who, has, bound)
			}
			if room {
				places.Take(people[who])
				has[who]++
				total++
			}
			if total > bound || places.Taken() != total || (who > 0 && places.TakenBy(people[who]) != has[who]) {
				t.Fatalf("%d are counted of %v, the bound is %d", places.Taken(), has, bound)
			}
		}
		for who := range people {
			for range has[who] {
				places.Release(people[who])
			}
		}
		if places.Taken() != 0 || len(places.owners) != 0 {
			t.Fatalf("%d are left: %v", places.Taken(), places.owners)
		}
	}
}

// Whoever takes many places at once gets as many as who takes them one by one.
func TestManyPlacesAtOnceAreAsManyOneByOne(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		bound, size := 1+random.IntN(200), 1+random.IntN(50)
		var places Places
		who := netip.MustParseAddr("192.0.2.1")
		places.Add(netip.MustParseAddr("192.0.2.2"), random.IntN(100))
		places.Add(who, random.IntN(100))
		before := places.TakenBy(who)
		atOnce, oneByOne := places.RoomFor(who, size, bound), true
		for range size {
			oneByOne = oneByOne && places.Room(who, bound)
			places.Take(who)
		}
		if atOnce != oneByOne {
			t.Fatalf("%d more of %d: %t at once, %t one by one", size, bound, atOnce, oneByOne)
		}
		if places.Subtract(who, size); places.TakenBy(who) != before {
			t.Fatalf("%d are counted, want %d", places.TakenBy(who), before)
		}
	}
}
